//! Landing at a remote: the comparisons of the push, how its output is classified, and remotes with fewer
//! features (N2).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use drydock_worktree::{
    CommitId, Followed, IntentPushed, RemoteLanded, RemoteLanding, RemoteTip, Repository, Revoked, SentBranch,
};

use crate::fixture::{Fixture, read, write};

/// A repository with a remote `origin`, and a commit to land.
struct Scene {
    fixture: Fixture,
    repository: Repository,
    from: CommitId,
    to: CommitId,
}

impl Scene {
    fn new() -> Scene {
        let fixture = Fixture::new();
        fixture.user(&["init", "-q", "--bare", "remote"], &fixture.path(""));
        fixture.user(&["remote", "add", "origin", "../remote"], &fixture.repo());
        fixture.user(&["push", "-q", "origin", "main"], &fixture.repo());
        let from = fixture.tip("main");
        let to = fixture.build(&from, |folder| write(&folder.join("a.txt"), "landed\n"));
        let repository = fixture.open();
        Scene { fixture, repository, from, to }
    }

    fn set(&self, key: &str, value: &str) {
        self.fixture.user(&["config", key, value], &self.fixture.path("remote"));
    }

    fn hook(&self, name: &str, text: &str) {
        let path = self.fixture.path("remote/hooks").join(name);
        write(&path, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the remote's value of a ref.
    fn remote(&self, name: &str) -> Option<String> {
        let command = self
            .fixture
            .user_command(&["rev-parse", "-q", "--verify", name], &self.fixture.path("remote"))
            .output()
            .unwrap();
        command.status.success().then(|| String::from_utf8(command.stdout).unwrap().trim_end().to_owned())
    }

    fn intents(&self) -> String {
        let args = ["for-each-ref", "--format=%(refname)", "refs/drydock", "refs/heads/drydock"];
        self.fixture.user(&args, &self.fixture.path("remote"))
    }

    fn announce(&self) -> IntentPushed {
        self.repository.intent_push("origin", "pln-1", "run-1", &self.to).unwrap()
    }

    fn land(&self, intent: Option<&str>) -> RemoteLanded {
        self.land_from(Some(&self.from), intent)
    }

    fn land_from(&self, from: Option<&CommitId>, intent: Option<&str>) -> RemoteLanded {
        self.land_and_remove(from, intent, None)
    }

    fn land_and_remove(
        &self,
        from: Option<&CommitId>,
        intent: Option<&str>,
        removes: Option<&SentBranch>,
    ) -> RemoteLanded {
        let landing = RemoteLanding { remote: "origin", branch: "main", from, to: &self.to, intent, removes };
        self.repository.land_remote(&landing).unwrap()
    }

    /// Pushes the plan's branch and records its position, as a sync does; then others may push to it.
    fn send_work(&self) -> SentBranch {
        self.fixture.user(
            &["push", "-q", "origin", &format!("{}:refs/heads/{WORK}", self.from)],
            &self.fixture.repo(),
        );
        self.repository.remote_tip("origin", WORK).unwrap();
        self.repository.sent_branch("origin", WORK, &self.to).unwrap().expect("it was seen, and lands")
    }

    /// Pushes a commit to the target as another user.
    fn others_push(&self) -> CommitId {
        let theirs = self.fixture.build(&self.from, |folder| write(&folder.join("b.txt"), "theirs\n"));
        self.fixture.user(&["push", "-q", "../remote", &format!("{theirs}:main")], &self.fixture.repo());
        theirs
    }
}

const INTENT: &str = "refs/drydock/intent/pln-1/run-1";
const WORK: &str = "drydock/pln-1/work";

/// PERF-3. Breaks when the plan's branch needs its own push, or when a branch that others moved or that the
/// remote does not delete prevents the target from moving.
#[test]
fn the_push_that_lands_also_removes_the_branch_where_it_can() {
    let scene = Scene::new();
    let sent = scene.send_work();
    scene.announce();
    scene.hook("post-receive", "echo >> ../pushes");
    assert_eq!(scene.land_and_remove(Some(&scene.from), Some(INTENT), Some(&sent)), RemoteLanded::Moved);
    assert_eq!((scene.remote("main").as_deref(), scene.intents()), (Some(scene.to.as_str()), String::new()));
    assert_eq!(read(&scene.fixture.path("pushes")), "\n", "one push");
    assert_eq!(
        scene.repository.sent_branch("origin", WORK, &scene.to).unwrap(),
        None,
        "nothing is left to remove"
    );

    let moved = Scene::new();
    let sent = moved.send_work();
    moved.announce();
    let theirs = moved.fixture.build(&moved.from, |folder| write(&folder.join("b.txt"), "theirs\n"));
    moved.fixture.user(&["push", "-q", "../remote", &format!("{theirs}:{WORK}")], &moved.fixture.repo());
    moved.hook("post-receive", "echo >> ../pushes");
    assert_eq!(moved.land_and_remove(Some(&moved.from), Some(INTENT), Some(&sent)), RemoteLanded::Moved);
    assert_eq!(read(&moved.fixture.path("pushes")), "\n", "target and intent were compared in one push");
    let left = (moved.remote("main"), moved.remote(WORK));
    assert_eq!(left, (Some(moved.to.to_string()), Some(theirs.to_string())), "their commit stays");

    let keeps = Scene::new();
    let sent = keeps.send_work();
    keeps.announce();
    keeps.hook("update", &format!("case $1 in refs/heads/{WORK}) exit 1;; esac"));
    assert_eq!(keeps.land_and_remove(Some(&keeps.from), Some(INTENT), Some(&sent)), RemoteLanded::Moved);
    assert_eq!(keeps.remote("main").as_deref(), Some(keeps.to.as_str()));
}

/// BUG-2, fleet-and-load 6. Breaks when the target moves although it or the intent is not at the expected
/// commit, or does not move although both are.
#[test]
fn the_push_compares_target_and_intent_in_one_step() {
    let scene = Scene::new();
    assert_eq!(scene.announce(), IntentPushed::As(INTENT.into()));
    assert_eq!(scene.remote(INTENT).as_deref(), Some(scene.to.as_str()));
    assert_eq!(scene.land(Some(INTENT)), RemoteLanded::Moved);
    assert_eq!((scene.remote("main").as_deref(), scene.intents()), (Some(scene.to.as_str()), String::new()));

    let revoked = Scene::new();
    revoked.announce();
    assert_eq!(revoked.repository.intents_revoke("origin", "pln-1").unwrap(), Revoked::Gone);
    assert!(matches!(revoked.land(Some(INTENT)), RemoteLanded::Again { .. }), "taken over meanwhile");
    assert_eq!(revoked.remote("main").as_deref(), Some(revoked.from.as_str()));

    let moved = Scene::new();
    moved.announce();
    let theirs = moved.others_push();
    let RemoteLanded::Again { text } = moved.land(Some(INTENT)) else { panic!("the target has moved") };
    assert!(text.contains("stale info"), "{text}");
    assert_eq!((moved.remote("main").as_deref(), moved.intents()), (Some(theirs.as_str()), INTENT.into()));
    assert_eq!(moved.repository.remote_tip("origin", "main").unwrap(), RemoteTip::At(theirs));
}

/// BUG-3. Breaks when a process that resumes after a takeover can still land, regardless of when it read the
/// refs.
#[test]
fn a_late_push_is_refused_by_the_remote_itself() {
    let scene = Scene::new();
    scene.announce();
    // The hook runs after the remote has sent its refs: the takeover happens exactly then.
    scene.hook("pre-receive", &format!("env -u GIT_QUARANTINE_PATH git update-ref -d {INTENT}"));
    assert!(matches!(scene.land(Some(INTENT)), RemoteLanded::Again { .. }));
    assert_eq!(scene.remote("main").as_deref(), Some(scene.from.as_str()));
}

/// N2. Breaks when drydock cannot land on a remote that hides our refs, or when a rejection is reported as
/// success.
#[test]
fn a_remote_that_allows_less_is_landed_on_in_another_way() {
    let hidden = Scene::new();
    hidden.set("receive.hideRefs", "refs/drydock");
    let IntentPushed::As(branch) = hidden.announce() else { panic!("a branch can be pushed") };
    assert_eq!(branch, "refs/heads/drydock/intent/pln-1/run-1");
    assert_eq!(hidden.land(Some(&branch)), RemoteLanded::Moved);
    assert_eq!(
        (hidden.remote("main").as_deref(), hidden.intents()),
        (Some(hidden.to.as_str()), String::new())
    );

    let keeps = Scene::new();
    keeps.hook("update", "case $1 in refs/drydock/*) exit 1;; esac");
    keeps.set("receive.denyDeletes", "true");
    let IntentPushed::As(branch) = keeps.announce() else { panic!("a branch can be pushed") };
    assert_eq!(keeps.land(Some(&branch)), RemoteLanded::Moved, "the intent cannot be deleted with it");
    assert_eq!(keeps.remote("main").as_deref(), Some(keeps.to.as_str()));
    assert!(matches!(keeps.repository.intents_revoke("origin", "pln-1").unwrap(), Revoked::Refused { .. }));

    let plain = Scene::new();
    plain.set("receive.advertiseAtomic", "false");
    plain.announce();
    assert_eq!(plain.land(Some(INTENT)), RemoteLanded::Moved);
    assert_eq!((plain.remote("main").as_deref(), plain.intents()), (Some(plain.to.as_str()), String::new()));

    let late = Scene::new();
    late.set("receive.advertiseAtomic", "false");
    assert!(matches!(late.land(Some(INTENT)), RemoteLanded::Again { .. }), "there is no intent");
    assert!(matches!(late.land(None), RemoteLanded::Moved));
}

/// N2. Breaks when the remote's message is lost, or a permanent rejection is retried.
#[test]
fn what_a_remote_refuses_is_said_in_its_words() {
    let guarded = Scene::new();
    guarded.hook("update", "[ $1 != refs/heads/main ] || { echo main is protected >&2; exit 1; }");
    guarded.announce();
    let RemoteLanded::Refused { text } = guarded.land(Some(INTENT)) else { panic!("it is protected") };
    assert!(text.contains("hook declined") && text.contains("main is protected"), "{text}");

    let closed = Scene::new();
    closed.hook("pre-receive", "echo closed for today >&2; exit 1");
    assert_eq!(closed.announce(), IntentPushed::Refused);
    let RemoteLanded::Refused { text } = closed.land(None) else { panic!("it is closed") };
    assert!(text.contains("closed for today"), "{text}");

    let locked = Scene::new();
    locked.announce();
    write(&locked.fixture.path("remote/refs/heads/main.lock"), "");
    assert!(matches!(locked.land(Some(INTENT)), RemoteLanded::Again { .. }), "another push is under way");

    let gone = Scene::new();
    gone.announce();
    fs::rename(gone.fixture.path("remote"), gone.fixture.path("elsewhere")).unwrap();
    assert!(matches!(gone.land(Some(INTENT)), RemoteLanded::Away { .. }));
    assert!(matches!(gone.announce(), IntentPushed::Away { .. }));
    assert!(matches!(gone.repository.remote_tip("origin", "main").unwrap(), RemoteTip::Away { .. }));
    assert!(matches!(gone.repository.intents_revoke("origin", "pln-1").unwrap(), Revoked::Away { .. }));
}

/// N2. Breaks when a target missing at the remote is not created, or overwrites one that was created
/// concurrently.
#[test]
fn a_missing_target_is_made_and_nothing_is_made_over() {
    let scene = Scene::new();
    scene.fixture.user(&["update-ref", "-d", "refs/heads/main"], &scene.fixture.path("remote"));
    assert_eq!(scene.repository.remote_tip("origin", "main").unwrap(), RemoteTip::Absent);
    assert!(matches!(scene.land(None), RemoteLanded::Again { .. }), "it was expected");
    assert_eq!(scene.land_from(None, None), RemoteLanded::Moved);
    assert_eq!(scene.remote("main").as_deref(), Some(scene.to.as_str()));

    let raced = Scene::new();
    let theirs = raced.others_push();
    assert!(matches!(raced.land_from(None, None), RemoteLanded::Again { .. }));
    assert_eq!(raced.remote("main"), Some(theirs.to_string()));
}

/// N2. Breaks when the local branch does not follow its remote, or following loses a user's edits or commits.
#[test]
fn the_local_branch_follows_where_it_can() {
    let permit = |scene: &Scene| {
        scene.repository.ref_create(INTENT, &scene.to).unwrap();
        scene.repository.follow("main", &scene.to, INTENT).unwrap()
    };
    let clean = Scene::new();
    assert_eq!(permit(&clean), Followed::Done);
    assert_eq!(read(&clean.fixture.repo().join("a.txt")), "landed\n");
    assert_eq!(clean.fixture.tip("main"), clean.to);

    let dirty = Scene::new();
    dirty.fixture.write("a.txt", "mine\n");
    assert_eq!(permit(&dirty), Followed::Dirty(vec!["a.txt".into()]));
    assert_eq!(read(&dirty.fixture.repo().join("a.txt")), "mine\n");

    let ahead = Scene::new();
    ahead.fixture.write("b.txt", "mine\n");
    let mine = ahead.fixture.commit_all("mine");
    assert_eq!(permit(&ahead), Followed::Diverged);
    assert_eq!(ahead.fixture.tip("main"), mine);
}

/// S2.3, B8, BUG-3. Breaks when a landing is not found by its commit message, or a missing object is an
/// error.
#[test]
fn a_landing_is_found_on_the_line_of_the_target() {
    let scene = Scene::new();
    let repository = &scene.repository;
    let commit = |parents: &[CommitId], text: &str| {
        let tree = repository.tree_of(&scene.to).unwrap();
        repository.commit(&tree, parents, text, &crate::fixture::ada()).unwrap()
    };
    let landing = commit(std::slice::from_ref(&scene.from), "It\n\nDrydock-Plan: pln-1\nDrydock-Run: run-1");
    let work = commit(std::slice::from_ref(&scene.from), "Work\n\nDrydock-Plan: pln-2\nDrydock-Run: run-2");
    let tip = commit(&[landing.clone(), work], "Merge\n\nDrydock-Plan: pln-3");
    let found = |plan: &str, base| repository.landing_of(plan, base, &tip).unwrap();
    assert_eq!(found("pln-1", &scene.from), Some(landing.clone()));
    assert_eq!(found("pln-1", &landing), None, "the plan was begun again on top of it");
    assert_eq!(found("pln-2", &scene.from), None, "work that was merged is not a landing");
    assert_eq!(found("pln-3", &scene.from), None);

    let nowhere: CommitId = "0123456789012345678901234567890123456789".parse().unwrap();
    assert!(!repository.descends(&tip, &nowhere).unwrap());
    assert!(!repository.contains("main", &nowhere).unwrap());
}
