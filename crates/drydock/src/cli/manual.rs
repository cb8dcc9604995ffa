//! Completions and manual pages, generated from the definition of the command line.

use std::io;
use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use drydock_api::{Code, Problem};
use serde_json::json;

use super::args::Cli;
use super::report::{CliResult, Report};

/// Arguments of `drydock completions`.
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// Shell
    shell: Shell,
}

/// Arguments of `drydock man`.
#[derive(Debug, Args)]
pub(crate) struct Man {
    /// Write one page per command into this directory instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(crate) fn completions(args: &Completions) -> CliResult {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "drydock", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Ok(Report::new(json!({ "shell": args.shell.to_string(), "script": script }), script))
}

/// Returns the manual page, or writes all pages into a directory.
pub(crate) fn man(args: &Man) -> CliResult {
    let failed = |error: io::Error| {
        let text = match &args.dir {
            Some(dir) => format!("could not write the manual into {}: {error}", dir.display()),
            None => format!("could not write the manual: {error}"),
        };
        Box::new(Problem::new(Code::Internal, text).hint("name an existing directory that is writable"))
    };
    if let Some(dir) = &args.dir {
        clap_mangen::generate_to(Cli::command(), dir).map_err(failed)?;
        return Ok(Report::new(json!({ "dir": dir.display().to_string() }), format!("{}\n", dir.display())));
    }
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page).map_err(failed)?;
    let page = String::from_utf8_lossy(&page).into_owned();
    Ok(Report::new(json!({ "page": page }), page))
}
