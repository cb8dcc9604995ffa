//! Start to first byte of `plan list` against `git --version`, and the peak memory of an idle `serve`.

use std::fs;
use std::process::{Command, Stdio};
use std::time::Duration;

use drydock_testkit::wait;

use crate::measure::{Promise, Table, median_of};

const ROUNDS: usize = 7;
const STARTS: usize = 40;
const DRYDOCK: &str = env!("CARGO_BIN_EXE_drydock");

pub(crate) fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let store = world.path().join("drydock.db");
    let drydock = |words: &[&str]| {
        let mut command = Command::new(DRYDOCK);
        command.arg("--store").arg(&store).args(words).env("HOME", world.path()).stdin(Stdio::null());
        command
    };
    // Makes the store, so that what is timed is a start and not a birth.
    assert!(drydock(&["plan", "list"]).output().unwrap().status.success());
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let git = median_of(STARTS, || drop(Command::new("git").arg("--version").output().unwrap()));
        let ours = median_of(STARTS, || drop(drydock(&["plan", "list"]).output().unwrap()));
        ratios.push(ours / git);
    }
    table.ratio("start to answer of `plan list` ÷ `git --version`", Promise::AtMost(3.0), &ratios);
    table.megabytes(
        "peak memory of an idle `serve`",
        40.0,
        idle_peak(drydock(&["serve", "--listen", "127.0.0.1:0"])),
    );
}

/// Returns the peak memory of a server that answered nothing for a while, in megabytes.
fn idle_peak(mut serve: Command) -> f64 {
    let mut child = serve.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    // It has settled when its memory has not grown for some looks in a row.
    let mut seen = Vec::new();
    let peak = wait::until("the server to settle", Duration::from_secs(20), || {
        std::thread::sleep(Duration::from_millis(200));
        seen.push(peak_kb(&fs::read_to_string(&status).ok()?)?);
        let last = seen.last().copied()?;
        (seen.len() > 12 && seen.iter().rev().take(10).all(|one| *one == last)).then_some(last)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    peak / 1024.0
}

/// Returns the peak memory that a process's status tells, in kilobytes.
pub(crate) fn peak_kb(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}
