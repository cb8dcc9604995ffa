//! Captures of an agent's work, for every way in which an agent can change files.

use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use drydock_domain::ChangeOp;
use drydock_worktree::{Captured, Checkout, CommitId, GitError, Repository};

use crate::fixture::{Fixture, ada, read, write};

pub(crate) const BRANCH: &str = "drydock/p/work";

/// A repository with a checkout in which an agent works.
pub(crate) struct Scene {
    pub(crate) fixture: Fixture,
    pub(crate) repository: Repository,
    pub(crate) base: CommitId,
    pub(crate) checkout: Checkout,
}

impl Scene {
    pub(crate) fn new() -> Scene {
        Scene::of(Fixture::new())
    }

    pub(crate) fn of(fixture: Fixture) -> Scene {
        let repository = fixture.open();
        Scene::with(fixture, repository)
    }

    pub(crate) fn with(fixture: Fixture, repository: Repository) -> Scene {
        let base = fixture.tip("main");
        let checkout = repository.checkout_add(&fixture.tree("p"), BRANCH, &base).unwrap();
        Scene { fixture, repository, base, checkout }
    }

    pub(crate) fn path(&self) -> &Path {
        self.checkout.path()
    }

    pub(crate) fn capture(&self) -> Captured {
        self.checkout.capture(&self.base, "captured", &ada()).unwrap()
    }

    pub(crate) fn paths(&self, captured: &Captured) -> Vec<(String, ChangeOp)> {
        let changes = self.repository.changes(&self.base, &captured.commit).unwrap();
        changes.into_iter().map(|change| (change.path, change.op)).collect()
    }

    pub(crate) fn agent(&self, args: &[&str]) -> String {
        self.fixture.user(args, self.path())
    }
}

/// Breaks when the index is copied without its modification time: git then considers a file unchanged that
/// was rewritten with the same size in the second in which it was checked out.
#[test]
fn what_is_written_in_the_second_of_the_checkout_is_captured() {
    let scene = Scene::new();
    let (file, index) =
        (scene.path().join("a.txt"), PathBuf::from(scene.agent(&["rev-parse", "--git-path", "index"])));
    // Only the kernel can set the ctime; with this setting git ignores it, and the test can choose the
    // second.
    scene.agent(&["config", "core.trustctime", "false"]);
    let second = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    let age = |path: &Path| File::options().write(true).open(path).unwrap().set_modified(second).unwrap();
    age(&file);
    scene.agent(&["update-index", "--refresh"]);
    age(&index);
    let written = read(&file).to_uppercase();
    assert_ne!(written, read(&file));
    write(&file, &written);
    age(&file);
    let captured = scene.capture();
    assert_eq!(scene.paths(&captured), [("a.txt".to_owned(), ChangeOp::Modify)]);
    // The agent's `git status` afterwards is correct as well.
    scene.checkout.branch_set(&scene.base).unwrap();
    assert!(scene.agent(&["status", "--porcelain"]).contains("a.txt"));
}

