//! Landings, and the cases in which they change nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

use drydock_worktree::{CommitId, GitError, LandOutcome, Repository};

use crate::fixture::{Fixture, land, read, write};

struct Scene {
    fixture: Fixture,
    repository: Repository,
    from: CommitId,
    to: CommitId,
}

impl Scene {
    /// The commit to land edits `a.txt`, deletes `b.txt` and creates `new/d.txt`; `main` is checked out.
    fn new() -> Scene {
        let fixture = Fixture::new();
        let from = fixture.tip("main");
        let to = fixture.build(&from, |folder| {
            write(&folder.join("a.txt"), "landed\n");
            fs::remove_file(folder.join("b.txt")).unwrap();
            write(&folder.join("new/d.txt"), "d\n");
        });
        Scene { repository: fixture.open(), fixture, from, to }
    }

    fn land(&self) -> LandOutcome {
        land(&self.repository, "main", &self.from, &self.to).unwrap()
    }

    fn user(&self, args: &[&str]) -> String {
        self.fixture.user(args, &self.fixture.repo())
    }

    /// Asserts that exactly these paths are refused and not a byte has changed.
    fn refuses(&self, expected: &[&str]) {
        let before = self.fixture.witness();
        match self.land() {
            LandOutcome::Dirty { worktree, paths } => {
                assert_eq!(worktree, self.fixture.repo());
                assert_eq!(paths, expected);
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(before, self.fixture.witness());
        assert_eq!(self.fixture.tip("main"), self.from);
    }

    fn has_landed(&self) {
        assert_eq!(self.fixture.tip("main"), self.to);
        assert_eq!(self.fixture.status(&self.fixture.repo()), "");
        assert_eq!(read(&self.fixture.repo().join("a.txt")), "landed\n");
        assert_eq!(read(&self.fixture.repo().join("new/d.txt")), "d\n");
        assert!(!self.fixture.repo().join("b.txt").exists());
        assert!(!self.fixture.repo().join(".git/index.lock").exists());
    }
}

#[test]
fn a_branch_nobody_has_checked_out_just_moves() {
    let scene = Scene::new();
    scene.user(&["checkout", "-q", "-b", "other"]);
    let files = read(&scene.fixture.repo().join("a.txt"));
    assert_eq!(scene.land(), LandOutcome::Moved);
    assert_eq!(scene.fixture.tip("main"), scene.to);
    assert_eq!(read(&scene.fixture.repo().join("a.txt")), files);
    assert_eq!(scene.fixture.status(&scene.fixture.repo()), "");
    assert_eq!(scene.land(), LandOutcome::Already);
}

#[test]
fn a_detached_head_stays_where_it_is() {
    let scene = Scene::new();
    scene.user(&["checkout", "-q", "--detach"]);
    assert_eq!(scene.land(), LandOutcome::Moved);
    assert_eq!(scene.fixture.head(&scene.fixture.repo()), scene.from);
    assert_eq!(scene.fixture.status(&scene.fixture.repo()), "");
}

#[test]
fn a_checked_out_branch_moves_with_its_files() {
    let scene = Scene::new();
    assert_eq!(scene.land(), LandOutcome::Moved);
    scene.has_landed();
    assert_eq!(scene.land(), LandOutcome::Already);
    let log = scene.user(&["reflog", "-1", "--format=%gs"]);
    assert_eq!(log, "drydock: land");
}

#[test]
fn a_linked_worktree_that_has_the_branch_moves_and_the_root_does_not() {
    let scene = Scene::new();
    scene.user(&["checkout", "-q", "-b", "other"]);
    let linked = scene.fixture.path("linked");
    scene.user(&["worktree", "add", "-q", "../linked", "main"]);
    assert_eq!(scene.land(), LandOutcome::Moved);
    assert_eq!(read(&linked.join("a.txt")), "landed\n");
    assert_eq!(scene.fixture.status(&linked), "");
    assert_eq!(read(&scene.fixture.repo().join("a.txt")), "a\n");
    assert_eq!(scene.fixture.status(&scene.fixture.repo()), "");
}

#[test]
fn edits_elsewhere_are_kept_staged_or_not() {
    let scene = Scene::new();
    scene.fixture.write("dir/c.txt", "mine\n");
    scene.fixture.write("staged.txt", "staged\n");
    scene.user(&["add", "staged.txt"]);
    scene.fixture.write("untracked.txt", "u\n");
    assert_eq!(scene.land(), LandOutcome::Moved);
    assert_eq!(scene.fixture.tip("main"), scene.to);
    assert_eq!(read(&scene.fixture.repo().join("dir/c.txt")), "mine\n");
    let status = scene.fixture.status(&scene.fixture.repo());
    assert_eq!(status, " M dir/c.txt\nA  staged.txt\n?? untracked.txt");
    assert_eq!(read(&scene.fixture.repo().join("a.txt")), "landed\n");
}

#[test]
fn whatever_of_the_user_is_in_the_way_is_refused_byte_for_byte() {
    type Case<'a> = (&'a str, &'a dyn Fn(&Scene), &'a [&'a str]);
    let repo = |scene: &Scene| scene.fixture.repo();
    let cases: &[Case<'_>] = &[
        ("edited", &|s| s.fixture.write("a.txt", "mine\n"), &["a.txt"]),
        (
            "staged",
            &|s| {
                s.fixture.write("a.txt", "mine\n");
                s.user(&["add", "a.txt"]);
            },
            &["a.txt"],
        ),
        (
            "staged and put back",
            &|s| {
                s.fixture.write("a.txt", "mine\n");
                s.user(&["add", "a.txt"]);
                s.fixture.write("a.txt", "a\n");
            },
            &["a.txt"],
        ),
        (
            "hidden by a flag",
            &|s| {
                s.user(&["update-index", "--assume-unchanged", "a.txt"]);
                s.fixture.write("a.txt", "mine\n");
            },
            &["a.txt"],
        ),
        (
            "skipped, but there",
            &|s| {
                s.user(&["update-index", "--skip-worktree", "a.txt"]);
                s.fixture.write("a.txt", "mine\n");
            },
            &["a.txt"],
        ),
        ("edited where deleted", &|s| s.fixture.write("b.txt", "mine\n"), &["b.txt"]),
        ("deleted where edited", &|s| fs::remove_file(repo(s).join("a.txt")).unwrap(), &["a.txt"]),
        ("untracked", &|s| s.fixture.write("new/d.txt", "mine\n"), &["new/d.txt"]),
        (
            "ignored",
            &|s| {
                s.fixture.write(".git/info/exclude", "new\n");
                s.fixture.write("new/d.txt", "mine\n");
            },
            &["new/d.txt"],
        ),
        ("a file for a directory", &|s| s.fixture.write("new", "mine\n"), &["new"]),
        ("a link for a directory", &|s| symlink("dir", repo(s).join("new")).unwrap(), &["new"]),
        ("a directory for a file", &|s| s.fixture.write("new/d.txt/x", "mine\n"), &["new/d.txt/x"]),
        (
            "a directory for a tracked file",
            &|s| {
                fs::remove_file(repo(s).join("a.txt")).unwrap();
                s.fixture.write("a.txt/x", "mine\n");
            },
            &["a.txt"],
        ),
        (
            "a mode",
            &|s| fs::set_permissions(repo(s).join("a.txt"), fs::Permissions::from_mode(0o755)).unwrap(),
            &["a.txt"],
        ),
    ];
    for (name, edit, expected) in cases {
        let scene = Scene::new();
        edit(&scene);
        println!("{name}");
        scene.refuses(expected);
    }
}

#[test]
fn an_operation_under_way_is_not_disturbed() {
    let scene = Scene::new();
    let one = scene.fixture.build(&scene.from, |folder| write(&folder.join("dir/c.txt"), "one\n"));
    scene.user(&["checkout", "-q", "-b", "topic"]);
    scene.fixture.write("dir/c.txt", "two\n");
    scene.fixture.commit_all("two");
    scene.user(&["checkout", "-q", "main"]);
    let occupied = |expected: &str| {
        let before = scene.fixture.witness();
        match scene.land() {
            LandOutcome::Occupied { operation, .. } => {
                assert_eq!(operation, format!("a {expected} is in progress"))
            }
            other => panic!("{other:?}"),
        }
        assert_eq!(before, scene.fixture.witness());
    };
    scene.user(&["merge", "-q", "--no-ff", "--no-commit", "topic"]);
    occupied("merge");
    scene.user(&["merge", "--abort"]);
    scene.user(&["update-ref", "refs/heads/main", one.as_str()]);
    scene.user(&["reset", "-q", "--hard"]);
    let rebase = scene.fixture.user_command(&["rebase", "-q", "topic"], &scene.fixture.repo());
    assert!(!{ rebase }.output().unwrap().status.success(), "it should conflict");
    let to = scene.fixture.build(&one, |folder| write(&folder.join("a.txt"), "landed\n"));
    let landing = land(&scene.repository, "main", &one, &to).unwrap();
    assert!(
        matches!(landing, LandOutcome::Occupied { operation: "a rebase is in progress", .. }),
        "{landing:?}"
    );
    assert_eq!(scene.fixture.tip("main"), one);
}

#[test]
fn an_index_held_by_the_users_git_is_a_transient_error() {
    let scene = Scene::new();
    let lock = scene.fixture.repo().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let before = scene.fixture.witness();
    let error = land(&scene.repository, "main", &scene.from, &scene.to).unwrap_err();
    assert!(matches!(error, GitError::IndexLocked { .. }) && error.is_transient(), "{error:?}");
    assert_eq!(before, scene.fixture.witness());
    fs::remove_file(lock).unwrap();
    assert_eq!(scene.land(), LandOutcome::Moved);
}

#[test]
fn a_ref_held_by_the_users_git_leaves_the_files() {
    let scene = Scene::new();
    let lock = scene.fixture.repo().join(".git/refs/heads/main.lock");
    fs::write(&lock, "").unwrap();
    let before = scene.fixture.witness();
    let error = land(&scene.repository, "main", &scene.from, &scene.to).unwrap_err();
    assert!(matches!(error, GitError::RefLocked { .. }) && error.is_transient(), "{error:?}");
    assert_eq!(before, scene.fixture.witness());
    fs::remove_file(lock).unwrap();
    assert_eq!(scene.land(), LandOutcome::Moved);
    scene.has_landed();
}

#[test]
fn a_branch_that_moved_or_went_is_stale() {
    let scene = Scene::new();
    scene.fixture.write("dir/c.txt", "newer\n");
    let newer = scene.fixture.commit_all("newer");
    let before = scene.fixture.witness();
    assert_eq!(scene.land(), LandOutcome::Stale { found: Some(newer) });
    assert_eq!(before, scene.fixture.witness());
    let gone = land(&scene.repository, "gone", &scene.from, &scene.to).unwrap();
    assert_eq!(gone, LandOutcome::Stale { found: None });
}

#[test]
fn a_landing_that_would_drop_commits_is_an_error() {
    let scene = Scene::new();
    let side = scene.fixture.build(&scene.from, |folder| write(&folder.join("x"), "x"));
    assert_eq!(scene.land(), LandOutcome::Moved);
    let error = land(&scene.repository, "main", &scene.to, &side).unwrap_err();
    assert!(matches!(error, GitError::NotForward { .. }), "{error:?}");
    scene.has_landed();
}

/// Tests the states in which a landing can be interrupted, in the order of its steps.
#[test]
fn a_landing_cut_short_anywhere_is_completed_by_the_next() {
    type Cut<'a> = (&'a str, &'a dyn Fn(&Scene));
    let mark = |scene: &Scene| {
        scene.fixture.write(".git/index.lock", "drydock is landing a commit here\n");
    };
    let files = |scene: &Scene| {
        scene.fixture.write("a.txt", "landed\n");
        fs::remove_file(scene.fixture.repo().join("b.txt")).unwrap();
        scene.fixture.write("new/d.txt", "d\n");
    };
    let cuts: &[Cut<'_>] = &[
        ("index locked", &|s| mark(s)),
        ("one file edited", &|s| {
            mark(s);
            s.fixture.write("a.txt", "landed\n");
        }),
        ("one file deleted", &|s| {
            mark(s);
            fs::remove_file(s.fixture.repo().join("b.txt")).unwrap();
        }),
        ("one file created", &|s| {
            mark(s);
            s.fixture.write("new/d.txt", "d\n");
        }),
        ("a directory created", &|s| {
            mark(s);
            fs::create_dir(s.fixture.repo().join("new")).unwrap();
        }),
        ("all files", &|s| {
            mark(s);
            files(s);
        }),
        ("all files and the index", &|s| {
            s.user(&["read-tree", "-m", "-u", s.from.as_str(), s.to.as_str()]);
            mark(s);
        }),
        ("all but the ref", &|s| {
            s.user(&["read-tree", "-m", "-u", s.from.as_str(), s.to.as_str()]);
        }),
    ];
    for (name, cut) in cuts {
        let scene = Scene::new();
        cut(&scene);
        assert_eq!(scene.land(), LandOutcome::Moved, "{name}");
        scene.has_landed();
        assert_eq!(scene.land(), LandOutcome::Already, "{name}");
    }
}

#[test]
fn a_file_that_becomes_a_directory_and_the_reverse_land_also_when_cut_short() {
    for cut in ["nothing", "some files", "files", "files and index"] {
        let fixture = Fixture::new();
        let from = fixture.tip("main");
        let change = |folder: &std::path::Path| {
            fs::remove_file(folder.join("a.txt")).unwrap();
            write(&folder.join("a.txt/inner"), "i\n");
            fs::remove_dir_all(folder.join("dir")).unwrap();
            write(&folder.join("dir"), "a file\n");
        };
        let to = fixture.build(&from, change);
        match cut {
            "some files" => {
                fs::remove_dir_all(fixture.repo().join("dir")).unwrap();
                fixture.write("dir", "a file\n");
            }
            "files" => change(&fixture.repo()),
            "files and index" => {
                change(&fixture.repo());
                fixture.user(&["read-tree", to.as_str()], &fixture.repo());
            }
            _ => {}
        }
        assert_eq!(land(&fixture.open(), "main", &from, &to).unwrap(), LandOutcome::Moved, "{cut}");
        assert_eq!(fixture.status(&fixture.repo()), "", "{cut}");
        assert_eq!(read(&fixture.repo().join("dir")), "a file\n");
    }
}

#[test]
fn of_two_landers_one_moves_the_branch_and_the_other_is_stale() {
    for checked_out in ["main", "other"] {
        let scene = Scene::new();
        if checked_out == "other" {
            scene.user(&["checkout", "-q", "-b", "other"]);
        }
        let second = scene.fixture.build(&scene.from, |folder| write(&folder.join("a.txt"), "second\n"));
        let land = |to: CommitId| {
            let (fixture, from) = (&scene.fixture, &scene.from);
            move || land(&fixture.open(), "main", from, &to).unwrap()
        };
        let (one, two) = thread::scope(|scope| {
            let one = scope.spawn(land(scene.to.clone()));
            let two = scope.spawn(land(second.clone()));
            (one.join().unwrap(), two.join().unwrap())
        });
        let winner = scene.fixture.tip("main");
        let stale = LandOutcome::Stale { found: Some(winner.clone()) };
        let expected =
            if winner == scene.to { (LandOutcome::Moved, stale) } else { (stale, LandOutcome::Moved) };
        assert_eq!((one, two), expected);
        assert_eq!(scene.fixture.status(&scene.fixture.repo()), "");
    }
}

/// S1.3: a process that lost its lock can no longer move anything, because the new holder deleted its intent.
#[test]
fn nothing_lands_under_a_revoked_permit() {
    for checked_out in ["main", "other"] {
        let scene = Scene::new();
        scene.user(&["checkout", "-q", "-B", checked_out]);
        let permit = "refs/drydock/intent/plan/run";
        let land = || scene.repository.land("main", &scene.from, &scene.to, permit).unwrap();
        assert_eq!(land(), LandOutcome::Revoked, "no permit, {checked_out} checked out");
        scene.repository.ref_create(permit, &scene.from).unwrap();
        assert_eq!(land(), LandOutcome::Revoked, "a permit for another commit, {checked_out} checked out");
        assert_eq!(scene.repository.branch_tip("main").unwrap(), Some(scene.from.clone()));
        scene.repository.ref_delete(permit, &scene.from).unwrap();
        scene.repository.ref_create(permit, &scene.to).unwrap();
        assert_eq!(land(), LandOutcome::Moved);
    }
}
