//! The repository lock: its holder, and a holder whose fence has expired (BUG-11).

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use drydock_domain::{AtPid, Fence, ProcessIdentity};
use drydock_testkit::wait;
use drydock_worktree::{GitError, LockHolder, Standing, at_pid, this_process};

use crate::child;
use crate::fixture::{Fixture, write};
use crate::scene::Scene;

const LIMIT: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_millis(300);

fn hold(fixture: &Fixture, process: ProcessIdentity) -> File {
    let path = fixture.repo().join(".git/drydock.lock");
    let plan = Some(("plan-x".to_owned(), Fence(7)));
    let holder = LockHolder { plan, process, attempt: "land a commit".to_owned() };
    write(&path, &serde_json::to_string(&holder).unwrap());
    let file = File::options().write(true).open(path).unwrap();
    file.lock().unwrap();
    file
}

/// Breaks when a waiter kills a process whose fence is still current, or waits forever for a frozen one.
#[test]
fn a_frozen_holder_is_ended_once_its_fence_is_over() {
    let scene = Scene::pushed();
    let base = scene.fixture.tip("main");
    scene.remote_commit("a.txt", "theirs\n", "theirs");
    let frozen = child::sync_and_stall(&scene, "sync.files", &scene.fixture.path("never"));
    let lock = scene.fixture.repo().join(".git/drydock.lock");
    let holder = wait::until("it holds the lock", LIMIT, || {
        serde_json::from_slice::<LockHolder>(&std::fs::read(&lock).ok()?).ok()
    });
    assert_eq!(holder.plan, Some(("p".to_owned(), Fence(3))));
    assert_eq!((holder.process.pid, &holder.process.boot), (frozen.pid(), &this_process().boot));
    frozen.pause();
    let asked = Arc::new(AtomicUsize::new(0));
    let (count, seen) = (asked.clone(), holder.clone());
    let judge = Arc::new(move |holder: &LockHolder| {
        assert_eq!(*holder, seen);
        if count.fetch_add(1, Ordering::SeqCst) < 2 { Standing::Current } else { Standing::Over }
    });
    let began = Instant::now();
    let repository = scene.repository().judged_by(judge, LEASE);
    repository.checkout_detached(&scene.fixture.tree("other"), &base).unwrap();
    assert!(began.elapsed() >= 3 * LEASE, "{:?}", began.elapsed());
    assert_eq!(asked.load(Ordering::SeqCst), 4, "its fence is over at two looks");
    assert_eq!(frozen.wait(LIMIT).code(), None, "it was killed");
    assert_eq!(std::fs::read(&lock).unwrap(), b"", "who lets go of it leaves no name");
}

/// Breaks when a waiter silently waits for a holder on another machine, or mistakes its pid for a local
/// process.
#[test]
fn a_holder_elsewhere_is_reported() {
    let fixture = Fixture::new();
    let repository = fixture.open().judged_by(Arc::new(|_: &LockHolder| Standing::Over), LEASE);
    let mut bystander = std::process::Command::new("sleep").arg("60").spawn().unwrap();
    let AtPid::Started(at) = at_pid(bystander.id()) else { panic!("it runs") };
    // Only the host differs from a local process.
    let (host, pid) = ("elsewhere".to_owned(), bystander.id());
    let process = ProcessIdentity { host, pid, started: Some(at), ..this_process() };
    let _held = hold(&fixture, process);
    let began = Instant::now();
    let error = repository.checkout_detached(&fixture.tree("p"), &fixture.tip("main")).unwrap_err();
    assert!(matches!(error, GitError::Busy { .. }) && error.is_transient(), "{error:?}");
    assert!(began.elapsed() < LIMIT, "it is reported after the lease: {:?}", began.elapsed());
    let text = error.to_string();
    for word in ["on elsewhere", "plan-x", "fence 7", "land a commit", "drydock.lock"] {
        assert!(text.contains(word), "{word} is missing in {text}");
    }
    assert!(bystander.try_wait().unwrap().is_none(), "a process of this machine has nothing to do with it");
    bystander.kill().unwrap();
    bystander.wait().unwrap();
}
