//! `cargo xtask bench`: measures the promised figures as ratios in one run. The benchmarks are in
//! `crates/drydock/benches`.

use std::path::Path;
use std::process::Command;

use drydock_testkit::postgres::{PostgresServer, SERVER_VARIABLE};

use crate::machine;
use crate::say::CommandError;

/// Builds for release and measures. The words name the parts to measure; none means all.
pub(crate) fn run(root: &Path, words: &[String]) -> Result<(), CommandError> {
    machine::check_git()?;
    machine::require(&[machine::CHROMIUM])?;
    let server = PostgresServer::start(&machine::postgres_programs()?).map_err(CommandError::failed)?;
    let status = Command::new(env!("CARGO"))
        .args(["bench", "--package", "drydock", "--bench", "promises", "--"])
        .args(words)
        .env(SERVER_VARIABLE, server.admin_url())
        .current_dir(root)
        .status()
        .map_err(|error| CommandError::failed(format!("could not start cargo: {error}")))?;
    if status.success() {
        Ok(())
    } else {
        Err(CommandError::failed("a part of the benchmark failed; see the message above".to_owned()))
    }
}
