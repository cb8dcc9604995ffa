//! No process of a run outlives it, regardless of how the agent detaches itself and which process dies first.

use std::env;
use std::process::{Command, Stdio};
use std::time::Duration;

use drydock_agent::{Ending, SandboxMode};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::world::{World, alive, processes_mentioning, sh, until};

/// Starts, one by one, all kinds of processes that try to stay: a child in the group, one in its own session,
/// a daemon by double fork, one that ignores signals, and one that cleared its environment.
const STAYERS: &str = r#"
    sleep 1000 & echo $! > stay1
    setsid sh -c 'echo $$ > stay2; exec sleep 1000' &
    (setsid sh -c '(sh -c "echo \$\$ > stay3; exec sleep 1000" &)' &)
    setsid sh -c 'trap "" TERM HUP INT; echo $$ > stay4; while :; do sleep 1; done' &
    setsid env -i sh -c 'echo $$ > stay5; exec sleep 1000' &
    for n in 1 2 3 4 5; do while [ ! -s stay$n ]; do sleep 0.01; done; done
"#;

const STAYERS_COUNT: usize = 5;

fn stayers(world: &World) -> Vec<String> {
    (1..=STAYERS_COUNT).map(|number| world.file(&format!("stay{number}"))).collect()
}

fn assert_none_is_left(world: &World) {
    let left: Vec<String> = stayers(world).into_iter().filter(|pid| alive(pid)).collect();
    assert!(left.is_empty(), "still alive: {left:?}");
}

/// Breaks when only the agent's own process, or only its group, ends with the run.
#[tokio::test]
async fn what_an_agent_leaves_behind_dies_when_it_ends() {
    let world = World::new();
    let (ending, _) = world.sh(&format!("{STAYERS} exit 7")).await;
    assert!(matches!(ending, Ending::Failed { code: 7, .. }), "{ending:?}");
    assert_none_is_left(&world);
}

/// Breaks when a stop reaches only the agent's group.
#[tokio::test]
async fn a_stop_takes_sessions_and_daemons_along() {
    let world = World::new();
    let ready = until("all have started", || world.worktree().join("ready").exists());
    let (ending, _) = world.run_until(&sh(&format!("{STAYERS} touch ready; sleep 1000")), ready).await;
    assert_eq!(ending.unwrap(), Ending::Stopped);
    assert_none_is_left(&world);
}

/// Breaks when a run that timed out leaves its descendants.
#[tokio::test]
async fn a_timeout_takes_sessions_and_daemons_along() {
    let world = World::new();
    let spec = sh(&format!("{STAYERS} sleep 1000")).with_timeout(Duration::from_secs(1));
    let (ending, _) = world.run(&spec).await;
    assert!(matches!(ending.unwrap(), Ending::TimedOut { .. }));
    assert_none_is_left(&world);
}

/// Breaks when the keeper does not notice that drydock was killed.
#[tokio::test]
async fn a_drydock_killed_at_once_leaves_nothing() {
    let world = World::new();
    let mut drydock = Command::new(env!("CARGO_BIN_EXE_drydock-agent-tests"))
        .args(["run", &format!("echo $PPID > keeper; {STAYERS} touch ready; sleep 1000")])
        .arg(world.worktree())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    until("all have started", || world.worktree().join("ready").exists()).await;
    assert!(stayers(&world).iter().all(|pid| alive(pid)));
    drydock.kill().unwrap();
    drydock.wait().unwrap();
    until("all are gone", || stayers(&world).iter().all(|pid| !alive(pid))).await;
    until("the keeper is gone", || !alive(&world.file("keeper"))).await;
}

/// Breaks when a start that races with drydock's death leaves a process: drydock is killed at every moment of
/// the start.
#[tokio::test]
async fn a_drydock_killed_while_it_starts_a_run_leaves_nothing() {
    for delay_us in [0, 300, 600, 1_000, 1_500, 2_000, 3_000, 5_000, 8_000, 12_000] {
        let world = World::new();
        let mut drydock = Command::new(env!("CARGO_BIN_EXE_drydock-agent-tests"))
            .args(["run", &format!(": {}; sleep 1000 & sleep 1001", world.worktree().display())])
            .arg(world.worktree())
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        // Not a wait for a condition but a choice of the moment; the outcome must be the same for each.
        std::thread::sleep(Duration::from_micros(delay_us));
        drydock.kill().unwrap();
        drydock.wait().unwrap();
        until("all are gone", || processes_mentioning(&world.worktree()) == 0).await;
    }
}

