//! A git process ended by a signal: repeated once where that is safe, and never where it is not (BUG-10).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use drydock_worktree::{Git, LandOutcome, MergeOutcome, Repository};

use crate::fixture::{Fixture, ada, land, read, write};

/// Replaces git by a program that does something and then dies of a signal in the first calls of one
/// subcommand.
fn dying(fixture: &Fixture, command: &str, first: &str, deaths: usize) -> (Repository, PathBuf) {
    let (program, count) = (fixture.path("git"), fixture.path("count"));
    let real = Git::locate().unwrap();
    let script = format!(
        "#!/bin/sh\nif [ \"$1\" = {command} ]; then\n  echo x >>{count}\n  if [ \"$(wc -l <{count})\" -le {deaths} ]; then\n    \
         {first}\n    kill -9 $$\n  fi\nfi\nexec {real} \"$@\"\n",
        count = count.display(),
        real = real.display(),
    );
    let first = script.replace("REAL", &real.display().to_string());
    write(&program, &first);
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let git = Git::at(program).unwrap().with_home(&fixture.path("home"));
    (Repository::open(&git, &fixture.repo()).unwrap(), count)
}

fn calls(count: &Path) -> usize {
    read(count).lines().count()
}

#[test]
fn a_merge_whose_git_was_killed_is_made_again() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let ours = fixture.build(&base, |folder| write(&folder.join("ours.txt"), "ours\n"));
    let (repository, count) = dying(&fixture, "merge-tree", "true", 1);
    assert!(matches!(repository.merge(&base, &base, &ours).unwrap(), MergeOutcome::Clean(_)));
    assert_eq!(calls(&count), 2);
    let (repository, count) = dying(&fixture, "merge-tree", "true", 9);
    let error = repository.merge(&base, &base, &ours).unwrap_err();
    assert!(error.is_transient() && error.is_starved(), "{error:?}");
    assert_eq!(calls(&count), 2 + 2, "once more, and then it is an error");
}

/// Breaks when the lock that a killed git leaves next to our copy of the index blocks the second attempt.
#[test]
fn a_capture_whose_git_was_killed_is_made_again() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let (repository, count) = dying(&fixture, "add", "touch \"$GIT_INDEX_FILE.lock\"", 1);
    let checkout = repository.checkout_add(&fixture.tree("p"), "drydock/p/work", &base).unwrap();
    write(&checkout.path().join("new.txt"), "new\n");
    let captured = checkout.capture_change(&base, "work", &ada()).unwrap().unwrap();
    assert_eq!(fixture.user(&["show", &format!("{}:new.txt", captured.commit)], &fixture.repo()), "new");
    assert_eq!(calls(&count), 2);
}

/// Breaks when files written by the killed git are treated as the user's.
#[test]
fn a_landing_whose_git_was_killed_after_it_wrote_files_lands() {
    let fixture = Fixture::new();
    let from = fixture.tip("main");
    let to = fixture.build(&from, |folder| write(&folder.join("a.txt"), "landed\n"));
    let (repository, _) = dying(&fixture, "read-tree", "echo landed >a.txt", 1);
    assert_eq!(land(&repository, "main", &from, &to).unwrap(), LandOutcome::Moved);
    assert_eq!(fixture.status(&fixture.repo()), "");
    assert_eq!(read(&fixture.repo().join("a.txt")), "landed\n");
}

/// Breaks when a branch moved by a killed git counts as moved by another process.
#[test]
fn a_branch_that_the_killed_git_had_moved_is_landed() {
    let fixture = Fixture::new();
    fixture.user(&["switch", "-q", "--detach"], &fixture.repo());
    let from = fixture.tip("main");
    let to = fixture.build(&from, |folder| write(&folder.join("a.txt"), "landed\n"));
    let intent = "refs/drydock/intent/p/r";
    fixture.open().ref_create(intent, &to).unwrap();
    let (repository, _) = dying(&fixture, "update-ref", "REAL \"$@\"", 1);
    assert_eq!(repository.land("main", &from, &to, intent).unwrap(), LandOutcome::Moved);
    assert_eq!(fixture.tip("main"), to);
}

/// Breaks when a push is repeated: the remote may have accepted the first, and would reject the second.
#[test]
fn a_push_whose_git_was_killed_is_not_repeated() {
    let fixture = Fixture::new();
    fixture.user(&["init", "-q", "--bare", "far"], &fixture.path(""));
    fixture.user(&["remote", "add", "origin", fixture.path("far").to_str().unwrap()], &fixture.repo());
    let (repository, count) = dying(&fixture, "push", "true", 1);
    repository.push("origin", "main", &fixture.tip("main")).unwrap_err();
    assert_eq!(calls(&count), 1);
}
