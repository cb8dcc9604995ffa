//! Opening repositories, and finding git.

use std::fs;
use std::process::Command;

use drydock_worktree::{Git, GitError, GitVersion, OpenError, Repository};

use crate::fixture::{Fixture, land};

#[test]
fn what_cannot_be_a_project_is_refused_by_name_with_a_next_step() {
    let fixture = Fixture::new();
    let open = |name: &str| Repository::open(&fixture.git, &fixture.path(name)).unwrap_err();
    fs::create_dir(fixture.path("plain")).unwrap();
    fixture.user(&["init", "-q", "--bare", "bare"], &fixture.path(""));
    fixture.user(&["init", "-q", "fresh"], &fixture.path(""));
    fixture.write("a.txt", "second\n");
    fixture.commit_all("second");
    let source = format!("file://{}", fixture.repo().display());
    fixture.user(&["clone", "-q", "--depth=1", &source, "shallow"], &fixture.path(""));
    let errors = [
        (open("nowhere"), "nowhere"),
        (open("plain"), "plain"),
        (open("bare"), "bare"),
        (open("fresh"), "fresh"),
        (open("shallow"), "shallow"),
    ];
    for (error, name) in &errors {
        assert!(error.to_string().contains(name) && !error.hint().is_empty(), "{error}");
    }
    let [missing, plain, bare, fresh, shallow] = errors.map(|(error, _)| error);
    assert!(matches!(missing, OpenError::Missing { .. }));
    assert!(matches!(plain, OpenError::NotARepository { .. }));
    assert!(matches!(bare, OpenError::Bare { .. }));
    assert!(matches!(fresh, OpenError::NoCommits { .. }));
    assert!(matches!(shallow, OpenError::Shallow { .. }));
}

#[test]
fn from_anywhere_in_it_the_root_is_the_main_worktree() {
    let fixture = Fixture::new();
    let linked = fixture.path("linked");
    fixture.user(&["worktree", "add", "-q", "../linked"], &fixture.repo());
    for place in [fixture.repo(), fixture.repo().join("dir"), fixture.repo().join(".git"), linked.join("dir")]
    {
        let repository = Repository::open(&fixture.git, &place).unwrap();
        assert_eq!(repository.root(), fixture.repo(), "{}", place.display());
        assert_eq!(repository.common_dir(), fixture.repo().join(".git"));
        assert_eq!(repository.head_branch().unwrap().as_deref(), Some("main"));
    }
}

#[test]
fn a_worktree_of_a_bare_repository_is_its_own_root() {
    let fixture = Fixture::new();
    fixture.user(&["clone", "-q", "--bare", "repo", "bare"], &fixture.path(""));
    fixture.user(&["worktree", "add", "-q", "../tree", "main"], &fixture.path("bare"));
    let repository = Repository::open(&fixture.git, &fixture.path("tree")).unwrap();
    assert_eq!(repository.root(), fixture.path("tree"));
    assert_eq!(repository.head_branch().unwrap().as_deref(), Some("main"));
    assert_eq!(repository.dirty_paths().unwrap(), Vec::<String>::new());
}

#[test]
fn plain_questions_are_answered() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let first = fixture.tip("main");
    assert_eq!(repository.branch_tip("main").unwrap(), Some(first.clone()));
    assert_eq!(repository.branch_tip("none").unwrap(), None);
    assert!(repository.branch_tip("main^{tree}").is_err());
    assert!(repository.commit_exists(&first).unwrap());
    assert!(!repository.commit_exists(&"1".repeat(40).parse().unwrap()).unwrap());
    let tree = repository.tree_of(&first).unwrap();
    assert!(!repository.commit_exists(&tree.as_str().parse().unwrap()).unwrap(), "a tree is no commit");
    let second = fixture.build(&first, |folder| fs::write(folder.join("x"), "x").unwrap());
    assert!(repository.contains("main", &first).unwrap());
    assert!(!repository.contains("main", &second).unwrap());
    assert!(!repository.contains("none", &first).unwrap());
    assert!(!repository.remote_exists("origin").unwrap());
    fixture.user(&["remote", "add", "origin", "../elsewhere"], &fixture.repo());
    assert!(repository.remote_exists("origin").unwrap());
    fixture.write("new.txt", "untracked\n");
    assert_eq!(repository.dirty_paths().unwrap(), Vec::<String>::new(), "untracked files do not count");
    fixture.write("a.txt", "edited\n");
    fixture.write("dir/a name\nwith line.txt", "staged\n");
    fixture.user(&["add", "dir"], &fixture.repo());
    assert_eq!(repository.dirty_paths().unwrap(), ["a.txt", "dir/a name\nwith line.txt"]);
    fixture.user(&["checkout", "-q", "--detach"], &fixture.repo());
    assert_eq!(repository.head_branch().unwrap(), None);
}

#[test]
fn the_signature_is_the_users_or_drydocks() {
    let fixture = Fixture::new();
    let signature = fixture.open().signature(7);
    assert_eq!((signature.name.as_str(), signature.email.as_str()), ("Ada", "ada@example.org"));
    fs::write(fixture.path("home/.gitconfig"), "").unwrap();
    let signature = fixture.open().signature(7);
    assert_eq!((signature.name.as_str(), signature.email.as_str()), ("drydock", "drydock@localhost"));
    assert_eq!(signature.at_seconds, 7);
}

#[test]
fn a_git_that_is_too_old_or_missing_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("git");
    // Written by another process: this one may fork in another thread while it holds the file open for
    // writing.
    let text =
        format!("printf '#!/bin/sh\\necho git version 2.30.0\\n' > {0}; chmod 755 {0}", script.display());
    assert!(Command::new("sh").args(["-c", &text]).status().unwrap().success());
    let error = Git::at(script).unwrap_err();
    assert!(matches!(error, GitError::TooOld { .. }), "{error:?}");
    assert!(
        error.to_string().contains("2.30.0") && error.to_string().contains(&GitVersion::MIN.to_string()),
        "{error}"
    );
    assert!(matches!(Git::at(folder.path().join("none")), Err(GitError::Missing)));
    assert!(Git::find().unwrap().version().starts_with(|c: char| c.is_ascii_digit()));
}

#[test]
fn a_repository_of_sha256_objects_works_all_the_way() {
    let fixture = Fixture::empty();
    fixture.user(&["init", "-q", "--object-format=sha256", "repo"], &fixture.path(""));
    fixture.write("a.txt", "a\n");
    let base = fixture.commit_all("first");
    assert_eq!(base.as_str().len(), 64);
    let repository = fixture.open();
    let checkout = repository.checkout_add(&fixture.tree("p"), "drydock/p/work", &base).unwrap();
    fs::write(checkout.path().join("a.txt"), "b\n").unwrap();
    let captured = checkout.capture(&base, "change", &crate::fixture::ada()).unwrap();
    checkout.branch_set(&captured.commit).unwrap();
    let landing = land(&repository, "main", &base, &captured.commit).unwrap();
    assert_eq!(landing, drydock_worktree::LandOutcome::Moved);
    assert_eq!(crate::fixture::read(&fixture.repo().join("a.txt")), "b\n");
    assert_eq!(fixture.status(&fixture.repo()), "");
}