/// Breaks when a cancelled caller leaves its run behind.
#[tokio::test]
async fn a_run_that_is_dropped_leaves_nothing() {
    let world = World::new();
    let (sender, _receiver) = mpsc::channel(1000);
    let spec = sh(&format!("{STAYERS} touch ready; sleep 1000"));
    let run = world.runner.agent(&spec, &world.task, &world.dirs(), sender, CancellationToken::new());
    tokio::select! {
        ending = run => panic!("{ending:?}"),
        () = until("all have started", || world.worktree().join("ready").exists()) => {}
    }
    until("all are gone", || stayers(&world).iter().all(|pid| !alive(pid))).await;
}

/// Breaks when an agent can escape by killing its keeper. Runs without a sandbox, which would prevent that.
#[tokio::test]
async fn an_agent_that_kills_its_keeper_does_not_escape() {
    let world = World::new();
    let script = "setsid sleep 1000 & echo $! > stay1; echo $$ > stay2; kill -9 $PPID; sleep 1000";
    let (ending, _) = world.run(&sh(script).with_sandbox(SandboxMode::Off)).await;
    let ending = ending.unwrap();
    assert!(matches!(ending, Ending::Killed { signal: 9, .. }), "{ending:?}");
    assert!(!alive(&world.file("stay1")) && !alive(&world.file("stay2")));
}

/// Breaks when a process of a killed keeper is found only by its environment: this one has none. It is not in
/// the keeper's session or group either, and its parent has ended.
#[tokio::test]
async fn a_daemon_without_an_environment_does_not_outlive_its_keeper() {
    let world = World::new();
    let script = "
        (setsid env -i /bin/sh -c 'echo $$ > daemon; /bin/sleep 1000 & echo $! > child; wait' &)
        while [ ! -s child ]; do sleep 0.01; done
        kill -9 $DRYDOCK_KEEPER; sleep 1000";
    let status = Command::new(env!("CARGO_BIN_EXE_drydock-agent-tests"))
        .args(["run-free", script])
        .arg(world.worktree())
        .stdin(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
    assert!(!alive(&world.file("daemon")) && !alive(&world.file("child")));
}

/// Breaks when drydock requires that its session started in its own container: the kernel shows 0 for a
/// session from outside. Runs the test above in a new namespace, if that is allowed. If not, this already is
/// a container, and the test above is sufficient.
#[tokio::test]
async fn in_a_container_nothing_outlives_its_keeper_either() {
    let container = || {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]);
        command
    };
    if !container().arg("true").output().unwrap().status.success() {
        return;
    }
    let above = "leaving_nothing::a_daemon_without_an_environment_does_not_outlive_its_keeper";
    let tested = container().arg(env::current_exe().unwrap()).args(["--exact", above]).output().unwrap();
    // The output is not printed directly: tools that read the names of failed tests would find this one
    // twice.
    assert!(tested.status.success(), "{tested:?}");
}

/// Breaks when a single scan of `/proc` is trusted: each of these processes lives shorter than a scan takes.
#[tokio::test]
async fn a_process_that_is_always_another_one_is_caught() {
    let world = World::new();
    let comet = world.put("comet.sh", "touch \"$1\"\nsh \"$0\" \"$1\" &\n");
    let script = "setsid sh \"$PWD/comet.sh\" \"$PWD/ready\" & while [ ! -e ready ]; do sleep 0.01; done";
    let (ending, _) = world.sh(script).await;
    assert_eq!(ending, Ending::Finished);
    assert_eq!(processes_mentioning(&comet), 0);
}

/// Breaks when the keeper does not reap orphans while the agent runs: a long run would fill the process
/// table.
#[tokio::test]
async fn orphans_that_end_during_a_run_are_reaped() {
    let world = World::new();
    let script = "
        for n in 1 2 3 4 5; do (sh -c 'echo $$ > short'$n &) ; done
        for n in 1 2 3 4 5; do
            while [ ! -s short$n ] || [ -e /proc/$(cat short$n) ]; do sleep 0.01; done
        done";
    let (ending, _) = world.run(&sh(script).with_timeout(Duration::from_secs(15))).await;
    assert_eq!(ending.unwrap(), Ending::Finished);
}
