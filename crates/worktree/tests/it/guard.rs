//! Programs that a repository's configuration names are not run.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use drydock_worktree::{DetailedMerge, GitError, LandOutcome, MergeOutcome, MergeRequest, Prefer, Push};

use crate::fixture::{Fixture, ada, land, write};
use crate::joiner::listing;

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "prepare-commit-msg",
    "reference-transaction",
];

/// Takes a change from checkout to landing and pushing.
fn whole_way(fixture: &Fixture) -> Result<(), GitError> {
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    repository.dirty_paths()?;
    let checkout = repository.checkout_add(&fixture.tree("p"), "drydock/p/work", &base)?;
    write(&checkout.path().join("a.txt"), "changed\n");
    write(&checkout.path().join("new.txt"), "new\n");
    checkout.changed_paths(&base)?;
    let captured = checkout.capture(&base, "change", &ada())?;
    checkout.branch_set(&captured.commit)?;
    repository.patch(&base, &captured.commit)?;
    let MergeOutcome::Clean(_) = repository.merge(&base, &base, &captured.commit)? else { panic!("clean") };
    assert_eq!(land(&repository, "main", &base, &captured.commit)?, LandOutcome::Moved);
    assert_eq!(repository.push("origin", "main", &captured.commit)?, Push::Pushed);
    repository.checkout_remove(checkout.path())
}

fn scene() -> Fixture {
    let fixture = Fixture::new();
    fixture.user(&["init", "-q", "--bare", "remote"], &fixture.path(""));
    fixture.user(&["remote", "add", "origin", "../remote"], &fixture.repo());
    fixture
}

fn program(path: &Path, witness: &Path) {
    write(path, &format!("#!/bin/sh\necho $0 >> {}\n", witness.display()));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn hooks_of_the_repository_do_not_run() {
    let fixture = scene();
    let witness = fixture.path("ran");
    for hook in HOOKS {
        program(&fixture.repo().join(".git/hooks").join(hook), &witness);
    }
    whole_way(&fixture).unwrap();
    assert!(!witness.exists(), "{}", fs::read_to_string(&witness).unwrap());
    fixture.user(&["commit", "-q", "--allow-empty", "-m", "x"], &fixture.repo());
    assert!(witness.exists(), "they do run for the user");
}

#[test]
fn programs_in_the_repositorys_configuration_do_not_run() {
    let fixture = scene();
    let witness = fixture.path("ran");
    let evil = fixture.path("evil");
    program(&evil, &witness);
    let evil = evil.to_str().unwrap();
    let keys = [
        "core.fsmonitor",
        "core.editor",
        "core.pager",
        "core.sshCommand",
        "core.askPass",
        "core.alternateRefsCommand",
        "credential.helper",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "gpg.program",
        "merge.x.driver",
        "remote.origin.receivepack",
        "remote.origin.uploadpack",
        "sequence.editor",
    ];
    fixture.write(".gitattributes", "* diff=x merge=x\n");
    fixture.commit_all("attributes");
    for key in keys {
        fixture.user(&["config", key, evil], &fixture.repo());
    }
    fixture.user(&["config", "commit.gpgSign", "true"], &fixture.repo());
    fixture.user(&["config", "push.gpgSign", "if-asked"], &fixture.repo());
    whole_way(&fixture).unwrap();
    assert!(!witness.exists(), "{}", fs::read_to_string(&witness).unwrap());
}

#[test]
fn a_merge_driver_of_the_repository_gives_a_conflict_instead_of_running() {
    let fixture = Fixture::new();
    let witness = fixture.path("ran");
    program(&fixture.path("evil"), &witness);
    fixture.write(".gitattributes", "* merge=x\n");
    let base = fixture.commit_all("attributes");
    let ours = fixture.build(&base, |folder| write(&folder.join("a.txt"), "ours\n"));
    let theirs = fixture.build(&base, |folder| write(&folder.join("a.txt"), "theirs\n"));
    fixture.user(&["config", "merge.x.driver", fixture.path("evil").to_str().unwrap()], &fixture.repo());
    let merge = fixture.open().merge(&base, &ours, &theirs).unwrap();
    assert!(matches!(merge, MergeOutcome::Conflict { .. }), "{merge:?}");
    let order = MergeRequest { base: &base, ours: &ours, theirs: &theirs, favour: Prefer::Theirs };
    let DetailedMerge::Clean(tree) = fixture.open().merge_detailed(&order).unwrap() else {
        panic!("a side is favoured")
    };
    assert_eq!(listing(&fixture, tree.as_str())["a.txt"].text(), "theirs\n");
    assert!(!witness.exists());
}

/// B14: breaks when the hint of the error does not help.
#[test]
fn a_filter_of_the_repository_is_an_error_and_the_users_own_runs() {
    let fixture = scene();
    fixture.write(".gitattributes", "*.txt filter=x\n");
    fixture.commit_all("attributes");
    let witness = fixture.path("ran");
    write(&fixture.path("evil"), &format!("#!/bin/sh\necho $1 >> {}\ncat\n", witness.display()));
    fs::set_permissions(fixture.path("evil"), fs::Permissions::from_mode(0o755)).unwrap();
    let command = |word: &str| format!("{} {word}", fixture.path("evil").display());
    for (key, word) in [("filter.x.clean", "clean"), ("filter.x.smudge", "smudge")] {
        fixture.user(&["config", key, &command(word)], &fixture.repo());
    }
    let error = whole_way(&fixture).unwrap_err();
    assert!(matches!(error, GitError::FilterRefused { .. }), "{error:?}");
    assert!(!witness.exists());
    let hint = error.hint().unwrap();
    let copy = hint.split('`').nth(1).unwrap();
    let mut pasted = Command::new("sh");
    pasted.args(["-c", copy]).current_dir(fixture.repo()).env("HOME", fixture.path("home"));
    assert!(pasted.status().unwrap().success(), "{copy}");
    whole_way(&fixture).unwrap();
    let ran = fs::read_to_string(&witness).unwrap();
    assert!(ran.contains("clean") && ran.contains("smudge"), "{ran}");
}

#[test]
fn a_repository_within_a_checkout_runs_nothing_either() {
    let fixture = Fixture::new();
    let (repository, base) = (fixture.open(), fixture.tip("main"));
    let checkout = repository.checkout_add(&fixture.tree("p"), "drydock/p/work", &base).unwrap();
    let nested = checkout.path().join("nested");
    fs::create_dir(&nested).unwrap();
    fixture.user(&["init", "-q"], &nested);
    write(&nested.join("x.txt"), "x\n");
    write(&nested.join(".gitattributes"), "* filter=x\n");
    fixture.commit_in(&nested, "inner");
    fixture.user(&["add", "nested"], checkout.path());
    let witness = fixture.path("ran");
    program(&fixture.path("evil"), &witness);
    fixture.user(&["config", "filter.x.clean", fixture.path("evil").to_str().unwrap()], &nested);
    fixture.user(&["config", "core.fsmonitor", fixture.path("evil").to_str().unwrap()], &nested);
    write(&nested.join("x.txt"), "y\n");
    let error = checkout.capture(&base, "x", &ada()).unwrap_err();
    assert!(matches!(error, GitError::NestedRepository { .. }), "{error:?}");
    assert!(!witness.exists(), "{}", fs::read_to_string(&witness).unwrap());
}
