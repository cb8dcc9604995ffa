//! Ref updates by compare-and-swap.

use std::thread;

use drydock_worktree::{GitError, RefCreated, RefDeleted};

use crate::fixture::{Fixture, write};

#[test]
fn a_ref_is_created_once_and_deleted_only_as_expected() {
    let fixture = Fixture::new();
    let (repository, first) = (fixture.open(), fixture.tip("main"));
    let second = fixture.build(&first, |folder| write(&folder.join("x"), "x"));
    let name = "refs/drydock/pin/p/1";
    assert_eq!(repository.ref_create(name, &first).unwrap(), RefCreated::Created);
    assert_eq!(repository.ref_create(name, &second).unwrap(), RefCreated::Exists(first.clone()));
    assert_eq!(repository.ref_create(name, &first).unwrap(), RefCreated::Exists(first.clone()));
    assert_eq!(repository.refs("refs/drydock/pin/").unwrap(), [(name.to_owned(), first.clone())]);
    let moved = RefDeleted::Moved { found: first.clone() };
    assert_eq!(repository.ref_delete(name, &second).unwrap(), moved);
    assert_eq!(repository.ref_delete(name, &first).unwrap(), RefDeleted::Deleted);
    assert_eq!(repository.ref_delete(name, &first).unwrap(), RefDeleted::Absent);
    assert_eq!(repository.refs("refs/drydock").unwrap(), []);
}

#[test]
fn a_ref_to_nothing_or_with_a_bad_name_is_an_error() {
    let fixture = Fixture::new();
    let (repository, first) = (fixture.open(), fixture.tip("main"));
    let nothing = "1".repeat(40).parse().unwrap();
    assert!(matches!(repository.ref_create("refs/drydock/x", &nothing), Err(GitError::Failed { .. })));
    assert_eq!(repository.refs("refs/drydock").unwrap(), []);
    for name in ["HEAD", "refs/drydock/a b", "refs/drydock/../x", "--stdin"] {
        assert!(matches!(repository.ref_create(name, &first), Err(GitError::BadName { .. })), "{name}");
    }
}

#[test]
fn of_eight_that_create_a_ref_one_does() {
    let fixture = Fixture::new();
    let (repository, first) = (fixture.open(), fixture.tip("main"));
    let commits: Vec<_> =
        (0..8).map(|n| fixture.build(&first, |folder| write(&folder.join("x"), &n.to_string()))).collect();
    let made: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            commits.iter().map(|c| scope.spawn(|| repository.ref_create("refs/drydock/one", c))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let created: Vec<_> = made.iter().filter(|result| matches!(result, Ok(RefCreated::Created))).collect();
    assert_eq!(created.len(), 1, "{made:?}");
}
