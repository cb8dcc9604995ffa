//! The drydock program: the command line, the server and the engine behind them.

mod cli;
mod config;
mod demo;
mod embedded;
mod http;
mod local_token;
mod page;
mod render;
mod serve;
mod telemetry;

use std::env;
use std::process::ExitCode;

use drydock_domain::error_chain;

fn main() -> ExitCode {
    let argv: Vec<_> = env::args_os().collect();
    // The keeper of an agent's processes is this same program. It must start before anything else is set up.
    if argv.get(1).is_some_and(|word| word == embedded::KEEP) {
        return drydock_agent::run_keeper(argv.into_iter().skip(2).skip_while(|word| word == "--").collect());
    }
    if let Err(error) = drydock_agent::adopt_orphans() {
        // Without adoption, processes that a killed keeper left behind are found only by their mark.
        tracing::debug!(error = %error_chain(&error), "could not become the reaper of orphaned processes");
    }
    cli::main(argv, embedded::open)
}
