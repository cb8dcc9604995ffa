//! Remotes of every kind, a git that lacks an option, and everything that a sync must not touch.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use drydock_domain::{Publish, SyncOutcome};
use drydock_testkit::{proc, wait};
use drydock_worktree::{Git, Repository};

use crate::fixture::{Fixture, read, write};
use crate::ledger::Ledger;
use crate::scene::{BRANCH, Scene};

/// Goes through every relation once, over any remote address.
fn goes_the_whole_way(scene: &Scene) {
    assert_eq!(scene.sync().name(), "no_remote_branch");
    scene.commit("b.txt", "mine\n", "mine");
    assert_eq!(scene.sync().name(), "pushed");
    assert_eq!(scene.sync().name(), "in_sync");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert_eq!(scene.sync().name(), "fast_forwarded");
    scene.remote_commit("a.txt", "theirs again\n", "theirs again");
    scene.commit("b.txt", "mine again\n", "mine again");
    assert_eq!(scene.sync().name(), "rebased");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    scene.commit("a.txt", "mine\n", "mine");
    let ledger = Ledger::of(scene);
    assert_eq!(scene.sync().name(), "recovered_by_reset");
    assert_eq!(ledger.lost(scene), [""; 0]);
    scene.repository().recovery_settle("p").unwrap();
    scene.fixture.user(&["branch", "-q", "-D", BRANCH], &scene.fixture.path("remote"));
    for _ in 0..2 {
        assert_eq!(scene.sync().name(), "no_remote_branch", "a branch that was deleted is not sent again");
    }
}

/// Breaks when a branch cannot be fetched because another worktree of the repository is being created.
#[test]
fn the_half_made_worktree_of_another_is_no_obstacle() {
    let scene = Scene::pushed();
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let other = scene.fixture.tree("other");
    scene.repository().checkout_detached(&other, &scene.local()).unwrap();
    let record = scene.fixture.user(&["rev-parse", "--absolute-git-dir"], &other);
    fs::write(Path::new(&record).join("commondir"), "").unwrap();
    assert_eq!(scene.sync().name(), "fast_forwarded");
    assert_eq!(scene.fixture.status(&other), "");
}

/// S4.14: breaks when anything depends on the remote being a directory.
#[test]
fn a_remote_in_a_directory() {
    goes_the_whole_way(&Scene::new());
}

#[test]
fn a_remote_behind_the_git_protocol() {
    let scene = Scene::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    // Started directly: `git daemon` starts it as a child, which outlives the test if only the parent is
    // killed.
    let programs = proc::run(Command::new("git").arg("--exec-path"), Duration::from_secs(30)).expect_code(0);
    let mut daemon = Command::new(Path::new(programs.stdout.trim()).join("git-daemon"));
    daemon.args(["--reuseaddr", "--export-all", "--enable=receive-pack", "--listen=127.0.0.1"]);
    daemon.arg(format!("--port={port}")).arg(format!("--base-path={}", scene.fixture.path("").display()));
    daemon.env("HOME", scene.fixture.path("home"));
    let _daemon = proc::spawn(&mut daemon);
    wait::until("the daemon listens", Duration::from_secs(30), || {
        TcpStream::connect(("127.0.0.1", port)).ok()
    });
    let address = format!("git://127.0.0.1:{port}/remote");
    scene.fixture.user(&["remote", "set-url", "origin", &address], &scene.fixture.repo());
    goes_the_whole_way(&scene);
}

