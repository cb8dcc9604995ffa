//! A sync that crashes at any point is completed by the next: the same outcome, one backup, nothing lost
//! (S4.2, S4.14).

use std::time::Duration;

use drydock_domain::SyncOutcome;
use drydock_testkit::wait;
use drydock_worktree::CommitId;

use crate::child;
use crate::fixture::{read, write};
use crate::ledger::Ledger;
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(120);
const POINTS: [&str; 7] =
    ["sync.fetched", "sync.replayed", "sync.pinned", "sync.files", "sync.index", "sync.moved", "sync.pushed"];

/// Crashes at a point; returns true if the sync reached it.
fn dies(scene: &Scene, point: &str, replaces: Option<&CommitId>) -> bool {
    let ended = child::sync_and_die(scene, point, replaces).wait(LIMIT);
    match ended.code() {
        None => true,
        Some(0) => false,
        Some(code) => panic!("{code}: {}{}", ended.stdout, ended.stderr),
    }
}

fn pins(scene: &Scene) -> Vec<String> {
    scene.repository().backup_list(Some("p")).unwrap().into_iter().map(|pin| pin.name).collect()
}

/// Breaks when the marker does not survive the crash, or the branch moves before its files.
#[test]
fn a_recovery_that_dies_anywhere_is_reported_as_if_it_had_not() {
    let mut died = Vec::new();
    for point in POINTS {
        let scene = Scene::pushed();
        let mine = scene.commit("a.txt", "mine\n", "mine");
        write(&scene.tree().join("a.txt"), "edited\n");
        write(&scene.tree().join("new.txt"), "new\n");
        let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
        let ledger = Ledger::of(&scene);
        if !dies(&scene, point, None) {
            continue;
        }
        died.push(point);
        assert_eq!(ledger.lost(&scene), [""; 0], "{point}");
        let files_first = scene.local() == theirs && read(&scene.tree().join("a.txt")) != "theirs\n";
        assert!(!files_first, "{point}: the branch moved before its files");
        let outcome = scene.sync();
        let SyncOutcome::RecoveredByReset { pin, discarded, to, .. } = &outcome else {
            panic!("{point}: {outcome:?}")
        };
        assert_eq!((pin.head.as_str(), to.as_str()), (mine.as_str(), theirs.as_str()), "{point}");
        assert_eq!(discarded.len(), 1, "{point}");
        assert_eq!(pins(&scene), [pin.name.as_str()], "{point}: one pin, however often it died");
        assert_eq!(scene.local(), theirs, "{point}");
        assert_eq!(scene.status(), "", "{point}");
        assert_eq!(ledger.lost(&scene), [""; 0], "{point}");
        assert_eq!(scene.sync(), outcome, "{point}");
        assert_eq!(scene.repository().recovery_pin("p").unwrap().as_ref(), Some(&pin.name));
        scene.repository().recovery_settle("p").unwrap();
        assert_eq!(scene.sync().name(), "in_sync", "{point}");
    }
    assert_eq!(
        died,
        ["sync.fetched", "sync.replayed", "sync.pinned", "sync.files", "sync.index", "sync.moved"]
    );
}

/// Breaks when files that a crash left newer than the branch count as conflicting edits.
#[test]
fn a_rebase_with_edits_that_dies_anywhere_is_completed() {
    let mut died = Vec::new();
    for point in POINTS {
        let scene = Scene::pushed();
        scene.commit("b.txt", "mine\n", "mine");
        write(&scene.tree().join("dir/c.txt"), "edited\n");
        write(&scene.tree().join("new.txt"), "new\n");
        scene.remote_commit("a.txt", "theirs\n", "theirs");
        let ledger = Ledger::of(&scene);
        if !dies(&scene, point, None) {
            continue;
        }
        died.push(point);
        let outcome = scene.sync();
        assert!(matches!(outcome.name(), "rebased" | "pushed" | "in_sync"), "{point}: {outcome:?}");
        assert_eq!(ledger.lost(&scene), [""; 0], "{point}");
        assert_eq!(scene.sync().name(), "in_sync", "{point}");
        let texts = ["a.txt", "b.txt", "dir/c.txt", "new.txt"].map(|name| read(&scene.tree().join(name)));
        assert_eq!(texts, ["theirs\n", "mine\n", "edited\n", "new\n"], "{point}");
        assert_eq!(scene.status(), " M dir/c.txt\n?? new.txt", "{point}");
        assert_eq!(scene.remote_tip(), Some(scene.local()), "{point}");
    }
    assert_eq!(died, POINTS);
}

