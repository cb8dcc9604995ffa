//! A replacement for the drydock binary in the tests of this crate: it becomes a keeper, or a drydock that
//! can be killed.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use drydock_agent::{RunDirs, Runner, Sandbox, SandboxMode, adopt_orphans, run_keeper, serve_mcp};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    match arguments.next().as_ref().and_then(|word| word.to_str()) {
        Some("__keep") => run_keeper(arguments.skip(1).collect()),
        Some("mcp") => mcp(),
        Some("run") => run(arguments.collect(), Sandbox::default()),
        Some("run-free") => run(arguments.collect(), Sandbox::default().with_mode(SandboxMode::Off)),
        _ => ExitCode::from(2),
    }
}

/// `mcp`: serves the agent that started it, like `drydock mcp`.
fn mcp() -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let served = runtime.block_on(serve_mcp(tokio::io::stdin(), tokio::io::stdout()));
    // A thread that still waits for the agent must not keep the process alive.
    runtime.shutdown_background();
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            drop(std::io::Write::write_all(&mut std::io::stderr(), format!("{error}\n").as_bytes()));
            ExitCode::FAILURE
        }
    }
}

/// `run COMMAND DIRECTORY`: runs a shell command like drydock; `run-free` does so without a sandbox.
fn run(arguments: Vec<OsString>, sandbox: Sandbox) -> ExitCode {
    adopt_orphans().expect("orphans are adopted");
    let command = arguments[0].to_string_lossy().into_owned();
    let directory = PathBuf::from(&arguments[1]);
    let runner =
        Runner::new(vec!["/proc/self/exe".into(), "__keep".into(), "--".into()]).with_sandbox(sandbox);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let dirs = RunDirs { temp: directory.join("temp"), worktree: directory, reads: Vec::new() };
    let shell =
        runner.shell(&command, &dirs, &BTreeMap::new(), Duration::from_secs(60), CancellationToken::new());
    match runtime.block_on(shell) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
