//! The staged content of a checkout becomes the next commit of its branch.

use std::fs;

use drydock_worktree::Staged;

use crate::capture::{BRANCH, Scene};
use crate::fixture::{ada, read, write};

/// Stages the content of the scene's checkout on top of its base.
fn stage(scene: &Scene) -> Staged {
    scene.checkout.stage(&scene.base, "staged", &ada()).unwrap()
}

/// Breaks when the installed index differs from the commit or the files, or hides later changes.
#[test]
fn the_branch_takes_up_what_was_staged_and_the_status_is_clean() {
    let scene = Scene::new();
    write(&scene.path().join("new.txt"), "new\n");
    write(&scene.path().join("a.txt"), "staged\n");
    scene.agent(&["add", "a.txt"]);
    write(&scene.path().join("a.txt"), "edited\n");
    scene.agent(&["update-index", "--assume-unchanged", "dir/c.txt"]);
    write(&scene.path().join("dir/c.txt"), "hidden\n");
    write(&scene.path().join(".drydock/talk"), "talk\n");
    scene.agent(&["add", "-f", ".drydock/talk"]);
    fs::remove_file(scene.path().join("b.txt")).unwrap();
    let record = scene.fixture.repo().join(".git/worktrees/1");
    fs::write(record.join("index.lock"), "").unwrap();
    fs::write(record.join("MERGE_HEAD"), format!("{}\n", scene.base)).unwrap();
    let staged = stage(&scene);
    let commit = staged.commit().clone();
    assert_eq!(staged.captured().map(|captured| captured.commit), Some(commit.clone()));
    scene.checkout.branch_to(staged, &scene.base).unwrap();
    assert_eq!(scene.fixture.tip(BRANCH), commit);
    assert_eq!(scene.agent(&["diff-files", "--name-only"]), "", "before anything refreshes the index");
    assert_eq!(scene.agent(&["diff-index", "--cached", "--name-only", "HEAD"]), "");
    assert_eq!(scene.agent(&["status", "--porcelain"]), "?? .drydock/");
    let changed = scene.agent(&["diff", "--name-status", scene.base.as_str(), "HEAD"]);
    assert_eq!(changed, "M\ta.txt\nD\tb.txt\nM\tdir/c.txt\nA\tnew.txt");
    write(&scene.path().join("dir/c.txt"), "seen\n");
    assert_eq!(scene.agent(&["diff-files", "--name-only"]), "dir/c.txt");
    assert!(!record.join("MERGE_HEAD").exists());
}

/// Breaks when an untouched checkout gets a commit, or when a changed one counts as untouched.
#[test]
fn an_untouched_checkout_is_staged_as_what_it_was_made_at() {
    let scene = Scene::new();
    let objects = || scene.agent(&["count-objects"]);
    let before = objects();
    let staged = stage(&scene);
    assert_eq!((staged.commit(), staged.captured()), (&scene.base, None));
    scene.checkout.branch_to(staged, &scene.base).unwrap();
    assert_eq!(objects(), before);
    assert_eq!(
        (scene.fixture.tip(BRANCH), scene.agent(&["status", "--porcelain"])),
        (scene.base.clone(), String::new())
    );
    assert_eq!(scene.checkout.capture_change(&scene.base, "none", &ada()).unwrap(), None);
    // Same size as before, in the second of the checkout.
    write(&scene.path().join("a.txt"), "b\n");
    let captured = scene.checkout.capture_change(&scene.base, "some", &ada()).unwrap().unwrap();
    assert_eq!(scene.repository.changes(&scene.base, &captured.commit).unwrap().len(), 1);
}

/// Breaks when commits are lost that were added to the branch after it was verified.
#[test]
fn a_branch_that_moved_since_is_left_alone() {
    let scene = Scene::new();
    write(&scene.path().join("a.txt"), "edited\n");
    let staged = stage(&scene);
    let index = fs::read(scene.fixture.repo().join(".git/worktrees/1/index")).unwrap();
    let moved = scene
        .repository
        .commit(
            &scene.repository.tree_of(&scene.base).unwrap(),
            std::slice::from_ref(&scene.base),
            "moved",
            &ada(),
        )
        .unwrap();
    scene.agent(&["update-ref", &format!("refs/heads/{BRANCH}"), moved.as_str()]);
    scene.checkout.branch_to(staged, &scene.base).unwrap_err();
    assert_eq!(scene.fixture.tip(BRANCH), moved);
    assert_eq!(fs::read(scene.fixture.repo().join(".git/worktrees/1/index")).unwrap(), index);
}

/// Breaks when the `.git` file, which an agent can write, decides to which worktree a directory belongs.
#[test]
fn a_worktree_that_names_the_record_of_another_is_not_taken_for_it() {
    let scene = Scene::new();
    let other =
        scene.repository.checkout_add(&scene.fixture.tree("q"), "drydock/q/work", &scene.base).unwrap();
    fs::write(scene.path().join(".git"), read(&other.path().join(".git"))).unwrap();
    let opened = scene.repository.checkout_open(scene.path()).unwrap().unwrap();
    assert_eq!(opened.branch(), Some(BRANCH));
    scene.repository.checkout_remove(scene.path()).unwrap();
    assert_eq!(scene.fixture.user(&["branch", "--show-current"], other.path()), "drydock/q/work");
    assert!(!scene.fixture.repo().join(".git/worktrees/1").exists());
}
