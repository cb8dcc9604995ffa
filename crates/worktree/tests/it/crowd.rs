//! Repositories with very many worktrees and refs, which a landing must not process one by one or pair by
//! pair.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use drydock_worktree::{BackupRequest, CommitId, LandOutcome, Push};

use crate::fixture::{Fixture, ada, land, write};
use crate::scene::{BRANCH, Scene};

/// Adds records of worktrees that are elsewhere, such as other plans' worktrees on a shared disk.
fn records(fixture: &Fixture, count: usize) {
    // Another spelling of the path, so that a plain text comparison finds no match.
    fs::create_dir_all(fixture.path("far")).unwrap();
    symlink(fixture.path("far"), fixture.path("link")).unwrap();
    for number in 0..count {
        let record = fixture.repo().join(format!(".git/worktrees/far-{number}"));
        write(&record.join("commondir"), "../..\n");
        write(&record.join("HEAD"), &format!("ref: refs/heads/drydock/far-{number}/work\n"));
        let tree = fixture.path(&format!("far/{number}"));
        fs::create_dir_all(&tree).unwrap();
        write(&tree.join(".git"), &format!("gitdir: {}\n", record.display()));
        let link = fixture.path(&format!("link/{number}/.git"));
        write(&record.join("gitdir"), &format!("{}\n", link.display()));
    }
}

/// PERF-1. Breaks when each worktree is compared with every other one: with 1,000 of them that took 6 s of a
/// landing.
#[test]
fn a_landing_takes_no_longer_for_a_thousand_worktrees() {
    let fixture = Fixture::new();
    let from = fixture.tip("main");
    let to = fixture.build(&from, |folder| write(&folder.join("a.txt"), "landed\n"));
    let repository = fixture.open();
    records(&fixture, 1_000);
    let began = Instant::now();
    assert_eq!(land(&repository, "main", &from, &to).unwrap(), LandOutcome::Moved);
    assert_eq!(repository.checkout_open(&fixture.path("nowhere")).unwrap().map(drop), None);
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
}

/// PERF-1. Breaks when a record is missed because it spells the path of its worktree differently, or relative
/// to itself.
#[test]
fn a_worktree_is_found_however_its_record_spells_the_path() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let (path, other) = (fixture.tree("p"), fixture.path("other"));
    repository.checkout_add(&path, BRANCH, &base).unwrap();
    symlink(fixture.path("store"), fixture.path("alias")).unwrap();
    let spellings = [
        fixture.path("alias/worktrees/p/1/.git").display().to_string(),
        "../../../../store/worktrees/p/1/.git".to_owned(),
    ];
    for spelling in spellings {
        write(&fixture.repo().join(".git/worktrees/1/gitdir"), &format!("{spelling}\n"));
        assert!(repository.checkout_open(&path).unwrap().is_some(), "{spelling}");
        let refused = repository.checkout_add(&other, BRANCH, &base).unwrap_err();
        assert!(refused.to_string().contains("is checked out in"), "{spelling}: {refused}");
        repository.branch_put(BRANCH, &base, &base).unwrap_err();
    }
}

/// PERF-3. Breaks when every ref is read to find that one of the plan's refs keeps a commit. A dangling ref
/// makes git fail if it reads all of them.
#[test]
fn the_likely_keepers_are_asked_before_all_refs() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    write(&checkout.path().join("new.txt"), "new\n");
    let commit = fixture.commit_in(checkout.path(), "work");
    repository.ref_create("refs/drydock/snap/p/1", &commit).unwrap();
    write(&fixture.repo().join(".git/refs/heads/nowhere"), &format!("{}\n", "1".repeat(40)));

    let likely = ["refs/drydock/snap/p/".to_owned()];
    assert!(repository.branch_is_kept_elsewhere(BRANCH, &likely).unwrap());
    let order = BackupRequest { plan: "p", run: None, reason: "test", signature: &ada() };
    assert_eq!(repository.backup_checkout(&order, &checkout).unwrap(), None);
    repository.branch_is_kept_elsewhere(BRANCH, &[]).unwrap_err();
}

/// INV-KEEP. Breaks when a commit counts as kept because its own branch has it, or is not found if only an
/// unlikely ref has it.
#[test]
fn a_branch_is_kept_by_any_other_ref_but_not_by_itself() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    write(&checkout.path().join("new.txt"), "new\n");
    let commit = fixture.commit_in(checkout.path(), "work");
    let likely = [format!("refs/heads/{BRANCH}"), "refs/heads/main".to_owned()];
    assert!(!repository.branch_is_kept_elsewhere(BRANCH, &likely).unwrap());
    fixture.user(&["tag", "unlikely", commit.as_str()], &fixture.repo());
    assert!(repository.branch_is_kept_elsewhere(BRANCH, &likely).unwrap());
}

/// PERF-3. Breaks when a landed plan's refs stay here or at the remote, or when a ref is removed that
/// contains more than landed.
#[test]
fn what_landed_leaves_no_refs_and_what_did_not_stays() {
    let scene = Scene::pushed();
    let (repository, fixture) = (scene.repository(), &scene.fixture);
    let landed = scene.commit("a.txt", "mine\n", "mine");
    assert_eq!(scene.sync().name(), "pushed");
    repository.ref_create("refs/drydock/snap/p/1", &landed).unwrap();
    repository.ref_create("refs/drydock/snap/pp/1", &landed).unwrap();
    let snapshots = ["refs/drydock/snap/p/".to_owned()];
    let forget = |landed: &CommitId| repository.branch_forget(BRANCH, landed, &snapshots).unwrap();
    let base = fixture.tip("main");

    assert_eq!(
        repository.branch_forget_at("origin", BRANCH, &base).unwrap(),
        None,
        "it has more than the base"
    );
    scene.remote_commit("b.txt", "theirs\n", "theirs");
    let refused = repository.branch_forget_at("origin", BRANCH, &landed).unwrap();
    assert!(matches!(refused, Some(Push::Rejected { .. })), "a colleague's push came after: {refused:?}");
    assert!(scene.remote_tip().is_some());
    assert_eq!(scene.sync().name(), "fast_forwarded");
    let landed = scene.local();
    assert_eq!(repository.branch_forget_at("origin", BRANCH, &landed).unwrap(), Some(Push::Pushed));
    assert_eq!(scene.remote_tip(), None);
    assert_eq!(repository.branch_forget_at("origin", BRANCH, &landed).unwrap(), None, "again");

    assert_eq!(forget(&landed), ["refs/drydock/snap/p/1"], "the branch is checked out");
    repository.checkout_remove(&scene.tree()).unwrap();
    assert_eq!(forget(&base), Vec::<String>::new(), "the branch has more");
    assert_eq!(forget(&landed), [format!("refs/heads/{BRANCH}")]);
    let left =
        fixture.user(&["for-each-ref", "--format=%(refname)", "refs/drydock", "refs/heads"], &fixture.repo());
    assert_eq!(left, "refs/drydock/snap/pp/1\nrefs/heads/main");
}
