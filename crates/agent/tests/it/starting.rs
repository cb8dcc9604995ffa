//! Failures to start: the error names the cause and the next step.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use drydock_agent::{AgentSpec, EndingKind, Runner, StartError, TransientCause};

use crate::world::{World, sh};

async fn refusal(world: &World, program: &str) -> StartError {
    world.run(&AgentSpec::command([program]).unwrap()).await.0.expect_err(program)
}

/// Breaks when a missing program is reported as an agent that failed.
#[tokio::test]
async fn a_missing_program_is_named() {
    let world = World::new();
    for program in ["no-such-program-anywhere", "./no-such-program", "/no/such/program"] {
        let error = refusal(&world, program).await;
        assert!(matches!(error, StartError::ProgramMissing { .. }), "{error:?}");
        assert!(error.to_string().contains(program) && error.hint().contains(program), "{error}");
        assert_eq!(EndingKind::of(&Err(error)), EndingKind::Permanent);
    }
}

/// Breaks when the three ways not to be executable are confused with a missing program.
#[tokio::test]
async fn a_program_that_cannot_be_run_says_why() {
    let world = World::new();
    world.put("plain", "#!/bin/sh\n");
    let error = refusal(&world, "./plain").await;
    assert!(error.to_string().contains("permission denied"), "{error}");
    assert!(error.hint().contains("chmod"), "{}", error.hint());
    let orphan = world.put("orphan", "#!/no/such/interpreter\n");
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    let error = refusal(&world, "./orphan").await;
    assert!(error.to_string().contains("interpreter"), "{error}");
}

/// Breaks when a missing worktree looks like a missing program.
#[tokio::test]
async fn a_missing_worktree_is_named() {
    let world = World::new();
    fs::remove_dir(world.worktree()).unwrap();
    let error = world.run(&sh("true")).await.0.expect_err("there is no worktree");
    assert!(
        matches!(error, StartError::Directory { .. }) && error.to_string().contains("worktree"),
        "{error}"
    );
}

/// Breaks when drydock waits for a program that is not a keeper, or accepts it as one.
#[tokio::test]
async fn a_launcher_that_is_no_keeper_is_an_error() {
    let mut world = World::new();
    for launcher in [vec!["/no/such/drydock"], vec!["true"], vec!["echo", "hello"], vec![]] {
        world.runner = Runner::new(launcher.iter().map(Into::into).collect());
        let error = world.run(&sh("touch started")).await.0.expect_err("no keeper");
        assert!(matches!(error, StartError::Keeper { .. }), "{error}");
        assert_eq!(EndingKind::of(&Err(error)), EndingKind::Transient(TransientCause::Start));
    }
    assert!(!world.worktree().join("started").exists());
}

/// Breaks when the hidden subcommand does something for a user who tries it.
#[test]
fn a_keeper_started_by_hand_says_that_it_is_not_for_that() {
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_drydock-agent-tests"))
        .args(["__keep", "--", "touch", "started"])
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(String::from_utf8_lossy(&output.stderr).contains("internal use"), "{output:?}");
}