/// Breaks when a fast-forward moves its branch before its files.
#[test]
fn a_fast_forward_that_dies_anywhere_is_completed() {
    for point in POINTS {
        let scene = Scene::pushed();
        write(&scene.tree().join("dir/c.txt"), "edited\n");
        let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
        let ledger = Ledger::of(&scene);
        dies(&scene, point, None);
        assert!(matches!(scene.sync().name(), "fast_forwarded" | "in_sync"), "{point}");
        assert_eq!(scene.local(), theirs, "{point}");
        assert_eq!(scene.status(), " M dir/c.txt", "{point}");
        assert_eq!(ledger.lost(&scene), [""; 0], "{point}");
    }
}

/// Breaks when the branch moves to a commit that the remote does not have.
#[test]
fn a_replacement_that_dies_anywhere_is_completed() {
    for point in POINTS {
        let scene = Scene::pushed();
        scene.commit("a.txt", "mine\n", "mine");
        let theirs = scene.remote_commit("a.txt", "theirs\n", "theirs");
        let ledger = Ledger::of(&scene);
        dies(&scene, point, Some(&theirs));
        let outcome = scene.sync_with(|order| order.replaces = Some(&theirs));
        assert!(matches!(outcome.name(), "pushed" | "fast_forwarded" | "in_sync"), "{point}: {outcome:?}");
        assert_eq!(scene.remote_tip(), Some(scene.local()), "{point}");
        assert_eq!(read(&scene.tree().join("a.txt")), "mine\n", "{point}");
        assert_eq!(scene.status(), "", "{point}");
        assert_eq!(ledger.lost(&scene), [""; 0], "{point}");
    }
}

/// Breaks when the completion of a reset assumes that the directory has not changed since.
#[test]
fn work_done_after_the_crash_is_kept_as_well() {
    let scene = Scene::pushed();
    scene.commit("a.txt", "mine\n", "mine");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert!(dies(&scene, "sync.pinned", None));
    write(&scene.tree().join("a.txt"), "edited after the crash\n");
    let ledger = Ledger::of(&scene);
    let outcome = scene.sync();
    assert_eq!(outcome.name(), "recovered_by_reset", "{outcome:?}");
    assert_eq!(ledger.lost(&scene), [""; 0]);
    assert_eq!(pins(&scene).len(), 2, "the second has the new edit");
    assert_eq!(scene.status(), "");
}

/// Breaks when commits made after the crash are mistaken for those that the marker names.
#[test]
fn commits_made_after_the_crash_start_a_new_recovery() {
    let scene = Scene::pushed();
    scene.commit("a.txt", "mine\n", "mine");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    assert!(dies(&scene, "sync.pinned", None));
    // The crash left drydock's own lock, which a user would have to remove before working there.
    std::fs::remove_file(scene.git_dir().join("index.lock")).unwrap();
    let later = scene.commit("b.txt", "later\n", "later");
    let ledger = Ledger::of(&scene);
    let SyncOutcome::RecoveredByReset { pin, discarded, .. } = scene.sync() else { panic!("a conflict") };
    assert_eq!((pin.head.as_str(), discarded.len()), (later.as_str(), 2));
    assert_eq!(ledger.lost(&scene), [""; 0]);
}

/// Breaks when a process that resumes late moves a branch whose recovery was finished without it.
#[test]
fn a_reset_does_nothing_once_its_recovery_is_settled() {
    let scene = Scene::pushed();
    let mine = scene.commit("a.txt", "mine\n", "mine");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let go_on = scene.fixture.path("go-on");
    let late = child::sync_and_stall(&scene, "sync.pinned", &go_on);
    wait::until("the recovery is marked", LIMIT, || scene.repository().recovery_pin("p").unwrap());
    scene.repository().recovery_settle("p").unwrap();
    write(&go_on, "");
    let ended = late.wait(LIMIT).expect_code(0);
    assert!(ended.stdout.contains("reset_failed"), "{}", ended.stdout);
    assert_eq!(scene.local(), mine);
    assert_eq!(read(&scene.tree().join("a.txt")), "mine\n");
    assert_eq!(scene.status(), "");
}
