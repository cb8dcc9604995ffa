//! Files with which an agent tries to block a capture, make it grow without limit, or run the agent's
//! program.

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use drydock_domain::ChangeOp;
use drydock_testkit::wait;
use drydock_worktree::{CaptureBounds, Git, GitError, Link, Repository, StopSignal};
use rustix::fs::{CWD, FileType, Mode, RenameFlags, mknodat, renameat_with};

use crate::capture::Scene;
use crate::fixture::{Fixture, ada, write};

/// Much shorter than the time limit of a git call that blocks on a pipe.
const AT_ONCE: Duration = Duration::from_secs(20);

/// A repository with a submodule, and another repository at the same commit whose filter leaves a mark.
struct Trap {
    scene: Scene,
    /// The agent's repository, next to the worktree.
    evil: PathBuf,
    mark: PathBuf,
}

impl Trap {
    fn new() -> Trap {
        let fixture = Fixture::new();
        let (evil, mark) = (fixture.path("evil"), fixture.path("mark"));
        fs::create_dir(&evil).unwrap();
        fixture.user(&["init", "-q"], &evil);
        write(&evil.join(".gitattributes"), "* filter=evil\n");
        write(&evil.join("x.txt"), "one\n");
        let inner = fixture.commit_in(&evil, "inner");
        let clean = format!("touch {}; cat", mark.display());
        fixture.user(&["config", "filter.evil.clean", &clean], &evil);
        // Same size as before, so that git must read the file.
        write(&evil.join("x.txt"), "two\n");
        let link = format!("160000,{inner},sub");
        fixture.user(&["update-index", "--add", "--cacheinfo", &link], &fixture.repo());
        fixture.user(&["commit", "-q", "-m", "submodule"], &fixture.repo());
        let scene = Scene::of(fixture);
        fs::remove_dir(scene.path().join("sub")).unwrap();
        write(&scene.path().join("sub"), "a file\n");
        Trap { scene, evil, mark }
    }
}

fn refusal(scene: &Scene) -> GitError {
    let begun = Instant::now();
    let error = scene.checkout.capture(&scene.base, "x", &ada()).unwrap_err();
    assert!(begun.elapsed() < AT_ONCE, "{:?}: {error:?}", begun.elapsed());
    error
}

/// F1. Breaks when a gitlink is in the index while files are added: git then runs `status`, with the filters
/// of the other repository, in anything the agent put in its place since the check. Here the agent does so at
/// the moment `git add` starts.
#[test]
fn nothing_runs_in_a_repository_that_takes_the_place_of_a_submodule() {
    let trap = Trap::new();
    let Trap { scene, evil, mark } = &trap;
    let (sub, wrapper) = (scene.path().join("sub"), scene.fixture.path("git"));
    let exchange = format!("rm {sub} && mv {evil} {sub}", sub = sub.display(), evil = evil.display());
    let git = scene.fixture.git.program().display();
    write(&wrapper, &format!("#!/bin/sh\nif [ \"$1\" = add ]; then {exchange}; fi\nexec {git} \"$@\"\n"));
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let git = Git::at(wrapper).unwrap().with_home(&scene.fixture.path("home"));
    let repository = Repository::open(&git, &scene.fixture.repo()).unwrap();
    let checkout = repository.checkout_open(scene.path()).unwrap().unwrap();
    let captured = checkout.capture(&scene.base, "x", &ada());
    assert!(sub.is_dir(), "nothing was exchanged, so this shows nothing: {captured:?}");
    assert!(!mark.exists(), "a filter of the agent's ran: {captured:?}");
}

/// F1. The same while the agent keeps exchanging the two. Captures may fail, but run nothing.
#[test]
fn nothing_runs_while_a_submodule_is_exchanged_all_the_time() {
    let trap = Trap::new();
    let (sub, evil) = (trap.scene.path().join("sub"), trap.evil.clone());
    let ended = Arc::new(AtomicBool::new(false));
    let agent = thread::spawn({
        let ended = Arc::clone(&ended);
        move || {
            let mut turns = 0_u64;
            while !ended.load(Ordering::Relaxed) {
                renameat_with(CWD, &sub, CWD, &evil, RenameFlags::EXCHANGE).unwrap();
                turns += 1;
                thread::sleep(Duration::from_micros(turns % 7 * 500));
            }
            turns
        }
    });
    let Trap { scene, mark, .. } = &trap;
    let mut outcomes = Vec::new();
    for _ in 0..25 {
        outcomes.push(scene.checkout.capture(&scene.base, "x", &ada()).is_ok());
        if mark.exists() {
            break;
        }
    }
    ended.store(true, Ordering::Relaxed);
    assert!(agent.join().unwrap() > 25);
    assert!(
        !mark.exists(),
        "a filter of the agent's ran, after captures that went well or not: {outcomes:?}"
    );
}

