//! `cargo xtask`: the commands for contributors. There is one file or folder per subcommand; this file only selects
//! one.

mod agents;
mod api;
mod bench;
mod browser;
mod machine;
mod older_git;
mod say;
mod suite;
mod test;
mod tidy;

use std::env;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
Usage: cargo xtask <command>

  test [--no-browser] [--no-api] [--agents] [--otel] [--soak] [--screens] [-- <args of cargo test>]
        Prepares this machine, then runs everything that must hold before a change lands:
        formatting, lints and all tests (the tidy rules are one of them), also those of the page in Debian's chromium,
        with axe, which npm installs below target/, and what Schemathesis, which pip installs there, finds with the
        interface's description. Where a newer git stands in front of Debian's, that one is tried as well. The few tests that fail beside all others are looked at once more, alone.
          --no-browser  leaves the page's tests out; so does a choice behind `--`, unless --browser asks for them
          --no-api   leaves Schemathesis out; so does a choice behind `--`, unless --api asks for it
          --agents   also the tests that drive real agents, which npm installs below target/
          --otel     also the tests of traces, which need a build of their own
          --soak     also the tests that run for minutes
          --screens  has the browser make the pictures in docs/screens anew
  bench [start] [worktree] [crowds] [sync] [commits] [subplans] [lists] [page] [server]
        Measures the promised figures as ratios in one run, in a release build.
  api   Has Schemathesis look for answers that are not as described, alone.
  tidy  Checks the rules over the tree alone.
  help  Prints this text.";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (command, rest) =
        args.split_first().map_or(("help", &[][..]), |(first, rest)| (first.as_str(), rest));
    let done = match command {
        "test" => test::run(&root(), rest),
        "api" => api::run(&root(), api::Program::Unbuilt),
        "bench" => bench::run(&root(), rest),
        "tidy" => tidy::run(&root(), rest),
        "help" | "--help" | "-h" => {
            say::answer(HELP);
            Ok(())
        }
        unknown => Err(say::Failure::usage(format!("there is no `cargo xtask {unknown}`"))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            say::note(&failure.to_string());
            failure.exit_code()
        }
    }
}

/// Returns the root of the workspace, independent of the current directory.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask is a folder of the workspace").to_owned()
}