/// Breaks when the user's own ssh command is not used for a remote, or the repository's is.
#[test]
fn a_remote_behind_ssh() {
    let scene = Scene::new();
    let program = |name: &str, text: &str| {
        let path = scene.fixture.path(name);
        write(&path, &format!("#!/bin/sh\n{text}\n"));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    // The remote end is this machine, and the last argument is the command to run there.
    let ssh = program("ssh", "for last; do :; done\nexec sh -c \"$last\"");
    let evil = program("evil", "exit 1");
    let repo = scene.fixture.repo();
    scene.fixture.user(&["config", "--global", "core.sshCommand", &ssh], &repo);
    scene.fixture.user(&["config", "core.sshCommand", &evil], &repo);
    let address = format!("ssh://example.org{}", scene.fixture.path("remote").display());
    scene.fixture.user(&["remote", "set-url", "origin", &address], &repo);
    goes_the_whole_way(&scene);
}

/// Breaks when the tracking of a sync changes the user's refs.
#[test]
fn the_users_own_refs_stay_as_they_are() {
    let scene = Scene::pushed();
    let repo = scene.fixture.repo();
    scene.fixture.user(&["fetch", "-q", "origin"], &repo);
    let refs =
        || scene.fixture.user(&["for-each-ref", "refs/heads/main", "refs/remotes", "refs/tags"], &repo);
    let (before, fetched) = (refs(), fs::read(repo.join(".git/FETCH_HEAD")).unwrap());
    let other = scene.other();
    scene.fixture.user(&["tag", "theirs"], &other);
    scene.fixture.user(&["push", "-q", "origin", "theirs"], &other);
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    scene.fixture.user(&["config", "fetch.prune", "true"], &repo);
    assert_eq!(scene.sync().name(), "fast_forwarded");
    assert_eq!(refs(), before);
    assert_eq!(fs::read(repo.join(".git/FETCH_HEAD")).unwrap(), fetched);
}

/// Breaks when a sync runs programs that a repository's configuration names.
#[test]
fn programs_in_the_repositorys_configuration_do_not_run() {
    let scene = Scene::pushed();
    let (witness, evil) = (scene.fixture.path("ran"), scene.fixture.path("evil"));
    write(&evil, &format!("#!/bin/sh\necho $0 >> {}\nexit 1\n", witness.display()));
    fs::set_permissions(&evil, fs::Permissions::from_mode(0o755)).unwrap();
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    scene.commit("b.txt", "mine\n", "mine");
    let keys = ["core.fsmonitor", "core.sshCommand", "core.gitProxy", "core.askPass", "credential.helper"];
    let more = ["remote.origin.uploadpack", "remote.origin.receivepack", "core.alternateRefsCommand"];
    for key in keys.iter().chain(&more) {
        scene.fixture.user(&["config", key, evil.to_str().unwrap()], &scene.fixture.repo());
    }
    // Git runs the last of these only if there is an alternate.
    let alternate = format!("{}\n", scene.fixture.path("other/.git/objects").display());
    write(&scene.fixture.repo().join(".git/objects/info/alternates"), &alternate);
    for hook in ["reference-transaction", "post-checkout", "pre-push", "post-index-change", "post-rewrite"] {
        fs::copy(&evil, scene.fixture.repo().join(".git/hooks").join(hook)).unwrap();
    }
    assert_eq!(scene.sync().name(), "rebased");
    assert!(!witness.exists(), "{}", read(&witness));
}

/// S4.13: breaks when an option that git does not know results in an empty output.
#[test]
fn a_git_that_does_not_know_an_option_says_so() {
    for (option, name) in
        [("--no-write-fetch-head", "fetch_failed"), ("--stdin-paths", "unknown"), ("--boundary", "unknown")]
    {
        let scene = Scene::pushed();
        scene.commit("b.txt", "mine\n", "mine");
        scene.remote_commit("a.txt", "theirs\n", "theirs");
        let before = scene.local();
        let outcome = Repository::open(&stub(&scene.fixture, option), &scene.fixture.repo()).unwrap();
        let outcome = outcome.sync(&scene.order());
        assert_eq!(outcome.name(), name, "{outcome:?}");
        let (SyncOutcome::FetchFailed { reason } | SyncOutcome::Unknown { reason, .. }) = outcome else {
            panic!("{outcome:?}")
        };
        assert!(reason.contains("does not support an option") && reason.contains(option), "{reason}");
        assert_eq!(scene.local(), before);
    }
}

/// Returns a git that lacks one option.
fn stub(fixture: &Fixture, refused: &str) -> Git {
    let path = fixture.path("stub");
    let text = format!(
        "#!/bin/sh\nfor word; do\n  if [ \"$word\" = {refused} ]; then\n    echo \"error: unknown option '{refused}'\" >&2\n    exit 129\n  fi\ndone\nexec git \"$@\"\n"
    );
    write(&path, &text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    Git::at(path).unwrap().with_home(&fixture.path("home"))
}

/// Breaks when missing history is mistaken for history that never existed.
#[test]
fn a_repository_that_became_shallow_is_left_alone() {
    let scene = Scene::pushed();
    let repository = scene.repository();
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    scene.commit("b.txt", "mine\n", "mine");
    let before = scene.local();
    write(&scene.fixture.repo().join(".git/shallow"), &format!("{}\n", scene.base));
    let outcome = repository.sync(&scene.order());
    let SyncOutcome::Unknown { reason, .. } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("--unshallow"), "{reason}");
    assert_eq!(scene.local(), before);
}

/// Breaks when a branch moves while it is checked out in another worktree.
#[test]
fn a_branch_that_somebody_else_has_checked_out_is_not_moved() {
    let scene = Scene::pushed();
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let before = scene.local();
    let outcome = scene.sync_with(|order| order.worktree = None);
    let SyncOutcome::Unknown { reason, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("checked out"), "{reason}");
    assert_eq!(scene.local(), before);
    assert_eq!(scene.status(), "");
}

/// Breaks when the name of a remote that is not configured is used as a directory.
#[test]
fn a_remote_that_is_not_configured_is_not_looked_for_elsewhere() {
    let scene = Scene::new();
    scene.fixture.user(&["init", "-q", "--bare", "upstream"], &scene.fixture.repo());
    scene.fixture.user(&["push", "-q", "./upstream", BRANCH], &scene.fixture.repo());
    let outcome = scene.sync_with(|order| order.remote = Some("upstream"));
    let SyncOutcome::FetchFailed { reason } = outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("configured"), "{reason}");
}

