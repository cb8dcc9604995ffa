//! Creating and removing worktrees, also on top of the remains of a crash.

use std::fs;
use std::path::Path;
use std::thread;

use drydock_worktree::{GitError, Repository, Verified};

use crate::fixture::{Fixture, read, write};

const BRANCH: &str = "drydock/p/work";

#[test]
fn a_checkout_has_the_files_of_its_base_on_its_branch() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    assert_eq!(read(&checkout.path().join("dir/c.txt")), "c\n");
    assert_eq!(fixture.user(&["branch", "--show-current"], checkout.path()), BRANCH);
    assert_eq!(fixture.status(checkout.path()), "");
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: base.clone() });
    let again = repository.checkout_open(&fixture.tree("p")).unwrap().unwrap();
    assert_eq!(again.verify(&base).unwrap(), Verified::Sound { head: base });
    assert_eq!(again.branch(), Some(BRANCH));
    assert!(repository.checkout_open(&fixture.tree("q")).unwrap().is_none());
}

#[test]
fn making_it_twice_starts_it_anew() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    write(&checkout.path().join("left.txt"), "left\n");
    fixture.commit_in(checkout.path(), "left");
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    assert!(!checkout.path().join("left.txt").exists());
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: base });
}

#[test]
fn whatever_a_crash_left_at_the_path_is_replaced() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let path = fixture.tree("p");
    let admin = fixture.repo().join(".git/worktrees/1");
    type Crash<'a> = (&'a str, &'a dyn Fn());
    let crashes: &[Crash<'_>] = &[
        ("the directory is gone", &|| fs::remove_dir_all(&path).unwrap()),
        ("the directory lost its link", &|| fs::remove_file(path.join(".git")).unwrap()),
        ("git's record is gone", &|| fs::remove_dir_all(&admin).unwrap()),
        ("git's record is incomplete", &|| fs::remove_file(admin.join("HEAD")).unwrap()),
        ("git's record was being written", &|| fs::write(admin.join("commondir"), "").unwrap()),
        ("it was being made", &|| fs::write(admin.join("locked"), "initializing\n").unwrap()),
        ("gone and locked", &|| {
            fs::write(admin.join("locked"), "initializing\n").unwrap();
            fs::remove_dir_all(&path).unwrap();
        }),
        ("an index lock is left", &|| fs::write(admin.join("index.lock"), "").unwrap()),
        ("only an empty directory", &|| {
            fs::remove_dir_all(&admin).unwrap();
            fs::remove_dir_all(&path).unwrap();
            fs::create_dir(&path).unwrap();
        }),
    ];
    repository.checkout_add(&path, BRANCH, &base).unwrap();
    for (name, crash) in crashes {
        crash();
        let checkout =
            repository.checkout_add(&path, BRANCH, &base).unwrap_or_else(|e| panic!("{name}: {e:?}"));
        assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: base.clone() }, "{name}");
        assert_eq!(fixture.status(&path), "", "{name}");
    }
}

/// Breaks when a worktree whose creation is in progress or was interrupted blocks the work in all others: git
/// fails on the empty file in every call that reads all worktrees.
#[test]
fn the_half_made_worktree_of_another_stops_nobody() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    repository.checkout_detached(&fixture.tree("q"), &base).unwrap();
    let own = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    fixture.user(&["branch", "free"], &fixture.repo());
    let half = fixture.repo().join(".git/worktrees/1/commondir");
    assert!(half.exists(), "the record of the other worktree");
    let break_off = || fs::write(&half, "").unwrap();

    break_off();
    assert!(repository.branch_is_kept_elsewhere(BRANCH, &[]).unwrap());
    assert_eq!(read(&half), "", "what looks at no other worktree has no part in it");
    repository.branch_put("free", &base, &base).unwrap();
    assert_eq!(read(&half), "");
    assert_eq!(Repository::open(&fixture.git, own.path()).unwrap().root(), repository.root());
    break_off();
    repository.checkout_add(&fixture.tree("r"), "drydock/r/work", &base).unwrap();
    assert_eq!(fixture.status(&fixture.tree("q")), "");
}

/// Breaks when the record of a worktree without a directory blocks its branch for all others.
#[test]
fn the_record_of_a_directory_that_is_gone_stops_nobody() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let old = fixture.path("store/worktrees/p/1");
    let lose = |path: &Path| {
        repository.checkout_add(path, BRANCH, &base).unwrap();
        fs::remove_dir_all(path).unwrap();
    };
    lose(&old);
    repository.branch_put(BRANCH, &base, &base).unwrap();
    lose(&fixture.path("store/worktrees/p/2"));
    let new = repository.checkout_add(&fixture.path("store/worktrees/p/3"), BRANCH, &base).unwrap();
    assert_eq!(new.verify(&base).unwrap(), Verified::Sound { head: base.clone() });
    assert_eq!(repository.linked_trees().len(), 3, "who has the directories may want the records");
}

