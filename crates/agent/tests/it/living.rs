//! Signs of life: a stalled agent is reported once, and each single sign is enough.

use drydock_agent::{AgentSpec, Ending, Signal};

use crate::world::World;

/// Runs a script with a short `stall_after`, and returns how often a stall was reported.
async fn stalls(script: &str) -> usize {
    let world = World::new();
    let command = ["sh", "-c", script];
    let spec: AgentSpec =
        toml::from_str(&format!("protocol = 'command'\ncommand = {command:?}\nstall_after = '1s'\n"))
            .unwrap();
    let (ending, signals) = world.run(&spec).await;
    assert_eq!(ending.unwrap(), Ending::Finished, "{script}");
    signals.iter().filter(|signal| matches!(signal, Signal::Stalled { .. })).count()
}

/// Breaks when a stall is not detected, or reported repeatedly.
#[tokio::test]
async fn an_agent_without_a_sign_of_life_is_told_of_once() {
    assert_eq!(stalls("sleep 3").await, 1);
    assert_eq!(stalls("sleep 2; echo hello; sleep 2").await, 1);
}

/// Breaks when a stalled agent is stopped without a policy or too early, not stopped with one, or reported
/// late.
#[tokio::test]
async fn a_silent_agent_is_stopped_only_by_rule_and_after_the_alert() {
    let world = World::new();
    let run = async |script: &str| {
        let command = ["sh", "-c", script];
        let keys = "stall_after = '1s'\nrestart = { max = 1, on = ['stall'] }";
        let spec: AgentSpec =
            toml::from_str(&format!("protocol = 'command'\ncommand = {command:?}\n{keys}\n")).unwrap();
        let (ending, signals) = world.run(&spec).await;
        (ending.unwrap(), signals.iter().filter(|signal| matches!(signal, Signal::Stalled { .. })).count())
    };
    let (ending, told) = run("echo begin; sleep 60").await;
    assert!(matches!(&ending, Ending::Stalled { tail, .. } if tail == "begin"), "{ending:?}");
    assert_eq!(told, 1);
    // The stall is reported, and the agent recovers before it would be stopped.
    assert_eq!(run("sleep 1.5; echo alive; sleep 1").await, (Ending::Finished, 1));
}

/// Breaks when one of the signs is not detected. Each loop lasts several times `stall_after`.
#[tokio::test]
async fn every_single_sign_of_life_is_enough() {
    let beats = "for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30";
    assert_eq!(stalls(&format!("{beats}; do echo $n; sleep 0.1; done")).await, 0, "output");
    assert_eq!(stalls(&format!("{beats}; do touch file; sleep 0.1; done")).await, 0, "files");
    let work = "end=$(($(date +%s) + 3)); while [ $(date +%s) -lt $end ]; do :; done";
    assert_eq!(stalls(work).await, 0, "computing");
}

/// Uses 3 % of a processor for some seconds, like agents that wait for their model.
const WAITS: &str = "
import time
end = time.monotonic() + 3
while time.monotonic() < end:
    burst = time.process_time() + 0.009
    while time.process_time() < burst:
        pass
    time.sleep(0.3)
";

/// Issue 13, item 4. Breaks when an agent that waits for a hanging model counts as alive because of the
/// little CPU time it uses, or when it does not count as alive while a compiler that it started is running.
#[tokio::test]
async fn an_agent_that_waits_for_its_model_stalls_and_one_whose_compiler_runs_does_not() {
    let waits = format!("exec python3 -c '{WAITS}'");
    assert_eq!(stalls(&waits).await, 1, "it waits");
    let compiles = format!("timeout 3 sh -c 'while :; do :; done' & python3 -c '{WAITS}'; wait");
    assert_eq!(stalls(&compiles).await, 0, "it compiles");
}
