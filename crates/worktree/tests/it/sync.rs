//! Syncing a branch with its remote: every outcome, on real repositories.

use drydock_domain::{Publish, PublishResult, SyncOutcome};

use crate::fixture::{Fixture, read, write};
use crate::scene::Scene;

/// S4.1: each test in this file breaks when the input or the step for its relation is wrong.
#[test]
fn without_a_remote_nothing_is_asked() {
    let scene = Scene::new();
    assert_eq!(scene.sync_with(|order| order.remote = None), SyncOutcome::NoRemote);
}

#[test]
fn a_branch_at_the_same_commit_is_in_sync() {
    let scene = Scene::pushed();
    assert_eq!(scene.sync(), SyncOutcome::InSync { head: scene.local().to_string() });
}

#[test]
fn a_branch_that_is_ahead_is_sent_or_kept() {
    let scene = Scene::pushed();
    let before = scene.remote_tip().unwrap();
    let made = scene.commit("b.txt", "mine\n", "mine");
    match scene.sync_with(|order| order.publish = Publish::No) {
        SyncOutcome::KeptLocal { head, local } => {
            assert_eq!(head, made.as_str());
            assert_eq!(local.len(), 1);
            assert_eq!((local[0].subject.as_str(), local[0].author.as_str()), ("mine", "Ada"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.remote_tip().unwrap(), before);
    match scene.sync() {
        SyncOutcome::Pushed { from, to, sent } => {
            assert_eq!((from.as_deref(), to.as_str()), (Some(before.as_str()), made.as_str()));
            assert_eq!(sent.len(), 1);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.remote_tip().unwrap(), made);
}

#[test]
fn a_branch_that_is_behind_moves_forward_with_its_files() {
    let scene = Scene::pushed();
    let from = scene.local();
    let to = scene.remote_commit("a.txt", "theirs\n", "theirs");
    match scene.sync() {
        SyncOutcome::FastForwarded { from: was, to: is, arrived } => {
            assert_eq!((was.as_str(), is.as_str()), (from.as_str(), to.as_str()));
            assert_eq!(arrived[0].subject, "theirs");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(read(&scene.tree().join("a.txt")), "theirs\n");
    assert_eq!(scene.status(), "");
    assert_eq!(scene.sync(), SyncOutcome::InSync { head: to.to_string() });
}

#[test]
fn a_divergence_without_conflict_is_rebased_and_sent() {
    let scene = Scene::pushed();
    let mine = scene.commit("b.txt", "mine\n", "mine");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    match scene.sync() {
        SyncOutcome::Rebased { from, to, onto, pin, discarded, absorbed, replayed, arrived, publishing } => {
            assert_eq!((discarded[0].id.as_str(), absorbed), (mine.as_str(), Vec::new()), "S4.4: it left");
            assert_eq!((from.as_str(), onto.as_str()), (mine.as_str(), theirs.as_str()));
            assert_eq!(pin.commit, mine.as_str());
            assert_eq!((replayed.len(), arrived.len()), (1, 1));
            assert_eq!(publishing, PublishResult::Done);
            assert_eq!(to, scene.local().as_str());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(read(&scene.tree().join("a.txt")), "theirs\n");
    assert_eq!(read(&scene.tree().join("b.txt")), "mine\n");
    assert_eq!(scene.status(), "");
    assert_eq!(scene.remote_tip().unwrap(), scene.local());
}

#[test]
fn a_conflict_is_recovered_by_pin_and_reset() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    write(&scene.tree().join("new.txt"), "untracked\n");
    let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
    let outcome = scene.sync();
    match &outcome {
        SyncOutcome::RecoveredByReset { pin, discarded, to, arrived, clash } => {
            assert_eq!(pin.head, mine.as_str());
            assert_eq!(to, theirs.as_str());
            assert_eq!((discarded.len(), arrived.len()), (1, 1));
            assert_eq!(clash.paths, ["a.txt"]);
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(scene.local(), theirs);
    assert_eq!(scene.status(), "");
    assert_eq!(scene.sync(), outcome, "the same is reported until it is settled");
    scene.repository().recovery_settle("p").unwrap();
    assert_eq!(scene.sync(), SyncOutcome::InSync { head: theirs.to_string() });
}

/// N10. Breaks when the first push of a branch sends what the remote has: without the target's newest commit, git knows of
/// nothing that the remote has and sends the whole history.
#[test]
fn the_first_push_sends_only_what_the_remote_lacks() {
    let fixture = Fixture::new();
    for number in 0..20 {
        write(&fixture.repo().join("a.txt"), &format!("{number}\n"));
        fixture.commit_in(&fixture.repo(), "one more");
    }
    let scene = Scene::on(fixture);
    let (repo, remote) = (scene.fixture.repo(), scene.fixture.path("remote"));
    scene.fixture.user(&["push", "-q", "origin", "main"], &repo);
    // Another user moves the target.
    let other = scene.fixture.path("other");
    scene.fixture.user(&["clone", "-q", "-b", "main", "remote", "other"], &scene.fixture.path(""));
    write(&other.join("theirs.txt"), "theirs\n");
    scene.fixture.commit_in(&other, "theirs");
    scene.fixture.user(&["push", "-q", "origin", "main"], &other);
    // The remote keeps each push as a pack, so that its objects can be counted.
    scene.fixture.user(&["config", "receive.unpackLimit", "1"], &remote);
    let packed = || {
        let counts = scene.fixture.user(&["count-objects", "-v"], &remote);
        let line = counts.lines().find_map(|line| line.strip_prefix("in-pack: ")).unwrap();
        line.parse::<usize>().unwrap()
    };
    let before = packed();
    scene.commit("b.txt", "mine\n", "mine");
    assert!(matches!(scene.sync(), SyncOutcome::Pushed { .. }));
    assert_eq!(packed() - before, 3, "a commit, a tree and a file");
}