/// INV-KEEP. Breaks when a directory counts as missing because its `.git` link is missing.
#[test]
fn a_directory_that_only_lost_its_link_is_left_alone() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let old = fixture.path("store/worktrees/p/1");
    repository.checkout_add(&old, BRANCH, &base).unwrap();
    write(&old.join("precious.txt"), "p\n");
    fs::remove_file(old.join(".git")).unwrap();
    let error = repository.checkout_add(&fixture.path("store/worktrees/p/2"), BRANCH, &base).unwrap_err();
    assert!(matches!(error, GitError::BranchInUse { .. }), "{error:?}");
    assert_eq!(read(&old.join("precious.txt")), "p\n");
}

/// Breaks when a `.git` link written by an agent leads out of git's records: its target would be removed with
/// the worktree.
#[test]
fn a_link_out_of_the_records_leads_nowhere() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let tree = fixture.path("store/worktrees/p/1");
    repository.checkout_add(&tree, BRANCH, &base).unwrap();
    let common = fixture.repo().join(".git");
    write(&tree.join(".git"), &format!("gitdir: {}\n", common.join("worktrees/..").display()));
    write(&common.join("gitdir"), &format!("{}\n", tree.join(".git").display()));
    repository.checkout_remove(&tree).unwrap();
    assert!(common.join("HEAD").exists() && !tree.exists());
}

/// INV-KEEP: an agent may be working in it, and a process that lost its lock must not remove it.
#[test]
fn a_checkout_that_has_the_branch_elsewhere_is_left_alone() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let old = fixture.path("store/worktrees/p/1");
    repository.checkout_add(&old, BRANCH, &base).unwrap();
    write(&old.join("unsaved.txt"), "u\n");
    let error = repository.checkout_add(&fixture.path("store/worktrees/p/2"), BRANCH, &base).unwrap_err();
    assert!(matches!(error, GitError::BranchInUse { .. }), "{error:?}");
    assert_eq!(read(&old.join("unsaved.txt")), "u\n");
}

#[test]
fn a_worktree_of_the_user_is_never_taken() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let users = fixture.path("mine");
    fixture.user(&["worktree", "add", "-q", "-b", BRANCH, users.to_str().unwrap()], &fixture.repo());
    write(&users.join("precious.txt"), "p\n");
    for branch in [BRANCH, "main"] {
        let error = repository.checkout_add(&fixture.tree("p"), branch, &base).unwrap_err();
        assert!(matches!(error, GitError::BranchInUse { .. }), "{error:?}");
    }
    assert_eq!(read(&users.join("precious.txt")), "p\n");
    let files = fixture.path("store/worktrees/q/1");
    write(&files.join("notes.txt"), "n\n");
    let error = repository.checkout_add(&files, "drydock/q/work", &base).unwrap_err();
    assert!(matches!(error, GitError::Occupied { .. }), "{error:?}");
    assert!(matches!(repository.checkout_remove(&files), Err(GitError::Occupied { .. })));
    assert_eq!(read(&files.join("notes.txt")), "n\n");
    assert!(matches!(repository.checkout_remove(&fixture.repo()), Err(GitError::Occupied { .. })));
    assert_eq!(read(&fixture.repo().join("a.txt")), "a\n");
}

#[test]
fn eight_at_once_all_succeed() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    thread::scope(|scope| {
        for number in 0..8 {
            let (fixture, base) = (&fixture, &base);
            scope.spawn(move || {
                // Each thread opens the repository separately, as separate workers do.
                let repository = fixture.open();
                let path = fixture.tree(&format!("p{number}"));
                let checkout =
                    repository.checkout_add(&path, &format!("drydock/p{number}/work"), base).unwrap();
                assert_eq!(checkout.verify(base).unwrap(), Verified::Sound { head: base.clone() });
                assert_eq!(fixture.status(&path), "");
                repository.checkout_remove(&path).unwrap();
            });
        }
    });
    assert_eq!(fixture.user(&["worktree", "list"], &fixture.repo()).lines().count(), 1);
}