#[test]
fn everything_in_the_directory_is_captured_and_the_agents_index_is_untouched() {
    let fixture = Fixture::new();
    fixture.write(".gitignore", "*.log\n");
    fixture.write("long.txt", &"one line of many\n".repeat(20));
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.commit_all("more");
    let scene = Scene::of(fixture);
    let folder = scene.path();
    write(&folder.join("a.txt"), "edited\n");
    fs::remove_file(folder.join("b.txt")).unwrap();
    write(&folder.join("new dir/x y\n.txt"), "new\n");
    write(&folder.join("debug.log"), "ignored\n");
    fs::rename(folder.join("long.txt"), folder.join("moved.txt")).unwrap();
    fs::set_permissions(folder.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("a.txt", folder.join("link")).unwrap();
    write(&folder.join("staged.txt"), "staged\n");
    scene.agent(&["add", "staged.txt"]);
    write(&folder.join("staged.txt"), "and edited\n");
    let index = scene.fixture.repo().join(".git/worktrees/1/index");
    let before = fs::read(&index).unwrap();
    let captured = scene.capture();
    assert_eq!(before, fs::read(&index).unwrap());
    assert!(!captured.is_empty());
    let expected = [
        ("a.txt", ChangeOp::Modify),
        ("b.txt", ChangeOp::Delete),
        ("link", ChangeOp::Create),
        ("moved.txt", ChangeOp::Rename),
        ("new dir/x y\n.txt", ChangeOp::Create),
        ("run.sh", ChangeOp::Modify),
        ("staged.txt", ChangeOp::Create),
    ];
    assert_eq!(scene.paths(&captured), expected.map(|(path, op)| (path.to_owned(), op)));
    let show = |what: &str| scene.agent(&["show", &format!("{}:{what}", captured.commit)]);
    assert_eq!(show("staged.txt"), "and edited");
    assert_eq!(show("link"), "a.txt");
    let parent = scene.agent(&["rev-parse", &format!("{}^", captured.commit)]);
    assert_eq!(parent, scene.base.as_str());
    let left = fs::read_dir(scene.fixture.repo().join(".git/worktrees/1")).unwrap();
    let left: Vec<_> = left.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    assert!(!left.iter().any(|name| name.starts_with("drydock-index")), "{left:?}");
}

#[test]
fn an_untouched_checkout_captures_as_empty() {
    let scene = Scene::new();
    let captured = scene.capture();
    assert!(captured.is_empty());
    assert_eq!(captured.tree, scene.repository.tree_of(&scene.base).unwrap());
    assert_eq!(scene.checkout.changed_paths(&scene.base).unwrap(), Vec::<String>::new());
}

#[test]
fn a_directory_emptied_by_the_agent_captures_as_deletions() {
    let scene = Scene::new();
    for name in ["a.txt", "b.txt", "dir/c.txt"] {
        fs::remove_file(scene.path().join(name)).unwrap();
    }
    assert_eq!(scene.paths(&scene.capture()).len(), 3);
}

#[test]
fn commits_of_the_agent_are_part_of_the_result() {
    let scene = Scene::new();
    write(&scene.path().join("one.txt"), "one\n");
    scene.fixture.commit_in(scene.path(), "own");
    scene.agent(&["checkout", "-q", "--detach"]);
    write(&scene.path().join("two.txt"), "two\n");
    let captured = scene.capture();
    let names: Vec<_> = scene.paths(&captured).into_iter().map(|(path, _)| path).collect();
    assert_eq!(names, ["one.txt", "two.txt"]);
}

#[test]
fn own_files_stay_out_however_the_agent_adds_them() {
    let fixture = Fixture::new();
    fixture.write(".drydock/kept.txt", "tracked\n");
    fixture.write(".drydock/deleted.txt", "tracked\n");
    fixture.commit_all("own files");
    let scene = Scene::of(fixture);
    write(&scene.path().join(".drydock/strategy.json"), "{}\n");
    assert!(scene.capture().is_empty(), "untracked");
    scene.agent(&["add", "-A"]);
    assert!(scene.capture().is_empty(), "staged");
    write(&scene.path().join(".drydock/kept.txt"), "edited\n");
    fs::remove_file(scene.path().join(".drydock/deleted.txt")).unwrap();
    scene.fixture.commit_in(scene.path(), "committed");
    assert!(scene.capture().is_empty(), "committed");
    fs::remove_dir_all(scene.path().join(".drydock")).unwrap();
    write(&scene.path().join(".drydock"), "a file in its place\n");
    scene.agent(&["add", "-A"]);
    assert!(scene.capture().is_empty(), "replaced by a file");
    write(&scene.path().join(".drydocks"), "not ours\n");
    assert_eq!(scene.paths(&scene.capture()), [(".drydocks".to_owned(), ChangeOp::Create)]);
}

#[test]
fn changed_paths_include_own_files_and_untracked_ones() {
    let scene = Scene::new();
    write(&scene.path().join(".drydock/strategy.json"), "{}\n");
    write(&scene.path().join("new.txt"), "n\n");
    fs::remove_file(scene.path().join("b.txt")).unwrap();
    let paths = scene.checkout.changed_paths(&scene.base).unwrap();
    assert_eq!(paths, [".drydock/strategy.json", "b.txt", "new.txt"]);
}

#[test]
fn a_repository_made_by_the_agent_is_named_and_not_linked() {
    let scene = Scene::new();
    let nested = scene.path().join("lib/nested");
    fs::create_dir_all(&nested).unwrap();
    let refused = |scene: &Scene, when: &str| {
        let error = scene.checkout.capture(&scene.base, "x", &ada()).unwrap_err();
        let named = matches!(&error, GitError::NestedRepository { path } if path == "lib/nested");
        assert!(named, "{when}: {error:?}");
    };
    scene.fixture.user(&["init", "-q"], &nested);
    write(&nested.join("x.txt"), "x\n");
    refused(&scene, "without commits");
    scene.fixture.commit_in(&nested, "inner");
    refused(&scene, "with commits");
    scene.agent(&["add", "lib/nested"]);
    refused(&scene, "staged");
    scene.agent(&["commit", "-q", "-m", "linked"]);
    refused(&scene, "committed");
    fs::remove_dir_all(nested.join(".git")).unwrap();
    scene.agent(&["rm", "-q", "--cached", "lib/nested"]);
    assert_eq!(scene.paths(&scene.capture()), [("lib/nested/x.txt".to_owned(), ChangeOp::Create)]);
}

#[test]
fn a_link_that_the_parent_has_stays() {
    let fixture = Fixture::new();
    let link = format!("160000,{},sub", "1".repeat(40));
    fixture.user(&["update-index", "--add", "--cacheinfo", &link], &fixture.repo());
    fixture.user(&["commit", "-q", "-m", "submodule"], &fixture.repo());
    let scene = Scene::of(fixture);
    assert!(scene.capture().is_empty());
    write(&scene.path().join("new.txt"), "n\n");
    assert_eq!(scene.paths(&scene.capture()), [("new.txt".to_owned(), ChangeOp::Create)]);
}

/// Breaks when files in a submodule's directory, or a replacement of the directory, are silently left out of
/// a capture.
#[test]
fn what_becomes_of_a_submodule_is_captured_or_refused() {
    let fixture = Fixture::new();
    let link = format!("160000,{},sub", "1".repeat(40));
    fixture.user(&["update-index", "--add", "--cacheinfo", &link], &fixture.repo());
    fixture.user(&["commit", "-q", "-m", "submodule"], &fixture.repo());
    let scene = Scene::of(fixture);
    let sub = scene.path().join("sub");
    let refused = |when: &str| {
        let error = scene.checkout.capture(&scene.base, "x", &ada()).unwrap_err();
        assert!(matches!(&error, GitError::SubmoduleChanged { path } if path == "sub"), "{when}: {error:?}");
    };
    write(&sub.join("new.txt"), "n\n");
    refused("a file of the agent's");
    let elsewhere = scene.fixture.path("modules");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(sub.join(".git"), format!("gitdir: {}\n", elsewhere.display())).unwrap();
    fs::write(elsewhere.join("HEAD"), format!("{}\n", "2".repeat(40))).unwrap();
    refused("a checkout of another commit");
    fs::write(elsewhere.join("HEAD"), format!("{}\n", "1".repeat(40))).unwrap();
    assert!(scene.capture().is_empty(), "a checkout of the commit that is recorded");
    fs::remove_dir_all(&sub).unwrap();
    assert_eq!(scene.paths(&scene.capture()), [("sub".to_owned(), ChangeOp::Delete)]);
    write(&sub, "a file\n");
    let captured = scene.capture();
    let listed = scene.fixture.user(&["ls-tree", captured.commit.as_str(), "sub"], &scene.fixture.repo());
    assert!(listed.starts_with("100644 blob"), "{listed}");
}

#[test]
fn nothing_the_agent_does_to_its_index_hides_its_work() {
    let scene = Scene::new();
    scene.agent(&["update-index", "--assume-unchanged", "a.txt"]);
    scene.agent(&["update-index", "--skip-worktree", "b.txt"]);
    write(&scene.path().join("a.txt"), "hidden\n");
    write(&scene.path().join("b.txt"), "hidden\n");
    assert_eq!(scene.paths(&scene.capture()).len(), 2, "flags");
    let git_dir = scene.fixture.repo().join(".git/worktrees/1");
    fs::write(git_dir.join("index.lock"), "").unwrap();
    assert_eq!(scene.paths(&scene.capture()).len(), 2, "a lock left by a kill");
    fs::remove_file(git_dir.join("index")).unwrap();
    assert_eq!(scene.paths(&scene.capture()).len(), 2, "no index at all");
    fs::write(scene.path().join(".git"), "gitdir: /nowhere\n").unwrap();
    assert_eq!(scene.paths(&scene.capture()).len(), 2, "a rewritten link");
}

#[test]
fn a_name_that_is_not_utf_8_cannot_be_captured_and_is_named() {
    let scene = Scene::new();
    fs::write(scene.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt")), "x").unwrap();
    let error = scene.checkout.capture(&scene.base, "x", &ada()).unwrap_err();
    assert!(matches!(&error, GitError::PathNotUtf8 { path } if path.starts_with("caf")), "{error:?}");
}

#[test]
fn line_ends_are_normalised_as_the_user_has_set_them() {
    let fixture = Fixture::new();
    fixture.user(&["config", "core.autocrlf", "true"], &fixture.repo());
    fixture.user(&["config", "core.safecrlf", "true"], &fixture.repo());
    let scene = Scene::of(fixture);
    assert_eq!(read(&scene.path().join("a.txt")), "a\r\n");
    assert!(scene.capture().is_empty());
    write(&scene.path().join("mixed.txt"), "one\r\ntwo\n");
    let captured = scene.capture();
    let blob = scene.repository.changes(&scene.base, &captured.commit).unwrap().remove(0).after.unwrap();
    assert_eq!(scene.repository.blob(&blob).unwrap(), b"one\ntwo\n");
}

#[test]
fn setting_the_branch_leaves_files_alone_and_the_status_clean() {
    let scene = Scene::new();
    write(&scene.path().join("new.txt"), "new\n");
    write(&scene.path().join("a.txt"), "edited\n");
    fs::remove_file(scene.path().join("b.txt")).unwrap();
    let captured = scene.capture();
    for _ in 0..2 {
        scene.checkout.branch_set(&captured.commit).unwrap();
        assert_eq!(scene.fixture.tip(BRANCH), captured.commit);
        assert_eq!(scene.agent(&["diff-files", "--name-only"]), "", "before anything refreshes the index");
        assert_eq!(scene.agent(&["status", "--porcelain"]), "");
        assert_eq!(read(&scene.path().join("new.txt")), "new\n");
        assert!(!scene.path().join("b.txt").exists());
    }
}

#[test]
fn setting_the_branch_ends_what_an_agent_left_half_done() {
    let scene = Scene::new();
    write(&scene.path().join("a.txt"), "one\n");
    let one = scene.fixture.commit_in(scene.path(), "one");
    scene.agent(&["checkout", "-q", "-b", "side", scene.base.as_str()]);
    write(&scene.path().join("a.txt"), "two\n");
    scene.fixture.commit_in(scene.path(), "two");
    let merge = scene.fixture.user_command(&["merge", "-q", one.as_str()], scene.path()).output().unwrap();
    assert!(!merge.status.success(), "it should conflict");
    fs::write(scene.fixture.repo().join(".git/worktrees/1/index.lock"), "").unwrap();
    let captured = scene.capture();
    scene.checkout.branch_set(&captured.commit).unwrap();
    assert_eq!(scene.agent(&["status", "--porcelain"]), "");
    assert_eq!(scene.agent(&["branch", "--show-current"]), BRANCH);
    assert!(!scene.agent(&["status"]).contains("merg"));
    assert!(read(&scene.path().join("a.txt")).contains("<<<<<<<"), "files stay as the agent left them");
}
