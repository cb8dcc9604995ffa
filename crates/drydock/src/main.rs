//! The drydock program: the command line, and what runs behind it in the same process.

mod cli;
mod config;
mod demo;
mod embedded;
mod http;
mod render;
mod serve;

use std::env;
use std::process::ExitCode;

use drydock_api::{BoxFuture, Problem};

use crate::cli::Backend;
use crate::config::{Config, StorePlace};
use crate::embedded::Embedded;

fn main() -> ExitCode {
    let argv: Vec<_> = env::args_os().collect();
    // The keeper of an agent's processes is this same program; it must start before anything else is set up.
    if argv.get(1).is_some_and(|word| word == embedded::KEEP) {
        return drydock_agent::keep(argv.into_iter().skip(2).skip_while(|word| word == "--").collect());
    }
    cli::main(argv, embedded)
}

/// Opens the engine in this process.
fn embedded(place: StorePlace, config: Config) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>> {
    Box::pin(async move {
        match Embedded::open(&place, config).await {
            Ok(embedded) => Ok(Box::new(embedded) as Box<dyn Backend>),
            Err(problem) => Err(*problem),
        }
    })
}
