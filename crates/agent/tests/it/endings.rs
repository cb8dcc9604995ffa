//! The endings of runs.

use std::time::Duration;

use drydock_agent::{Ending, OutputStream, STOP_GRACE};

use crate::world::{World, lines, sh, until};

/// Breaks when codes from 128 up are read as signals, or signals as codes.
#[tokio::test]
async fn exit_codes_and_signals_are_told_apart() {
    let world = World::new();
    for code in [1, 3, 125, 137, 255] {
        let (ending, _) = world.sh(&format!("echo out; echo err >&2; exit {code}")).await;
        let Ending::Failed { code: seen, tail } = ending else { panic!("{ending:?}") };
        assert_eq!(seen, code);
        assert!(tail.contains("out") && tail.contains("err"), "{tail}");
    }
    for signal in [9, 15, 6] {
        let (ending, _) = world.sh(&format!("echo last words; kill -{signal} $$")).await;
        assert_eq!(ending, Ending::Killed { signal, tail: "last words".into() });
    }
}

/// Breaks when the tail is the beginning, or the whole output.
#[tokio::test]
async fn a_failure_quotes_the_last_lines() {
    let world = World::new();
    let (ending, _) = world.sh("seq 1 1000; exit 1").await;
    let Ending::Failed { tail, .. } = ending else { panic!("{ending:?}") };
    assert_eq!(tail.lines().collect::<Vec<_>>(), (981..=1000).map(|n| n.to_string()).collect::<Vec<_>>());
}

/// Breaks when the time limit is not enforced.
#[tokio::test]
async fn an_agent_that_takes_too_long_times_out() {
    let world = World::new();
    let limit = Duration::from_millis(200);
    let (ending, _) = world.run(&sh("echo began; sleep 1000").with_timeout(limit)).await;
    assert_eq!(ending.unwrap(), Ending::TimedOut { after: limit, tail: "began".into() });
}

/// Breaks when a stop kills immediately, without time to clean up.
#[tokio::test]
async fn a_stopped_agent_may_tidy_up() {
    let world = World::new();
    let script = "trap 'echo tidied > tidied; exit 0' TERM; touch ready; while :; do sleep 0.01; done";
    let ready = until("the agent is ready", || world.worktree().join("ready").exists());
    let (ending, _) = world.run_until(&sh(script), ready).await;
    assert_eq!((ending.unwrap(), world.file("tidied").as_str()), (Ending::Stopped, "tidied\n"));
}

/// Breaks when an agent is not killed after the grace period.
#[tokio::test]
async fn an_agent_that_ignores_the_request_to_stop_is_killed() {
    let world = World::new();
    let script = "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done";
    let ready = until("the agent is ready", || !world.file("pid").is_empty());
    // Much more than the grace period, and much less than the limit for a keeper that does nothing.
    let bound = STOP_GRACE + Duration::from_secs(12);
    let run = tokio::time::timeout(bound, async { world.run_until(&sh(script), ready).await });
    let (ending, _) = run.await.expect("the kill follows the grace");
    assert_eq!(ending.unwrap(), Ending::Stopped);
    assert!(!crate::world::alive(&world.file("pid")));
}

/// Breaks when a run that is stopped before its start starts a process.
#[tokio::test]
async fn an_agent_that_is_stopped_beforehand_never_starts() {
    let world = World::new();
    let (sender, _receiver) = tokio::sync::mpsc::channel(1);
    let stop = tokio_util::sync::CancellationToken::new();
    stop.cancel();
    let ending = world.runner.agent(&sh("touch started"), &world.task, &world.dirs(), sender, stop).await;
    assert_eq!(ending.unwrap(), Ending::Stopped);
    assert!(!world.worktree().join("started").exists());
}

/// Breaks when writing the task blocks on, or fails with, an agent that does not read it.
#[tokio::test]
async fn an_agent_need_not_read_its_task() {
    let mut world = World::new();
    world.task.task = "long ".repeat(1_000_000);
    assert_eq!(world.sh("exit 0").await.0, Ending::Finished);
    assert_eq!(world.sh("exec <&-; echo closed; sleep 0.05").await.0, Ending::Finished);
    let (ending, signals) = world.sh("head -c 10; echo; echo enough").await;
    assert_eq!((ending, lines(&signals, OutputStream::Stdout)[1]), (Ending::Finished, "enough"));
    let ready = until("the agent is ready", || world.worktree().join("ready").exists());
    let (ending, _) = world.run_until(&sh("touch ready; sleep 1000"), ready).await;
    assert_eq!(ending.unwrap(), Ending::Stopped);
}

/// Breaks when concurrent runs affect each other.
#[tokio::test]
async fn many_agents_at_once_each_end_as_themselves() {
    let world = World::new();
    let run = async |code: i32| world.sh(&format!("echo {code}; exit {code}")).await;
    let seen = tokio::join!(run(1), run(2), run(3), run(4), run(5), run(6), run(7), run(8));
    for ((ending, signals), code) in
        [seen.0, seen.1, seen.2, seen.3, seen.4, seen.5, seen.6, seen.7].into_iter().zip(1..)
    {
        assert_eq!(ending, Ending::Failed { code, tail: code.to_string() });
        assert_eq!(lines(&signals, OutputStream::Stdout), [code.to_string()]);
    }
}