/// Breaks when a rejected push counts as sent, or changes the branch.
#[test]
fn a_push_that_is_refused_changes_nothing() {
    let scene = Scene::pushed();
    let made = scene.commit("b.txt", "mine\n", "mine");
    let hook = scene.fixture.path("remote/hooks/pre-receive");
    write(&hook, "#!/bin/sh\necho not today >&2\nexit 1\n");
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    let outcome = scene.sync();
    let SyncOutcome::PushFailed { branch, remote, head, reason } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((branch.as_str(), remote.as_str(), head.as_str()), (BRANCH, "origin", made.as_str()));
    assert!(reason.contains("not today"), "{reason}");
    assert_eq!((scene.local(), scene.remote_tip()), (made, Some(scene.base.clone())));
    fs::remove_file(hook).unwrap();
    assert_eq!(scene.sync().name(), "pushed");
}

/// Breaks when the remote's commits leave its history, or are replaced without a request.
#[test]
fn a_replacement_keeps_the_remotes_commits_in_history() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    let kept = scene.sync_with(|order| {
        order.replaces = Some(&theirs);
        order.publish = Publish::No;
    });
    assert_eq!((kept.name(), scene.local()), ("kept_local", mine.clone()));
    let outcome = scene.sync_with(|order| order.replaces = Some(&theirs));
    let SyncOutcome::Pushed { from, to, sent } = &outcome else { panic!("{outcome:?}") };
    assert_eq!((from.as_deref(), to.as_str()), (Some(theirs.as_str()), scene.local().as_str()));
    assert_eq!(sent.len(), 2);
    for commit in [&mine, &theirs] {
        assert!(scene.repository().contains(BRANCH, commit).unwrap());
    }
    assert_eq!(read(&scene.tree().join("a.txt")), "mine\n");
    assert_eq!(scene.status(), "");
    assert_eq!(scene.remote_tip(), Some(scene.local()));
    // The decision does not cover a tip that was pushed later.
    scene.remote_commit("a.txt", "theirs again\n", "theirs again");
    scene.commit("a.txt", "mine again\n", "mine again");
    assert_eq!(scene.sync_with(|order| order.replaces = Some(&theirs)).name(), "recovered_by_reset");
}

/// S4.7: breaks when a failed reset looks like one that was never tried, or writes files first.
#[test]
fn a_reset_that_fails_is_told_and_tried_again() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    write(&scene.ref_lock(), "");
    let outcome = scene.sync();
    let SyncOutcome::ResetFailed { pin, discarded, remote, reason, .. } = &outcome else {
        panic!("{outcome:?}")
    };
    assert_eq!((pin.head.as_str(), remote.as_str()), (mine.as_str(), theirs.as_str()));
    assert_eq!(discarded.len(), 1);
    assert!(reason.contains("lock"), "{reason}");
    assert_eq!(read(&scene.tree().join("a.txt")), "mine\n", "no file was written");
    assert_eq!(scene.status(), "");
    fs::remove_file(scene.ref_lock()).unwrap();
    let again = scene.sync();
    let SyncOutcome::RecoveredByReset { pin: same, .. } = &again else { panic!("{again:?}") };
    assert_eq!(same, pin);
    assert_eq!(scene.local(), theirs);
}