/// F1. Breaks when a gitlink that the agent staged with another commit is captured.
#[test]
fn a_submodule_at_another_commit_is_refused() {
    let trap = Trap::new();
    let scene = &trap.scene;
    fs::remove_file(scene.path().join("sub")).unwrap();
    fs::create_dir(scene.path().join("sub")).unwrap();
    scene.agent(&["update-index", "--cacheinfo", &format!("160000,{},sub", "2".repeat(40))]);
    let error = refusal(scene);
    assert!(matches!(&error, GitError::SubmoduleChanged { path } if path == "sub"), "{error:?}");
}

/// Breaks when a replacement of a submodule is not captured as what it now is, or a symbolic link is
/// followed.
#[test]
fn a_submodule_that_became_a_link_or_a_folder_is_captured_or_refused() {
    let trap = Trap::new();
    let scene = &trap.scene;
    let sub = scene.path().join("sub");
    fs::remove_file(&sub).unwrap();
    symlink(&trap.evil, &sub).unwrap();
    let captured = scene.checkout.capture(&scene.base, "x", &ada()).unwrap();
    let listed = scene.fixture.user(&["ls-tree", captured.commit.as_str(), "sub"], &scene.fixture.repo());
    assert!(listed.starts_with("120000 blob"), "{listed}");
    fs::remove_file(&sub).unwrap();
    write(&sub.join("new.txt"), "n\n");
    let error = refusal(scene);
    assert!(matches!(&error, GitError::SubmoduleChanged { path } if path == "sub"), "{error:?}");
    assert!(!trap.mark.exists());
}

/// F5. Breaks when git reads a pipe, a socket or a device on which it would block.
#[test]
fn special_files_that_git_would_wait_for_are_named_at_once() {
    let scene = Scene::new();
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fs::create_dir_all(scene.path().join("deep/er")).unwrap();
    for name in [".gitignore", "deep/.gitattributes", "deep/er/.gitignore", ".gitmodules"] {
        let path = scene.path().join(name);
        fifo(&path);
        let error = refusal(&scene);
        let named = matches!(&error, GitError::SpecialFile { path, kind: "pipe" } if path == name);
        assert!(named, "{name}: {error:?}");
        assert!(!error.is_transient(), "{name}");
        fs::remove_file(&path).unwrap();
    }
    let _listener = UnixListener::bind(scene.path().join("deep/.gitattributes")).unwrap();
    let error = refusal(&scene);
    assert!(matches!(&error, GitError::SpecialFile { kind: "socket", .. }), "{error:?}");
    fs::remove_file(scene.path().join("deep/.gitattributes")).unwrap();
    // Git does not follow a symbolic link here, and neither does the walk.
    fifo(&scene.fixture.path("pipe"));
    symlink(scene.fixture.path("pipe"), scene.path().join("dir/.gitattributes")).unwrap();
    // Other special files do no harm and are left out.
    fifo(&scene.path().join("pipe"));
    let _other = UnixListener::bind(scene.path().join("dir/socket")).unwrap();
    assert_eq!(scene.paths(&scene.capture()), [("dir/.gitattributes".to_owned(), ChangeOp::Create)]);
    // A checkout that was reset has none of the files on which git would block.
    fifo(&scene.path().join(".gitignore"));
    scene.checkout.put_back(&scene.base).unwrap();
    assert!(scene.capture().is_empty());
}

