//! Runs this test program as another process: the parent sets variables, and the only test in this file does
//! what they request.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use drydock_domain::{Fence, OnDivergence, Publish};
use drydock_testkit::proc;
use drydock_worktree::{BackupRequest, CommitId, Git, Repository, SyncRequest};

use crate::fixture::ada;
use crate::scene::{BRANCH, Scene};

const JOB: &str = "DRYDOCK_WORKTREE_TEST_JOB";
const FOLDER: &str = "DRYDOCK_WORKTREE_TEST_FOLDER";
const ARGUMENT: &str = "DRYDOCK_WORKTREE_TEST_ARGUMENT";

/// Starts another process that syncs and crashes at a point.
pub(crate) fn sync_and_die(scene: &Scene, point: &str, replaces: Option<&CommitId>) -> proc::RunningProcess {
    let replaces = replaces.map_or("", CommitId::as_str);
    proc::spawn(program(scene, "sync", replaces).env("DRYDOCK_CRASH_AT", point))
}

/// Starts another process that syncs and waits at a point until a file exists.
pub(crate) fn sync_and_stall(scene: &Scene, point: &str, until: &Path) -> proc::RunningProcess {
    let asked = format!("{point}:{}", until.display());
    proc::spawn(program(scene, "sync", "").env("DRYDOCK_STALL_AT", asked))
}

/// Starts another process that backs up the commits listed in a file, one per line.
pub(crate) fn pin_all(scene: &Scene, list: &Path) -> proc::RunningProcess {
    proc::spawn(&mut program(scene, "pin", list.to_str().unwrap()))
}

fn program(scene: &Scene, job: &str, argument: &str) -> Command {
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "child::works", "--nocapture"]);
    program.env(JOB, job).env(FOLDER, scene.fixture.path("")).env(ARGUMENT, argument);
    program
}

#[test]
fn works() {
    let Ok(job) = env::var(JOB) else { return };
    let folder = PathBuf::from(env::var(FOLDER).unwrap());
    let argument = env::var(ARGUMENT).unwrap();
    let git = Git::find().unwrap().with_home(&folder.join("home"));
    let repository = Repository::open(&git, &folder.join("repo")).unwrap().on_behalf("p", Fence(3));
    match job.as_str() {
        "sync" => sync(&repository, &folder, &argument),
        "pin" => pin(&repository, &argument),
        other => panic!("unknown job {other}"),
    }
}

fn sync(repository: &Repository, folder: &Path, replaces: &str) {
    let checkout = repository.checkout_open(&folder.join("store/worktrees/p/1")).unwrap();
    let base = repository.branch_tip("main").unwrap().unwrap();
    let signature = ada();
    let outcome = repository.sync(&SyncRequest {
        branch: BRANCH,
        base: &base,
        target: "main",
        remote: Some("origin"),
        worktree: checkout.as_ref(),
        on_divergence: OnDivergence::Recover,
        publish: Publish::Yes,
        replaces: replaces.parse().ok().as_ref(),
        pin: BackupRequest { plan: "p", run: Some("r"), reason: "sync", signature: &signature },
    });
    println!("{}", outcome.name());
}

fn pin(repository: &Repository, list: &str) {
    let signature = ada();
    let order = BackupRequest { plan: "p", run: None, reason: "many", signature: &signature };
    for line in std::fs::read_to_string(list).unwrap().lines() {
        let pin = repository.backup_branch(&order, &line.parse().unwrap()).unwrap();
        println!("{} {}", pin.name, pin.commit);
    }
}
