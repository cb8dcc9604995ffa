//! Pushes to a remote that is a directory.

use drydock_worktree::{GitError, Push};

use crate::fixture::{Fixture, write};

#[test]
fn a_push_moves_the_remote_forward_and_never_back() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    fixture.user(&["init", "-q", "--bare", "remote"], &fixture.path(""));
    fixture.user(&["remote", "add", "origin", "../remote"], &fixture.repo());
    let one = fixture.build(&base, |folder| write(&folder.join("a.txt"), "one\n"));
    let two = fixture.build(&base, |folder| write(&folder.join("a.txt"), "two\n"));
    let repository = fixture.open();
    assert_eq!(repository.push("origin", "main", &one).unwrap(), Push::Pushed);
    assert_eq!(repository.push("origin", "main", &one).unwrap(), Push::Pushed, "repeating is fine");
    match repository.push("origin", "main", &two).unwrap() {
        Push::Rejected { text } => assert!(text.contains("rejected"), "{text}"),
        Push::Pushed => panic!("that would drop a commit"),
    }
    let remote = |branch: &str| fixture.user(&["rev-parse", branch], &fixture.path("remote"));
    assert_eq!(remote("main"), one.as_str());
}

#[test]
fn a_remote_that_is_away_is_a_transient_error() {
    let fixture = Fixture::new();
    fixture.user(&["remote", "add", "origin", "../nowhere"], &fixture.repo());
    let base = fixture.tip("main");
    let error = fixture.open().push("origin", "main", &base).unwrap_err();
    assert!(matches!(error, GitError::Remote { .. }) && error.is_transient(), "{error:?}");
    assert!(matches!(fixture.open().push("ext::sh -c x", "main", &base), Err(GitError::BadName { .. })));
}