/// F5. Breaks when a call that removes a submodule from the index reads files, as git does when it writes an
/// index in the same second as its files.
#[test]
fn a_pipe_beside_a_submodule_is_named_at_once() {
    let trap = Trap::new();
    let scene = &trap.scene;
    let index = scene.agent(&["rev-parse", "--git-path", "index"]);
    let index = File::options().write(true).open(index).unwrap();
    index.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    let pipe = scene.path().join(".gitattributes");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let error = refusal(scene);
    assert!(matches!(&error, GitError::SpecialFile { path, .. } if path == ".gitattributes"), "{error:?}");
}

/// F5. Breaks when git reads a nested repository of the agent whose HEAD is a pipe.
#[test]
fn a_nested_repository_of_pipes_is_named_at_once() {
    let scene = Scene::new();
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let git_dir = scene.path().join("nested/.git");
    for name in ["objects", "refs"] {
        fs::create_dir_all(git_dir.join(name)).unwrap();
    }
    write(&scene.path().join("nested/x.txt"), "x\n");
    fifo(&git_dir.join("HEAD"));
    let error = refusal(&scene);
    assert!(matches!(&error, GitError::SpecialFile { path, .. } if path == "nested/.git/HEAD"), "{error:?}");
    fs::remove_file(git_dir.join("HEAD")).unwrap();
    write(&git_dir.join("HEAD"), "ref: refs/heads/main\n");
    fs::create_dir(git_dir.join("refs/heads")).unwrap();
    fifo(&git_dir.join("refs/heads/main"));
    let error = refusal(&scene);
    assert!(matches!(&error, GitError::NestedRepository { path } if path == "nested"), "{error:?}");
    // An ignored directory is left out, and a directory of this repository is captured regardless of its
    // content.
    write(&scene.path().join(".gitignore"), "nested/\n");
    assert_eq!(scene.paths(&scene.capture()), [(".gitignore".to_owned(), ChangeOp::Create)]);
    fs::rename(&git_dir, scene.path().join("dir/.git")).unwrap();
    write(&scene.path().join("dir/new.txt"), "n\n");
    assert!(scene.paths(&scene.capture()).contains(&("dir/new.txt".to_owned(), ChangeOp::Create)));
}

/// N6. Breaks when resetting a checkout removes the target of an agent's `.git` link, or keeps a pipe that
/// git reads.
#[test]
fn files_outside_a_worktree_stay_when_it_is_put_back() {
    let scene = Scene::new();
    let fifo = |path: &Path| mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let outside = scene.fixture.path("outside");
    fs::create_dir(&outside).unwrap();
    fifo(&outside.join("HEAD"));
    fifo(&outside.join("config"));
    for name in ["named", "linked", "inside/.git"] {
        fs::create_dir_all(scene.path().join(name)).unwrap();
    }
    write(&scene.path().join("named/.git"), &format!("gitdir: {}\n", outside.display()));
    symlink(&outside, scene.path().join("linked/.git")).unwrap();
    symlink(outside.join("HEAD"), scene.path().join("inside/.git/HEAD")).unwrap();
    fifo(&scene.path().join("inside/.gitignore"));
    scene.checkout.put_back(&scene.base).unwrap();
    assert!(outside.join("HEAD").exists() && outside.join("config").exists());
    assert!(["named", "linked", "inside"].iter().all(|name| !scene.path().join(name).exists()));
}

