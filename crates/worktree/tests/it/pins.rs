//! Backups: created without collision, listed, restored, removed (S4.3).

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use drydock_domain::Uncommitted;
use drydock_worktree::{BackupRequest, GitError, PinDropped, RestoreOutcome};

use crate::child;
use crate::fixture::{ada, write};
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(300);

/// Breaks when a backup is written without checking that its name is free.
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

/// Breaks when the metadata of a backup is lost, or commits that a branch has are listed as its own.
#[test]
fn a_pin_says_what_it_keeps_and_why() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    write(&scene.tree().join("new.txt"), "new\n");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let pins = scene.repository().backup_list(None).unwrap();
    let [pin] = pins.as_slice() else { panic!("{pins:?}") };
    assert_eq!(pin.name, "refs/drydock/pin/p/1");
    assert_eq!((pin.plan.as_str(), pin.run.as_deref(), pin.reason.as_str()), ("p", Some("r"), "sync"));
    assert_eq!((&pin.head, pin.uncommitted), (&mine, Uncommitted::Kept));
    assert_eq!(pin.remote.as_deref(), Some(theirs.as_str()));
    assert_eq!(pin.created_at_seconds, ada().at_seconds);
    let subjects: Vec<&str> = pin.commits.iter().map(|commit| commit.subject.as_str()).collect();
    assert_eq!(subjects, ["mine"]);
    for name in ["refs/drydock/pin/p/1", "p/1"] {
        assert_eq!(scene.repository().backup_find(name).unwrap().as_ref(), Some(pin));
    }
    assert_eq!(scene.repository().backup_find("p/2").unwrap(), None);
    assert!(matches!(scene.repository().backup_find("refs/heads/main"), Err(GitError::BadName { .. })));
    assert_eq!(scene.repository().backup_list(Some("q")).unwrap(), []);
}

/// Breaks when restoring a backup moves an existing branch.
#[test]
fn a_pin_comes_back_as_a_branch_that_did_not_exist() {
    let scene = Scene::pushed();
    scene.commit("a.txt", "mine\n", "mine");
    write(&scene.tree().join("new.txt"), "new\n");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let repository = scene.repository();
    let RestoreOutcome::Created { commit } = repository.backup_restore("p/1", "back").unwrap() else {
        panic!("new")
    };
    assert_eq!(scene.fixture.tip("back"), commit);
    let show = |what: &str| scene.fixture.user(&["show", &format!("back:{what}")], &scene.fixture.repo());
    assert_eq!((show("a.txt"), show("new.txt")), ("mine".to_owned(), "new".to_owned()));
    let again = repository.backup_restore("p/1", "main").unwrap();
    assert_eq!(again, RestoreOutcome::BranchExists { at: scene.base.clone() });
    assert_eq!(repository.backup_restore("p/7", "other").unwrap(), RestoreOutcome::NoSuchPin);
}

/// N4: breaks when a backup is removed that keeps unique content, or one without unique content stays.
#[test]
fn a_pin_goes_when_all_it_keeps_is_elsewhere_or_by_a_word() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    let repository = scene.repository();
    let signature = ada();
    let order = BackupRequest { plan: "p", run: None, reason: "reachable", signature: &signature };
    let reachable = repository.backup_branch(&order, &scene.base).unwrap();
    let PinDropped::Gone(_) = repository.backup_drop(&reachable.name, false).unwrap() else {
        panic!("it stays")
    };
    let PinDropped::Needed(pin) = repository.backup_drop("p/1", false).unwrap() else { panic!("it went") };
    assert_eq!(pin.needed.as_deref(), Some("it contains a commit that exists nowhere else"));
    scene.fixture.user(&["branch", "kept", mine.as_str()], &scene.fixture.repo());
    let pin = repository.backup_find("p/1").unwrap().unwrap();
    assert_eq!(pin.needed.as_deref(), Some("an unfinished recovery needs it"));
    repository.recovery_settle("p").unwrap();
    let PinDropped::Gone(_) = repository.backup_drop("p/1", false).unwrap() else { panic!("it stays") };
    assert_eq!(repository.refs("refs/drydock/pin-about/").unwrap(), []);
    scene.fixture.user(&["branch", "-D", "kept"], &scene.fixture.repo());
    let last = repository.backup_branch(&order, &mine).unwrap();
    let PinDropped::Gone(_) = repository.backup_drop(&last.name, true).unwrap() else { panic!("it stays") };
    assert_eq!(repository.backup_drop(&last.name, true).unwrap(), PinDropped::Absent);
    assert_eq!(repository.backup_list(None).unwrap(), []);
}

/// B1, D5: breaks when a ref that drydock moves counts as a copy: a plan's branch, local or as last seen on a
/// remote, or any ref below `refs/drydock/`.
#[test]
fn a_plans_own_refs_are_no_copies() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    let signature = ada();
    let order = BackupRequest { plan: "p", run: None, reason: "kept", signature: &signature };
    let repository = scene.repository();
    let pin = repository.backup_branch(&order, &mine).unwrap();
    let refer = |name: &str| scene.fixture.user(&["update-ref", name, mine.as_str()], &scene.fixture.repo());
    for own in [
        "refs/heads/drydock/p/work",
        "refs/heads/drydock/intent/p/r",
        "refs/remotes/origin/drydock/p/work",
        "refs/remotes/team/mirror/drydock/q/work",
        "refs/prefetch/remotes/origin/drydock/p/work",
        "refs/drydock/remote/origin/drydock/p/work",
        "refs/drydock/snapshot/p/1",
    ] {
        refer(own);
        let seen = repository.backup_find(&pin.name).unwrap().unwrap();
        assert_eq!(seen.commits.len(), 1, "{own} is no copy");
        assert_eq!(repository.backup_list(None).unwrap(), [seen], "one function says so everywhere");
        assert!(matches!(repository.backup_drop(&pin.name, false).unwrap(), PinDropped::Needed(_)), "{own}");
    }
    for copy in ["refs/heads/mine", "refs/remotes/origin/mine", "refs/tags/mine"] {
        refer(copy);
        assert_eq!(repository.backup_find(&pin.name).unwrap().unwrap().needed, None, "{copy} is one");
        scene.fixture.user(&["update-ref", "-d", copy], &scene.fixture.repo());
    }
}

/// Breaks when a crash and a second attempt create several backups of the same content.
#[test]
fn the_same_is_pinned_once() {
    let scene = Scene::new();
    let signature = ada();
    let order = BackupRequest { plan: "p", run: None, reason: "first", signature: &signature };
    let repository = scene.repository();
    let first = repository.backup_branch(&order, &scene.base).unwrap();
    assert_eq!(repository.backup_branch(&order, &scene.base).unwrap(), first);
    let other = scene.commit("a.txt", "other\n", "other");
    assert_ne!(repository.backup_branch(&order, &other).unwrap().name, first.name);
}
