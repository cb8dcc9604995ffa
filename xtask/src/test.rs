//! `cargo xtask test`: the one command that checks a change completely, also on a new machine.

use std::env;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use drydock_testkit::postgres::{PostgresServer, SERVER_VARIABLE};

use crate::agents;
use crate::api::{self, BinaryState};
use crate::browser;
use crate::machine::{self, Requirement};
use crate::older_git::{self, Older};
use crate::say::{self, CommandError};
use crate::suite::{self, Built, SuiteResult};

/// The steps for a binary that is built with traces.
const TRACES: [&[&str]; 2] = [
    &["clippy", "--package", "drydock", "--features", "otel", "--all-targets", "--", "-D", "warnings"],
    &["test", "--package", "drydock", "--features", "otel", "--test", "it", "--", "traces::"],
];

/// Everything but doc tests, of which there are none.
const TESTS: [&str; 5] = ["test", "--workspace", "--lib", "--bins", "--tests"];

/// Runs every step, even after one failed, so that one run shows everything to fix.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<(), CommandError> {
    let asked = Asked::parse(args)?;
    let started = Instant::now();

    heading(started, "this machine: git, PostgreSQL and other dependencies");
    machine::check_git()?;
    machine::require(&asked.needs(root))?;
    // One server for all test programs. It ends with this process, or with the value, whichever comes first.
    let server = match env::var(SERVER_VARIABLE) {
        Ok(_) => None,
        Err(_) => Some(PostgresServer::start(&machine::postgres_programs()?).map_err(CommandError::failed)?),
    };
    let mut variables = asked.variables.clone();
    variables.extend(server.as_ref().map(|server| (SERVER_VARIABLE, server.admin_url().into())));

    let steps: [&[&str]; 2] =
        [&["fmt", "--all", "--check"], &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]];
    let mut outcomes: Vec<TestOutcome> =
        steps.iter().map(|step| cargo(root, started, step, &variables)).collect();
    let mut test = TESTS.to_vec();
    if asked.extra.is_empty() {
        test.push("--no-fail-fast");
        outcomes.push(tests(root, started, &test, &[], &variables));
    } else {
        test.extend(asked.extra.iter().map(String::as_str));
        outcomes.push(cargo(root, started, &test, &variables));
    }
    if asked.extra.is_empty() {
        outcomes.extend(with_older_git(root, started, &variables));
    }
    if asked.wants(asked.browser) {
        outcomes.push(in_browser(root, started, &variables));
    }
    if asked.agents {
        outcomes.push(real_agents(root, started, &variables));
    }
    if asked.otel {
        outcomes.extend(TRACES.iter().map(|step| cargo(root, started, step, &variables)));
    }
    if asked.wants(asked.api) {
        outcomes.push(described(root, started));
    }
    let done = summarise(started, &outcomes);
    if !asked.wants(asked.api) {
        say::note("    not run: Schemathesis");
    }
    if !asked.otel {
        say::note("    not run: the tests of traces (--otel)");
    }
    if !asked.wants(asked.browser) {
        say::note("    not run: the tests of the page in a browser");
    }
    if !asked.agents {
        say::note("    not run: the tests that drive real agents (--agents)");
    }
    done
}