#[test]
fn removing_leaves_the_branch_and_may_be_repeated() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    write(&checkout.path().join("new.txt"), "n\n");
    repository.checkout_remove(checkout.path()).unwrap();
    repository.checkout_remove(checkout.path()).unwrap();
    assert!(!checkout.path().exists());
    assert_eq!(repository.branch_tip(BRANCH).unwrap(), Some(base.clone()));
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Missing);
    assert!(repository.checkout_open(checkout.path()).unwrap().is_none());
}

#[test]
fn verifying_tells_what_an_agent_did_to_the_branch() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    write(&checkout.path().join("new.txt"), "n\n");
    let head = fixture.commit_in(checkout.path(), "its own");
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: head.clone() });
    assert_eq!(checkout.verify(&head).unwrap(), Verified::Sound { head: head.clone() });
    fixture.user(&["checkout", "-q", "--detach"], checkout.path());
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Detached { head: head.clone() });
    fixture.user(&["checkout", "-q", "-b", "side"], checkout.path());
    let switched = Verified::Switched { branch: "side".to_owned(), head: Some(head) };
    assert_eq!(checkout.verify(&base).unwrap(), switched);
    let reopened = repository.checkout_open(checkout.path()).unwrap().unwrap();
    assert_eq!(reopened.verify(&base).unwrap(), switched, "also for one who did not make it");
    fixture.user(&["branch", "-q", "-D", BRANCH], checkout.path());
    fixture.user(&["checkout", "-q", "--orphan", BRANCH], checkout.path());
    let other = fixture.commit_in(checkout.path(), "unrelated");
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Moved { head: other });
    fs::write(checkout.path().join(".git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Unlinked);
}

#[test]
fn a_detached_checkout_is_sound_on_no_branch() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_detached(&fixture.tree("v"), &base).unwrap();
    assert_eq!(checkout.branch(), None);
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: base.clone() });
    let checkout = repository.checkout_detached(&fixture.tree("v"), &base).unwrap();
    assert_eq!(fixture.status(checkout.path()), "");
    let reopened = repository.checkout_open(checkout.path()).unwrap().unwrap();
    assert_eq!(reopened.verify(&base).unwrap(), Verified::Sound { head: base });
}

/// BUG-6. Breaks when `git worktree prune`, run where the directory is not visible, removes the record of a
/// worktree in use.
#[test]
fn pruning_where_the_directory_is_not_seen_leaves_the_record() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
    fs::rename(checkout.path(), fixture.path("unseen")).unwrap();
    fixture.user(&["worktree", "prune", "--expire=now"], &fixture.repo());
    fs::rename(fixture.path("unseen"), checkout.path()).unwrap();
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Sound { head: base.clone() });

    fs::remove_dir_all(fixture.repo().join(".git/worktrees")).unwrap();
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Unrecorded);
    fs::remove_dir_all(checkout.path()).unwrap();
    assert_eq!(checkout.verify(&base).unwrap(), Verified::Missing);
}

/// BUG-6. Breaks when records that are locked for drydock are never removed, or when a record is removed that
/// has files or is the user's.
#[test]
fn records_without_files_are_found_and_others_are_not() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let below = fixture.path("store/worktrees");
    for name in ["living", "gone", "half"] {
        repository.checkout_add(&fixture.tree(name), &format!("drydock/{name}/work"), &base).unwrap();
    }
    fixture.user(&["worktree", "add", "-q", "--lock", "../users"], &fixture.repo());
    fs::remove_dir_all(fixture.path("users")).unwrap();
    fs::remove_dir_all(fixture.tree("gone")).unwrap();
    assert_eq!(repository.unfilled_trees(&below), [fixture.tree("gone")]);
    // The state after a killed `git worktree add`.
    let half = fixture.tree("half");
    let git_dir = read(&half.join(".git")).trim_end().replace("gitdir: ", "");
    for file in ["a.txt", "b.txt", "dir/c.txt", "dir"] {
        let path = half.join(file);
        drop(if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) });
    }
    assert_eq!(repository.unfilled_trees(&below), [fixture.tree("gone")], "its HEAD is a commit");
    write(&Path::new(&git_dir).join("HEAD"), &format!("{}\n", "0".repeat(40)));
    let mut found = repository.unfilled_trees(&below);
    found.sort();
    assert_eq!(found, [fixture.tree("gone"), half.clone()]);
    for tree in found {
        repository.checkout_remove(&tree).unwrap();
    }
    assert_eq!(repository.unfilled_trees(&below), Vec::<std::path::PathBuf>::new());
    assert!(!half.exists() && fixture.tree("living").exists());
    assert_eq!(repository.linked_trees().len(), 2, "the living one and the user's");
}
