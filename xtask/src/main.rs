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
        Prepares this machine, then runs all checks that must pass before a change lands:
        formatting, lints and all tests (including the tidy rules), also those of the page in Debian's chromium
        with axe (npm installs it below target/), and Schemathesis (pip installs it there) against the API
        description. If PATH has a newer git than Debian's, the tests of git also run with Debian's.
        Failed tests run once more, alone.
          --no-browser  skips the tests of the page; so does a selection after `--`, unless --browser is given
          --no-api   skips Schemathesis; so does a selection after `--`, unless --api is given
          --agents   also the tests that drive real agents, which npm installs below target/
          --otel     also the tests of traces, which need a separate build
          --soak     also the tests that run for minutes
          --screens  recreates the pictures in docs/screens with the browser
  bench [start] [worktree] [crowds] [sync] [commits] [subplans] [lists] [page] [server]
        Measures the promised figures as ratios, in a release build.
  api   Runs only Schemathesis, which finds responses that differ from the API description.
  tidy  Checks only the rules about the source tree.
  help  Prints this text.";

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let (command, rest) =
        args.split_first().map_or(("help", &[][..]), |(first, rest)| (first.as_str(), rest));
    let done = match command {
        "test" => test::run(&root(), rest),
        "api" => api::run(&root(), api::BinaryState::Unbuilt),
        "bench" => bench::run(&root(), rest),
        "tidy" => tidy::run(&root(), rest),
        "help" | "--help" | "-h" => {
            say::answer(HELP);
            Ok(())
        }
        unknown => Err(say::CommandError::usage(format!("unknown command `cargo xtask {unknown}`"))),
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
