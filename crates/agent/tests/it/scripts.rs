//! Scripted agents.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use drydock_agent::{AgentSpec, Ending, Message, OutputStream, Signal, StartError};

use crate::world::{World, alive, lines, until};

fn scripted(world: &World, script: &str) -> AgentSpec {
    let path = world.dirs().worktree.with_file_name("script.toml");
    fs::write(&path, script).unwrap();
    AgentSpec::scripted(path).unwrap()
}

/// Breaks when a step is lost, out of order, or run in the wrong phase.
#[tokio::test]
async fn the_steps_of_the_phase_are_played_in_order() {
    let world = World::new();
    world.put("old", "x");
    world.put("gone", "x");
    let spec = scripted(
        &world,
        "
        [[steps]]\nlog = \"one\\ntwo\"
        [[steps]]\nwrite = { path = 'deep/er/file', content = 'a' }
        [[steps]]\nappend = { path = 'deep/er/file', content = 'b' }
        [[steps]]\nwrite = { path = 'plan-only', content = '' }\nonly_in = 'strategize'
        [[steps]]\nrename = { from = 'old', to = 'new/place' }
        [[steps]]\ndelete = { path = 'gone' }
        [[steps]]\nmessage = { drydock = 'checkpoint', label = 'here' }
        [[steps]]\nsleep = '1ms'
        [[steps]]\nrun = 'cat deep/er/file; echo; echo \"$DRYDOCK_PHASE\" >&2'
        [[steps]]\nexit = 0
        [[steps]]\nfail = 'not reached'
        ",
    );
    let (ending, signals) = world.run(&spec).await;
    assert_eq!(ending.unwrap(), Ending::Finished);
    assert_eq!(lines(&signals, OutputStream::Stdout), ["one", "two", "ab"]);
    assert_eq!(lines(&signals, OutputStream::Stderr), ["execute"]);
    assert!(signals.contains(&Signal::Message(Message::Checkpoint { label: "here".into() })));
    assert_eq!(world.file("new/place"), "x");
    let exists = |name: &str| world.worktree().join(name).exists();
    assert!(!exists("plan-only") && !exists("gone") && !exists("old"));
}

/// Breaks when a failing step does not end the run.
#[tokio::test]
async fn a_step_that_fails_ends_the_run_with_its_reason() {
    let world = World::new();
    for (step, code, tail) in [
        ("fail = 'no luck'", 1, "no luck"),
        ("exit = 3", 3, ""),
        ("run = 'echo broken; exit 5'", 5, "broken"),
        ("delete = { path = 'not-there' }", 1, "could not continue"),
    ] {
        let spec = scripted(
            &world,
            &format!("[[steps]]\n{step}\n[[steps]]\nwrite = {{ path = 'after', content = '' }}"),
        );
        let (ending, _) = world.run(&spec).await;
        let Ending::Failed { code: seen, tail: text } = ending.unwrap() else { panic!("{step}") };
        assert!(seen == code && text.contains(tail), "{step}: {seen} {text}");
        assert!(!world.worktree().join("after").exists());
    }
}

/// Breaks when a symbolic link in the worktree lets a script write outside it.
#[tokio::test]
async fn a_script_does_not_follow_links_out_of_the_worktree() {
    let world = World::new();
    let outside = tempfile::TempDir::new().unwrap();
    symlink(outside.path(), world.worktree().join("door")).unwrap();
    symlink(outside.path().join("file"), world.worktree().join("window")).unwrap();
    for path in ["door/file", "door/new/file", "window"] {
        let spec = scripted(&world, &format!("[[steps]]\nwrite = {{ path = '{path}', content = 'x' }}"));
        let (ending, _) = world.run(&spec).await;
        assert!(matches!(ending.unwrap(), Ending::Failed { .. }), "{path}");
    }
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
}

/// Breaks when an invalid script is detected only after some steps have run.
#[tokio::test]
async fn a_wrong_script_is_refused_before_its_first_step() {
    let world = World::new();
    let spec = scripted(&world, "[[steps]]\nwrite = { path = 'a', content = '' }\n[[steps]]\nsleep = 'long'");
    let error = world.run(&spec).await.0.expect_err("step 2 is wrong");
    assert!(matches!(error, StartError::Script { .. }) && error.to_string().contains("step 2"), "{error}");
    assert!(!world.worktree().join("a").exists());
    let error = world.run(&AgentSpec::scripted("/no/such/script").unwrap()).await.0.expect_err("no file");
    assert!(error.to_string().contains("/no/such/script"), "{error}");
}

/// Breaks when a sleeping script cannot be stopped or time out.
#[tokio::test]
async fn a_script_can_be_stopped_and_runs_out_of_time() {
    let world = World::new();
    let spec =
        scripted(&world, "[[steps]]\nwrite = { path = 'ready', content = '' }\n[[steps]]\nsleep = '1h'");
    let ready = until("it has started", || world.worktree().join("ready").exists());
    assert_eq!(world.run_until(&spec, ready).await.0.unwrap(), Ending::Stopped);
    let limit = Duration::from_millis(50);
    let (ending, _) = world.run(&spec.with_timeout(limit)).await;
    assert!(matches!(ending.unwrap(), Ending::TimedOut { after, .. } if after == limit));
}

/// Breaks when a script's command does not run under a keeper.
#[tokio::test]
async fn a_command_of_a_script_leaves_nothing() {
    let world = World::new();
    let spec = scripted(&world, "[[steps]]\nrun = 'setsid sleep 1000 & echo $! > stay'");
    assert_eq!(world.run(&spec).await.0.unwrap(), Ending::Finished);
    assert!(!alive(&world.file("stay")));
}
