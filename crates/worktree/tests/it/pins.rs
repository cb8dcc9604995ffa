//! Pins: made without collision, listed, brought back, removed (S4.3).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use drydock_domain::Uncommitted;
use drydock_worktree::{GitError, PinOrder, RefDeleted, Restored};

use crate::child;
use crate::fixture::{ada, write};
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(300);

/// Would break if a pin were written without comparing that its name is free.
#[test]
fn two_processes_that_pin_at_once_never_take_each_others_name() {
    const EACH: usize = 200;
    let scene = Scene::new();
    let mut stream = String::new();
    for nth in 0..2 * EACH {
        let author = "Ada <ada@example.org> 1700000000 +0000";
        let message = format!("commit {nth}");
        writeln!(stream, "commit refs/heads/many-{nth}\ncommitter {author}\ndata {}", message.len()).unwrap();
        writeln!(stream, "{message}\nfrom {}\n", scene.base).unwrap();
    }
    let mut import = scene.fixture.user_command(&["fast-import", "--quiet"], &scene.fixture.repo());
    drydock_testkit::proc::run_with_input(&mut import, &stream, LIMIT).expect_code(0);
    let args = ["for-each-ref", "--format=%(objectname)", "refs/heads/many-*"];
    let ids = scene.fixture.user(&args, &scene.fixture.repo());
    let ids: Vec<&str> = ids.lines().collect();
    let halves = [&ids[..EACH], &ids[EACH..]];
    let lists = [0, 1].map(|nth| scene.fixture.path(&format!("list-{nth}")));
    for (list, half) in lists.iter().zip(halves) {
        fs::write(list, half.join("\n")).unwrap();
    }
    let both = lists.map(|list| child::pin_all(&scene, &list));
    let mut told = BTreeSet::new();
    for process in both {
        let ended = process.wait(LIMIT).expect_code(0);
        told.extend(ended.stdout.lines().filter(|line| line.starts_with("refs/")).map(str::to_owned));
    }
    assert_eq!(told.len(), 2 * EACH);
    let refs = scene.repository().refs("refs/drydock/pin/p/").unwrap();
    let found: BTreeSet<String> = refs.iter().map(|(name, commit)| format!("{name} {commit}")).collect();
    assert_eq!(found, told, "every pin is where its maker was told it is");
    let kept: BTreeSet<&str> = refs.iter().map(|(_, commit)| commit.as_str()).collect();
    assert_eq!(kept, ids.iter().copied().collect());
    assert_eq!(scene.repository().refs("refs/drydock/pin-about/p/").unwrap().len(), 2 * EACH);
}

/// Would break if what a pin says about itself were lost, or commits that a branch has were listed as its own.
#[test]
fn a_pin_says_what_it_keeps_and_why() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    write(&scene.tree().join("new.txt"), "new\n");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let pins = scene.repository().pin_list(None).unwrap();
    let [pin] = pins.as_slice() else { panic!("{pins:?}") };
    assert_eq!(pin.name, "refs/drydock/pin/p/1");
    assert_eq!((pin.plan.as_str(), pin.run.as_deref(), pin.reason.as_str()), ("p", Some("r"), "sync"));
    assert_eq!((&pin.head, pin.uncommitted), (&mine, Uncommitted::Kept));
    assert_eq!(pin.remote.as_deref(), Some(theirs.as_str()));
    assert_eq!(pin.created_at_seconds, ada().at_seconds);
    let subjects: Vec<&str> = pin.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["mine"]);
    for name in ["refs/drydock/pin/p/1", "p/1"] {
        assert_eq!(scene.repository().pin_find(name).unwrap().as_ref(), Some(pin));
    }
    assert_eq!(scene.repository().pin_find("p/2").unwrap(), None);
    assert!(matches!(scene.repository().pin_find("refs/heads/main"), Err(GitError::BadName { .. })));
    assert_eq!(scene.repository().pin_list(Some("q")).unwrap(), []);
}

/// Would break if bringing a pin back moved a branch that exists.
#[test]
fn a_pin_comes_back_as_a_branch_that_did_not_exist() {
    let scene = Scene::pushed();
    scene.commit("a.txt", "mine\n", "mine");
    write(&scene.tree().join("new.txt"), "new\n");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let repository = scene.repository();
    let Restored::Created { commit } = repository.pin_restore("p/1", "back").unwrap() else { panic!("new") };
    assert_eq!(scene.fixture.tip("back"), commit);
    let show = |what: &str| scene.fixture.user(&["show", &format!("back:{what}")], &scene.fixture.repo());
    assert_eq!((show("a.txt"), show("new.txt")), ("mine".to_owned(), "new".to_owned()));
    let again = repository.pin_restore("p/1", "main").unwrap();
    assert_eq!(again, Restored::BranchExists { at: scene.base.clone() });
    assert_eq!(repository.pin_restore("p/7", "other").unwrap(), Restored::NoSuchPin);
}

/// Would break if pruning removed what is nowhere else.
#[test]
fn pruning_keeps_what_is_nowhere_else_and_a_name_removes_it() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let repository = scene.repository();
    let signature = ada();
    let order = PinOrder { plan: "p", run: None, reason: "reachable", signature: &signature };
    let reachable = repository.pin_branch(&order, &scene.base).unwrap();
    scene.repository().recovery_settle("p").unwrap();
    let pruned = repository.pin_prune(None).unwrap();
    assert_eq!(pruned.removed, [reachable.name]);
    assert_eq!(pruned.kept.len(), 1);
    assert_eq!(pruned.kept[0].reason, "it keeps a commit that is nowhere else");
    scene.fixture.user(&["branch", "kept", mine.as_str()], &scene.fixture.repo());
    assert_eq!(repository.pin_prune(Some("p")).unwrap().removed, ["refs/drydock/pin/p/1"]);
    assert_eq!(repository.refs("refs/drydock/pin-about/").unwrap(), []);
    let last = repository.pin_branch(&order, &mine).unwrap();
    assert_eq!(repository.pin_delete(&last.name).unwrap(), RefDeleted::Deleted);
    assert_eq!(repository.pin_delete(&last.name).unwrap(), RefDeleted::Absent);
    assert_eq!(repository.pin_list(None).unwrap(), []);
}

/// Would break if a crash and a second attempt piled up pins of the same.
#[test]
fn the_same_is_pinned_once() {
    let scene = Scene::new();
    let signature = ada();
    let order = PinOrder { plan: "p", run: None, reason: "first", signature: &signature };
    let repository = scene.repository();
    let first = repository.pin_branch(&order, &scene.base).unwrap();
    assert_eq!(repository.pin_branch(&order, &scene.base).unwrap(), first);
    let other = scene.commit("a.txt", "other\n", "other");
    assert_ne!(repository.pin_branch(&order, &other).unwrap().name, first.name);
}
