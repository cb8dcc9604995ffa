//! The git repositories of tests.

use std::fs;

use drydock_testkit::repo::Repo;

#[test]
fn a_new_repository_has_one_commit_on_main_and_nothing_pending() {
    let repo = Repo::new();
    assert_eq!(repo.git(&["branch", "--show-current"]), "main");
    assert_eq!(repo.log_subjects("main"), ["first"]);
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_commit_takes_what_was_written_and_moves_the_branch() {
    let repo = Repo::new();
    repo.write("deep/er/file.txt", "text\n");
    let commit = repo.commit("second");
    assert_eq!(repo.head("main"), commit);
    assert_eq!(repo.git(&["show", "main:deep/er/file.txt"]), "text");
    assert_eq!(repo.log_subjects("main"), ["second", "first"]);
}

#[test]
#[should_panic(expected = "unknown-branch")]
fn a_failing_git_command_panics_with_what_git_said() {
    Repo::new().git(&["checkout", "unknown-branch"]);
}

#[test]
fn a_large_repository_is_checked_out_and_clean() {
    let repo = Repo::with_files(250);
    assert_eq!(repo.git(&["ls-files"]).lines().count(), 250);
    assert_eq!(fs::read_to_string(repo.path().join("d2/f249.txt")).unwrap(), "file 249\n");
    assert_eq!(repo.git(&["status", "--porcelain"]), "");
}
