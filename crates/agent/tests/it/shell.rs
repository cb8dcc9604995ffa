//! Shell commands (validations and invariant commands), and programs that run for hooks.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_agent::{Ending, ShellResult, StartError};
use tokio_util::sync::CancellationToken;

use crate::world::{World, alive, until};

async fn shell(world: &World, command: &str, timeout: Duration, stop: CancellationToken) -> ShellResult {
    let env = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
    let dirs = world.dirs();
    world.runner.shell(command, &dirs, &env, timeout, stop).await.unwrap()
}

const LONG: Duration = Duration::from_secs(60);

/// Breaks when the two streams are put one after the other.
#[tokio::test]
async fn both_streams_are_kept_in_the_order_written() {
    let world = World::new();
    let command = "echo 1; echo 2 >&2; echo 3; echo 4 >&2; echo $A ${CARGO_PKG_NAME-clean}; cat; exit 4";
    let seen = shell(&world, command, LONG, CancellationToken::new()).await;
    let output = "1\n2\n3\n4\nb clean\n";
    assert_eq!(
        seen,
        ShellResult {
            ending: Ending::Failed { code: 4, tail: output.trim_end().into() },
            output: output.into()
        }
    );
}

/// Breaks when a verbose validation fails, or its output is kept whole.
#[tokio::test]
async fn long_output_is_cut_at_its_beginning_and_is_no_failure() {
    let world = World::new();
    let seen = shell(&world, "seq 1 3000000", LONG, CancellationToken::new()).await;
    assert_eq!(seen.ending, Ending::Finished);
    assert!(seen.output.starts_with("[22823360 bytes cut]\n"), "{}", &seen.output[..40]);
    assert!(seen.output.ends_with("\n3000000\n") && seen.output.len() < 66_000);
}

/// Breaks when a shell command is supervised less strictly than an agent.
#[tokio::test]
async fn a_timeout_and_a_stop_leave_nothing() {
    let world = World::new();
    let script = "setsid sleep 1000 & echo $! > stay; echo began; sleep 1000";
    let limit = Duration::from_millis(300);
    let seen = shell(&world, script, limit, CancellationToken::new()).await;
    assert_eq!(seen.ending, Ending::TimedOut { after: limit, tail: "began".into() });
    assert!(!alive(&world.file("stay")));

    std::fs::remove_file(world.worktree().join("stay")).unwrap();
    let stop = CancellationToken::new();
    let (seen, ()) = tokio::join!(shell(&world, script, LONG, stop.clone()), async {
        until("it has started", || world.file("stay").ends_with('\n')).await;
        stop.cancel();
    });
    assert_eq!(seen.ending, Ending::Stopped);
    assert!(!alive(&world.file("stay")));
}

/// Breaks when a variable that cannot be set is silently left out.
#[tokio::test]
async fn a_variable_that_cannot_be_set_is_named() {
    let world = World::new();
    let env = BTreeMap::from([("A=B".to_owned(), "x".to_owned())]);
    let dirs = world.dirs();
    let run = world.runner.shell("true", &dirs, &env, LONG, CancellationToken::new());
    let error = run.await.expect_err("the name is impossible");
    assert!(matches!(&error, StartError::Environment { name, .. } if name == "A=B"), "{error}");
}

/// Breaks when a user's program does not get its complete input, or runs in a directory in which others could
/// have left files.
#[tokio::test]
async fn a_hook_gets_its_input_in_a_directory_of_its_own() {
    let world = World::new();
    let directory = world.dirs().temp.join("made/for/it");
    let input = "x".repeat(300_000);
    let words =
        ["sh", "-c", "wc -c; pwd; echo $HOME $A ${CARGO_PKG_NAME-clean}; stat -c %a ."].map(str::to_owned);
    let env = BTreeMap::from([("A".to_owned(), "b".to_owned())]);
    let run = world.runner.hook(&words, input.into(), &env, &directory, LONG, CancellationToken::new());
    let seen = run.await.unwrap();
    let place = directory.canonicalize().unwrap();
    let output = format!("300000\n{}\n{} b clean\n700\n", place.display(), directory.display());
    assert_eq!(seen, ShellResult { ending: Ending::Finished, output });

    // A program that does not read its input has not failed.
    let quick = ["true".to_owned()];
    let run =
        world.runner.hook(&quick, vec![b'x'; 300_000], &env, &directory, LONG, CancellationToken::new());
    assert_eq!(run.await.unwrap().ending, Ending::Finished);
}
