//! Runs and signals real processes.

use std::process::Command;
use std::time::Duration;

use drydock_testkit::{proc, wait};

const LIMIT: Duration = Duration::from_secs(60);

fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}

#[test]
fn a_run_keeps_both_outputs_and_the_exit_code() {
    let ended = proc::run_with_input(&mut sh("cat; echo oops >&2; exit 3"), "hello", LIMIT).expect_code(3);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("hello", "oops\n"));
}

/// Breaks if output is read to the end of a pipe that a grandchild still holds.
#[test]
fn a_grandchild_that_lives_on_does_not_hold_up_the_end() {
    let ended = proc::run(&mut sh("sleep 600 & echo $!"), LIMIT).expect_code(0);
    let sleeper = ended.stdout.trim();
    // The shell's own `kill`: a minimal Debian has no such program.
    proc::run(&mut sh(&format!("kill -9 {sleeper}")), LIMIT).expect_code(0);
}

#[test]
#[should_panic(expected = "was still running after")]
fn a_run_past_its_limit_is_killed_and_named() {
    proc::run(&mut sh("exec sleep 600"), Duration::from_millis(20));
}

#[test]
fn a_killed_process_has_no_exit_code() {
    let running = proc::spawn(&mut sh("exec sleep 600"));
    running.kill();
    assert_eq!(running.wait(LIMIT).code(), None);
}

#[test]
fn an_interrupted_process_can_answer() {
    let running = proc::spawn(&mut sh("trap 'exit 130' INT; echo set; while :; do sleep 0.01; done"));
    wait::until("the trap", LIMIT, || (running.stdout() == "set\n").then_some(()));
    running.interrupt();
    running.wait(LIMIT).expect_code(130);
}

/// Breaks if `pause` does not freeze the process: the counter would continue.
#[test]
fn a_paused_process_stands_still_until_resumed() {
    let running = proc::spawn(&mut sh("while :; do echo tick; sleep 0.01; done"));
    wait::until("a tick", LIMIT, || (!running.stdout().is_empty()).then_some(()));
    running.pause();
    let state = format!("/proc/{}/stat", running.pid());
    wait::until("the process to stop", LIMIT, || {
        std::fs::read_to_string(&state).ok()?.contains(") T ").then_some(())
    });
    let seen = running.stdout();
    assert_eq!(running.stdout(), seen);
    running.resume();
    wait::until("another tick", LIMIT, || (running.stdout().len() > seen.len()).then_some(()));
}
