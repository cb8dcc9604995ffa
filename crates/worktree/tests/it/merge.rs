//! Merges that touch no file.

use drydock_worktree::{GitError, MergeOutcome};

use crate::fixture::{Fixture, ada, write};

#[test]
fn a_clean_merge_is_a_tree_with_both_sides_and_touches_nothing() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let ours = fixture.build(&base, |folder| write(&folder.join("a.txt"), "ours\n"));
    let theirs = fixture.build(&base, |folder| write(&folder.join("b.txt"), "theirs\n"));
    let repository = fixture.open();
    let before = fixture.witness();
    let MergeOutcome::Clean(tree) = repository.merge(&base, &ours, &theirs).unwrap() else {
        panic!("no conflict here")
    };
    let parents = [ours.clone(), theirs.clone()];
    let merged = repository.commit(&tree, &parents, "merge\n\nwith a body", &ada()).unwrap();
    assert_eq!(before, fixture.witness());
    let show = |what: &str| fixture.user(&["show", &format!("{merged}:{what}")], &fixture.repo());
    assert_eq!((show("a.txt"), show("b.txt")), ("ours".to_owned(), "theirs".to_owned()));
    let format = "--format=%an %ae %at %cn|%P|%B";
    let log = fixture.user(&["log", "-1", format, merged.as_str()], &fixture.repo());
    assert_eq!(log, format!("Ada ada@example.org 1700000000 Ada|{ours} {theirs}|merge\n\nwith a body"));
}

#[test]
fn a_conflict_names_its_paths_and_leaves_every_byte() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let ours = fixture.build(&base, |folder| {
        write(&folder.join("a.txt"), "ours\n");
        std::fs::remove_file(folder.join("b.txt")).unwrap();
    });
    let theirs = fixture.build(&base, |folder| {
        write(&folder.join("a.txt"), "theirs\n");
        write(&folder.join("b.txt"), "theirs\n");
        write(&folder.join("dir/c.txt"), "fine\n");
    });
    let before = fixture.witness();
    match fixture.open().merge(&base, &ours, &theirs).unwrap() {
        MergeOutcome::Conflict { paths, messages } => {
            assert_eq!(paths, ["a.txt", "b.txt"]);
            assert!(messages.contains("CONFLICT (content): Merge conflict in a.txt"), "{messages}");
            assert!(!messages.contains("Auto-merging"), "{messages}");
        }
        MergeOutcome::Clean(_) => panic!("this is a conflict"),
    }
    assert_eq!(before, fixture.witness());
}

#[test]
fn a_merge_of_what_is_not_there_is_an_error() {
    let fixture = Fixture::new();
    let base = fixture.tip("main");
    let nothing = "1".repeat(40).parse().unwrap();
    let error = fixture.open().merge(&base, &base, &nothing).unwrap_err();
    assert!(matches!(error, GitError::Failed { .. } | GitError::Unexpected { .. }), "{error:?}");
}
