//! The output of an agent is limited, and a slow receiver slows it down.

use drydock_agent::{Ending, OutputStream, Signal};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::world::{World, lines, sh, until};

/// Breaks when an agent that writes more than its log limit is stopped, or one that floods is not.
#[tokio::test]
async fn an_agent_that_floods_us_is_stopped() {
    let world = World::new();
    let (ending, signals) = world.run(&sh("yes to everything").with_output_max(62_500)).await;
    assert_eq!(ending.unwrap(), Ending::OutputExceeded { limit: 1_000_000 });
    assert!(signals.len() < 100_000, "{} lines were passed on", signals.len());
}

/// Breaks when each stream has its own limit, or a quick exit hides the excess.
#[tokio::test]
async fn the_limit_is_for_both_streams_together_and_to_the_byte() {
    let world = World::new();
    let script = |bytes| sh(&format!("printf %020d 1; printf %0{}d 2 >&2", bytes - 20)).with_output_max(2);
    assert_eq!(world.run(&script(32)).await.0.unwrap(), Ending::Finished);
    assert_eq!(world.run(&script(33)).await.0.unwrap(), Ending::OutputExceeded { limit: 32 });
}

/// Breaks when a long line is kept whole, or the lines after it are lost.
#[tokio::test]
async fn a_line_of_ten_megabytes_is_cut_and_says_so() {
    let world = World::new();
    let (ending, signals) = world.sh("head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end").await;
    assert_eq!(ending, Ending::Finished);
    let lines = lines(&signals, OutputStream::Stdout);
    assert!(lines[0].len() < 70_000 && lines[0].ends_with("[9934464 more bytes cut]"), "{}", lines[0].len());
    assert_eq!(lines[1..], ["end"]);
}

/// Breaks when a truncated message counts as a log line.
#[tokio::test]
async fn a_message_too_long_for_a_line_is_garbled() {
    let world = World::new();
    let script =
        "printf '{\"drydock\":\"progress\",\"text\":\"'; head -c 100000 /dev/zero | tr '\\0' x; echo '\"}'";
    let (_, signals) = world.sh(script).await;
    assert!(
        matches!(&signals[..], [Signal::Garbled { reason, .. }] if reason.contains("65536")),
        "{}",
        signals.len()
    );
}

/// Breaks when bytes that are not text end the run or are lost with their line.
#[tokio::test]
async fn bytes_that_are_no_text_are_passed_on_as_far_as_they_go() {
    let world = World::new();
    let (_, signals) = world.sh("printf 'a\\377b\\nc\\n'").await;
    assert_eq!(lines(&signals, OutputStream::Stdout), ["a\u{fffd}b", "c"]);
}

/// Breaks when lines are dropped or reordered because the receiver is slow.
#[tokio::test]
async fn a_slow_receiver_gets_every_line() {
    let world = World::new();
    let (sender, mut receiver) = mpsc::channel(1);
    let run =
        world.runner.agent(&sh("seq 1 20000"), &world.task, &world.dirs(), sender, CancellationToken::new());
    let listen = async {
        let mut expected = 1;
        while let Some(signal) = receiver.recv().await {
            assert_eq!(signal, Signal::Log { stream: OutputStream::Stdout, line: expected.to_string() });
            expected += 1;
            tokio::task::yield_now().await;
        }
        expected - 1
    };
    let (ending, count) = tokio::join!(run, listen);
    assert_eq!((ending.unwrap(), count), (Ending::Finished, 20_000));
}

/// Breaks when an agent waits for a closed receiver.
#[tokio::test]
async fn a_receiver_that_went_away_holds_nobody_up() {
    let world = World::new();
    let (sender, receiver) = mpsc::channel(1);
    drop(receiver);
    let run =
        world.runner.agent(&sh("seq 1 100000"), &world.task, &world.dirs(), sender, CancellationToken::new());
    assert_eq!(run.await.unwrap(), Ending::Finished);
}

/// Breaks when a stop waits for a receiver that reads nothing.
#[tokio::test]
async fn a_receiver_that_sleeps_does_not_hold_up_a_stop() {
    let world = World::new();
    let (sender, _receiver) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let run = world.runner.agent(&sh("touch ready; yes"), &world.task, &world.dirs(), sender, stop.clone());
    let (ending, ()) = tokio::join!(run, async {
        until("the agent is ready", || world.worktree().join("ready").exists()).await;
        stop.cancel();
    });
    assert_eq!(ending.unwrap(), Ending::Stopped);
}

/// Breaks when a stop takes effect only while the agent runs, not while its last lines wait for the receiver.
#[tokio::test]
async fn a_stop_is_heard_while_the_last_lines_wait() {
    let world = World::new();
    let (sender, _receiver) = mpsc::channel(1);
    let stop = CancellationToken::new();
    let run = world.runner.agent(
        &sh("seq 1 100; echo $PPID > keeper"),
        &world.task,
        &world.dirs(),
        sender,
        stop.clone(),
    );
    let (ending, ()) = tokio::join!(run, async {
        let gone = || world.file("keeper").ends_with('\n') && !crate::world::alive(&world.file("keeper"));
        until("agent and keeper have ended", gone).await;
        stop.cancel();
    });
    assert!(matches!(ending.unwrap(), Ending::Finished | Ending::Stopped));
}