/// Runs the test programs that depend on git with Debian's git, without building them again. Returns nothing if no
/// older git is found.
fn with_older_git(root: &Path, started: Instant, variables: &[(&'static str, OsString)]) -> Vec<TestOutcome> {
    heading(started, "an older git");
    let began = Instant::now();
    let failed = |trouble: String| {
        vec![TestOutcome { shown: "an older git".to_owned(), took: began.elapsed(), trouble: Some(trouble) }]
    };
    let (path, version) = match older_git::prepare(root) {
        Ok(Older::At { path, version }) => (path, version),
        Ok(Older::None(reason)) => {
            say::note(&format!("    not run: the tests with an older git ({reason})"));
            return Vec::new();
        }
        Err(failure) => return failed(failure.to_string()),
    };
    let args = [&TESTS[..], &["--no-run", "--message-format=json"]].concat();
    let built = match suite::built(command(root, &args, variables)) {
        Ok(built) => built,
        Err(trouble) => return failed(trouble),
    };
    let mut outcomes = Vec::new();
    for (folder, words) in older_git::TRIED {
        let tried = |one: &&Built| one.folder.ends_with(folder) && (words.is_empty() || one.target == "it");
        for Built { folder, target, program } in built.iter().filter(tried) {
            let shown = format!("{target} of {} with git {version}", folder.display());
            heading(started, &shown);
            let began = Instant::now();
            let command = |again: &[&str]| {
                let mut command = Command::new(program);
                command.args(if again.is_empty() { words } else { again }).current_dir(folder);
                command.envs(variables.iter().map(|(name, value)| (name, value))).env("PATH", &path);
                command
            };
            let trouble = judged(suite::run(command, &mut io::stdout()));
            outcomes.push(TestOutcome { shown, took: began.elapsed(), trouble });
        }
    }
    outcomes
}

/// Runs the tests of the page in a browser. A missing browser is a failure, not a skipped step.
fn in_browser(root: &Path, started: Instant, variables: &[(&'static str, OsString)]) -> TestOutcome {
    heading(started, "a browser");
    let began = Instant::now();
    match browser::prepare(root) {
        Ok(axe) => {
            let mut variables = variables.to_vec();
            variables.push(axe);
            // Each test starts one or two browsers.
            let args = ["test", "--package", "drydock", "--test", "browser"];
            tests(root, started, &args, &["--test-threads", "2"], &variables)
        }
        Err(failure) => TestOutcome {
            shown: "a browser".to_owned(),
            took: began.elapsed(),
            trouble: Some(format!("{failure}; --no-browser skips the tests of the page")),
        },
    }
}

/// Runs the tests that drive real agents. Missing agents are a failure, not a skipped step.
fn real_agents(root: &Path, started: Instant, variables: &[(&'static str, OsString)]) -> TestOutcome {
    heading(started, "real agents");
    let began = Instant::now();
    match agents::prepare(root) {
        Ok(path) => {
            let mut variables = variables.to_vec();
            variables.push(("PATH", path));
            cargo(root, started, &["test", "--package", "drydock", "--test", "agents"], &variables)
        }
        Err(failure) => TestOutcome {
            shown: "real agents".to_owned(),
            took: began.elapsed(),
            trouble: Some(failure.to_string()),
        },
    }
}

/// Searches for responses of the server that do not match the OpenAPI document.
fn described(root: &Path, started: Instant) -> TestOutcome {
    heading(started, "the API against its description");
    let began = Instant::now();
    let trouble = api::run(root, BinaryState::Built).err();
    let trouble = trouble.map(|failure| format!("{failure}; --no-api skips it"));
    TestOutcome { shown: "the API against its description".to_owned(), took: began.elapsed(), trouble }
}

/// Whether the command line includes or excludes a part of the full run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Wanted,
    Unwanted,
}

/// The parsed command line.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    agents: bool,
    api: Option<Wish>,
    browser: Option<Wish>,
    otel: bool,
    variables: Vec<(&'static str, OsString)>,
    extra: Vec<String>,
}

impl Asked {
    fn parse(args: &[String]) -> Result<Self, CommandError> {
        let mut asked = Self::default();
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--agents" => asked.agents = true,
                "--api" => asked.api = Some(Wish::Wanted),
                "--no-api" => asked.api = Some(Wish::Unwanted),
                "--browser" => asked.browser = Some(Wish::Wanted),
                "--no-browser" => asked.browser = Some(Wish::Unwanted),
                "--otel" => asked.otel = true,
                "--soak" => asked.variables.push(("DRYDOCK_SOAK", "1".into())),
                "--screens" => {
                    asked.browser = Some(Wish::Wanted);
                    asked.variables.push(("DRYDOCK_SCREENS", crate::root().join("docs/screens").into()))
                }
                "--" => asked.extra = args.by_ref().cloned().collect(),
                unknown => return Err(CommandError::usage(format!("unknown option of `test`: `{unknown}`"))),
            }
        }
        Ok(asked)
    }

    /// Returns all that the machine must have, so that nothing turns out to be missing after the first tests.
    fn needs(&self, root: &Path) -> Vec<Requirement> {
        // One of the agents in the tests is a program in Python, and tests sign with a key of their own.
        let mut needs = vec![machine::PYTHON, machine::SSH_KEYGEN];
        if env::var_os(SERVER_VARIABLE).is_none() {
            needs.push(machine::POSTGRES);
        }
        if self.wants(self.browser) {
            needs.extend(browser::needs(root));
        }
        needs
    }

    /// Returns true if the browser or API tests run. They are part of a full run, but not of a run with selected
    /// tests.
    fn wants(&self, wish: Option<Wish>) -> bool {
        match wish {
            Some(Wish::Wanted) => true,
            Some(Wish::Unwanted) => false,
            None => self.extra.is_empty(),
        }
    }
}

struct TestOutcome {
    shown: String,
    took: Duration,
    trouble: Option<String>,
}

/// Runs cargo with its output unchanged.
fn cargo(
    root: &Path,
    started: Instant,
    args: &[&str],
    variables: &[(&'static str, OsString)],
) -> TestOutcome {
    let shown = format!("cargo {}", args.join(" "));
    heading(started, &shown);
    let began = Instant::now();
    let trouble = match command(root, args, variables).status() {
        Ok(status) if status.success() => None,
        Ok(status) => Some(status.to_string()),
        Err(error) => Some(format!("could not start: {error}")),
    };
    TestOutcome { shown, took: began.elapsed(), trouble }
}

/// Runs tests, and the few that fail once more. `words` are passed to the test programs.
fn tests(
    root: &Path,
    started: Instant,
    args: &[&str],
    words: &[&str],
    variables: &[(&'static str, OsString)],
) -> TestOutcome {
    let shown = format!("cargo {}", args.join(" "));
    heading(started, &shown);
    let began = Instant::now();
    let command = |again: &[&str]| {
        let words = if again.is_empty() { words } else { again };
        let mut command = command(root, args, variables);
        command.arg("--").args(words);
        command
    };
    let trouble = judged(suite::run(command, &mut io::stdout()));
    TestOutcome { shown, took: began.elapsed(), trouble }
}

/// Returns why a test run failed. Prints the names of flaky tests.
fn judged(verdict: SuiteResult) -> Option<String> {
    match verdict {
        SuiteResult::Passed => None,
        SuiteResult::Flaky(names) => {
            for name in names {
                say::note(&format!(
                    "FLAKY: {name} failed together with the others and passed alone; find \
                                    the cause"
                ));
            }
            None
        }
        SuiteResult::Failed(trouble) => Some(trouble),
    }
}

fn command(root: &Path, args: &[&str], variables: &[(&'static str, OsString)]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root).args(args).envs(variables.iter().map(|(name, value)| (name, value)));
    // `cargo run` sets these variables about xtask. Left in place, they would make build scripts run again.
    for (name, _) in env::vars_os() {
        if name
            .to_str()
            .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
        {
            command.env_remove(name);
        }
    }
    command
}

fn heading(started: Instant, what: &str) {
    say::note(&format!("\n==> [{:.1} s] {what}", started.elapsed().as_secs_f64()));
}

fn summarise(started: Instant, outcomes: &[TestOutcome]) -> Result<(), CommandError> {
    heading(started, "summary");
    for TestOutcome { shown, took, trouble } in outcomes {
        let verdict = trouble.as_ref().map_or("ok".to_owned(), |trouble| format!("FAILED ({trouble})"));
        say::note(&format!("{:>7.1} s  {shown}: {verdict}", took.as_secs_f64()));
    }
    match outcomes.iter().filter(|outcome| outcome.trouble.is_some()).count() {
        0 => Ok(()),
        failed => Err(CommandError::failed(format!("{failed} of {} steps failed", outcomes.len()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(args: &[&str]) -> Result<Asked, CommandError> {
        Asked::parse(&args.iter().map(|&arg| arg.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn everything_after_two_dashes_goes_to_cargo_test() {
        let asked = parse(&["--soak", "--", "--test", "x", "--", "--agents"]).unwrap();
        assert!(!asked.agents);
        assert_eq!(asked.variables, [("DRYDOCK_SOAK", "1".into())]);
        assert_eq!(asked.extra, ["--test", "x", "--", "--agents"]);
    }

    /// Breaks if a part of the full run is left out of a run without restrictions.
    #[test]
    fn browser_and_description_are_part_of_everything_unless_left_out_or_tests_are_chosen() {
        let wanted = |args: &[&str]| {
            let asked = parse(args).unwrap();
            (asked.wants(asked.browser), asked.wants(asked.api))
        };
        assert_eq!(wanted(&[]), (true, true));
        assert_eq!(wanted(&["--soak"]), (true, true));
        assert_eq!(wanted(&["--no-browser"]), (false, true));
        assert_eq!(wanted(&["--no-api"]), (true, false));
        assert_eq!(wanted(&["--", "--test", "lease"]), (false, false));
        assert_eq!(wanted(&["--browser", "--", "--test", "lease"]), (true, false));
        assert_eq!(wanted(&["--api", "--", "--test", "lease"]), (false, true));
        assert_eq!(wanted(&["--screens"]), (true, true));
    }

    #[test]
    fn an_unknown_option_is_refused_by_name() {
        assert!(parse(&["--sok"]).unwrap_err().to_string().contains("`--sok`"));
    }

    #[test]
    fn one_failed_step_fails_the_whole() {
        let step = |trouble: Option<&str>| TestOutcome {
            shown: "cargo x".to_owned(),
            took: Duration::ZERO,
            trouble: trouble.map(str::to_owned),
        };
        assert!(summarise(Instant::now(), &[step(None), step(None)]).is_ok());
        assert!(summarise(Instant::now(), &[step(Some("exit status: 1")), step(None)]).is_err());
    }
}