/// N7. Breaks when many pipes delay the reset of a checkout, or when a stop does not end git there.
#[test]
fn a_thousand_pipes_do_not_hold_up_a_checkout_that_is_put_back() {
    let fixture = Fixture::new();
    let stop = StopSignal::new(|| true);
    let repository = fixture.open().stopped_by(stop);
    let scene = Scene::with(fixture, repository);
    for n in 0..1_001 {
        let folder = scene.path().join(format!("many/{n}"));
        fs::create_dir_all(&folder).unwrap();
        mknodat(CWD, folder.join(".gitignore"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    }
    let begun = Instant::now();
    scene.checkout.put_back(&scene.base).unwrap();
    assert!(!scene.path().join("many").exists());
    // A user's filter that does not end stands for a busy git.
    scene.fixture.user(&["config", "--global", "filter.slow.smudge", "sleep 600"], scene.path());
    fs::create_dir_all(scene.fixture.repo().join(".git/info")).unwrap();
    write(&scene.fixture.repo().join(".git/info/attributes"), "a.txt filter=slow\n");
    fs::remove_file(scene.path().join("a.txt")).unwrap();
    let error = scene.checkout.within(Duration::from_secs(600)).put_back(&scene.base).unwrap_err();
    assert!(matches!(&error, GitError::Stopped { .. }), "{error:?}");
    assert!(begun.elapsed() < AT_ONCE, "{:?}", begun.elapsed());
}

/// F5. Breaks when the content of a file that is too large is read, or when ignored or unchanged files count.
#[test]
fn bounds_count_what_differs_from_the_base() {
    let fixture = Fixture::new();
    let sparse = |path: &Path, size: u64| File::create(path).unwrap().set_len(size).unwrap();
    sparse(&fixture.repo().join("old.bin"), 5_000);
    fixture.commit_all("large");
    let bounds = CaptureBounds { file_max: 1_000, total_max: 2_500, files_max: 5 };
    let repository = fixture.open().capturing(bounds);
    let scene = Scene::with(fixture, repository);
    write(&scene.path().join(".gitignore"), "*.o\n");
    sparse(&scene.path().join("big.o"), 100_000);
    for n in 0..4 {
        sparse(&scene.path().join(format!("{n}.bin")), 600);
    }
    assert_eq!(scene.paths(&scene.capture()).len(), 5, "all are within the bounds");
    sparse(&scene.path().join("4.bin"), 600);
    let error = refusal(&scene);
    let expected = matches!(&error, GitError::ChangeTooLarge { size: 3_004, limit: 2_500, .. });
    assert!(expected, "{error:?}");
    for n in 0..4 {
        sparse(&scene.path().join(format!("dir/{n}.bin")), 0);
        sparse(&scene.path().join(format!("{n}.bin")), 0);
    }
    let error = refusal(&scene);
    let expected = matches!(&error, GitError::TooManyFiles { count: 10, limit: 5, .. });
    assert!(expected && error.to_string().contains("files_max"), "{error:?}");
    sparse(&scene.path().join("old.bin"), 3 << 30);
    let error = refusal(&scene);
    let expected = matches!(&error, GitError::FileTooLarge { path, size: 3_221_225_472, limit: 1_000 } if path == "old.bin");
    assert!(expected && error.to_string().contains("file_max"), "{error:?}");
}

/// N6. Breaks when a filter of the repository's own configuration runs while the limits are checked: git
/// reads files that changed in the second in which the index was written.
#[test]
fn filters_of_the_repository_do_not_run_for_the_bounds() {
    let fixture = Fixture::new();
    let mark = fixture.path("mark");
    let bounds = CaptureBounds { file_max: 1_000, ..CaptureBounds::default() };
    let repository = fixture.open().capturing(bounds);
    let scene = Scene::with(fixture, repository);
    let clean = format!("touch {}; cat", mark.display());
    scene.fixture.user(&["config", "filter.own.clean", &clean], &scene.fixture.repo());
    write(&scene.path().join(".gitattributes"), "a.txt filter=own\n");
    // Same size as before and as old as the index, so that git must read the file.
    write(&scene.path().join("a.txt"), "b\n");
    scene.agent(&["-c", "filter.own.clean=cat", "add", "a.txt"]);
    let index = File::options().write(true).open(scene.agent(&["rev-parse", "--git-path", "index"])).unwrap();
    index.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)).unwrap();
    File::create(scene.path().join("big.bin")).unwrap().set_len(5_000).unwrap();
    let error = refusal(&scene);
    assert!(!mark.exists(), "{error:?}");
}

/// F5. Breaks when a sparse file is read although it exceeds the default limit of a capture.
#[test]
fn a_sparse_file_of_three_gigabytes_is_refused_at_once() {
    let scene = Scene::new();
    File::create(scene.path().join("big.bin")).unwrap().set_len(3 << 30).unwrap();
    let error = refusal(&scene);
    assert!(matches!(&error, GitError::FileTooLarge { path, .. } if path == "big.bin"), "{error:?}");
    assert!(error.to_string().contains("3221225472 bytes"), "{error}");
}

