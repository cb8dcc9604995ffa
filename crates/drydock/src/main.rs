//! The drydock program: the command line, and what runs behind it in the same process.

mod cli;
mod config;
mod render;

use std::env;
use std::process::ExitCode;

use drydock_api::{BoxFuture, Code, Problem};

use crate::cli::Backend;
use crate::config::{Config, StorePlace};

fn main() -> ExitCode {
    let argv: Vec<_> = env::args_os().collect();
    // The keeper of an agent's processes is this same program; it must start before anything else is set up.
    if argv.get(1).is_some_and(|word| word == "__keep") {
        return drydock_agent::keep(argv.into_iter().skip(2).collect());
    }
    cli::main(argv, embedded)
}

/// Opens the engine in this process.
fn embedded(place: StorePlace, _config: Config) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>> {
    let store = match place {
        StorePlace::Named(store) => store,
        StorePlace::Default(path) => path.display().to_string(),
    };
    let problem = Problem::new(Code::StoreUnavailable, format!("the store {store} cannot be opened here"));
    Box::pin(std::future::ready(Err(problem.hint("name a server with --server"))))
}