/// F5. Breaks when a capture continues after its time limit or a stop request. A user's filter that does not
/// end stands for a busy git.
#[test]
fn a_capture_ends_at_its_limit_and_when_it_is_asked_to_stop() {
    let fixture = Fixture::new();
    let asked = Arc::new(AtomicBool::new(false));
    let stop = StopSignal::new({
        let asked = Arc::clone(&asked);
        move || asked.load(Ordering::Relaxed)
    });
    let repository = fixture.open().stopped_by(stop);
    let scene = Scene::with(fixture, repository);
    let begun = scene.fixture.path("begun");
    let clean = format!("touch {}; sleep 600", begun.display());
    scene.fixture.user(&["config", "--global", "filter.slow.clean", &clean], scene.path());
    fs::create_dir_all(scene.fixture.repo().join(".git/info")).unwrap();
    write(&scene.fixture.repo().join(".git/info/attributes"), "new.txt filter=slow\n");
    write(&scene.path().join("new.txt"), "n\n");
    let live = scene.checkout.within(Duration::from_millis(300));
    let error = live.capture(&scene.base, "x", &ada()).unwrap_err();
    assert!(matches!(&error, GitError::TimedOut { .. }), "{error:?}");
    fs::remove_file(&begun).ok();
    let live = scene.checkout.within(Duration::from_secs(600));
    let capture = thread::spawn({
        let base = scene.base.clone();
        move || live.capture(&base, "x", &ada()).unwrap_err()
    });
    wait::until("the filter to begin", AT_ONCE, || begun.exists().then_some(()));
    let at = Instant::now();
    asked.store(true, Ordering::Relaxed);
    let error = capture.join().unwrap();
    assert!(matches!(&error, GitError::Stopped { .. }) && error.is_transient(), "{error:?}");
    assert!(at.elapsed() < AT_ONCE, "{:?}", at.elapsed());
    // A capture of ordinary work is not stopped immediately.
    fs::remove_file(scene.path().join("new.txt")).unwrap();
    write(&scene.path().join("other.txt"), "o\n");
    assert_eq!(scene.paths(&scene.capture()), [("other.txt".to_owned(), ChangeOp::Create)]);
}

/// F8. Breaks when the agent's repository stays in place of `.git`, or when its content is lost.
#[test]
fn the_link_of_a_worktree_is_put_back_and_what_was_there_is_kept() {
    let scene = Scene::new();
    let (link, aside) = (scene.path().join(".git"), scene.fixture.path("aside"));
    let before = fs::read(&link).unwrap();
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Sound);
    fs::remove_file(&link).unwrap();
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Removed);
    assert_eq!(fs::read(&link).unwrap(), before);
    fs::remove_file(&link).unwrap();
    scene.agent(&["init", "-q"]);
    assert!(link.is_dir());
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Replaced);
    assert_eq!((fs::read(&link).unwrap(), aside.join("HEAD").exists()), (before.clone(), true));
    fs::remove_file(&link).unwrap();
    mknodat(CWD, &link, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    fs::remove_dir_all(&aside).unwrap();
    // Neither the verification of the worktree nor a capture blocks on the pipe.
    scene.checkout.verify(&scene.base).unwrap();
    assert!(scene.capture().is_empty());
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Replaced);
    assert_eq!(fs::read(&link).unwrap(), before);
}

/// F8. Breaks when an agent keeps its `.git` by removing write permission. Permissions do not apply to root,
/// so the test checks the modes.
#[test]
fn the_link_of_a_worktree_is_put_back_where_the_agent_took_the_right_to_write() {
    let scene = Scene::new();
    let (link, aside) = (scene.path().join(".git"), scene.fixture.path("aside"));
    let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    let outside = scene.fixture.path("outside");
    fs::create_dir(&outside).unwrap();
    set(&outside, 0o555);
    fs::remove_file(&link).unwrap();
    symlink(&outside, &link).unwrap();
    set(scene.path(), 0o055);
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Replaced);
    assert_eq!((mode(scene.path()), mode(&outside)), (0o755, 0o555), "no link is followed");
    fs::remove_file(&aside).unwrap();
    fs::remove_file(&link).unwrap();
    fs::create_dir(&link).unwrap();
    set(&link, 0o555);
    set(scene.path(), 0o555);
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Replaced);
    assert_eq!((mode(scene.path()), mode(&aside)), (0o755, 0o755));
    assert_eq!(scene.checkout.restore_link(&aside).unwrap(), Link::Sound);
}
