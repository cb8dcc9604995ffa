//! From the command line's words to the exit code: parse, open, run, print. Signals are handled here, around every
//! command.

use std::ffi::OsString;
use std::pin::pin;
use std::process::ExitCode;
use std::time::Instant;

use clap::{CommandFactory, Parser};
use drydock_api::{Code, Problem, exit};
use jiff::Timestamp;
use tokio::runtime::Builder;

use super::args::{Cli, CliCommand, Format, Global};
use super::backend::OpenEmbedded;
use super::envelope::{Timing, line};
use super::interrupt::{Interrupt, Interrupts};
use super::log::ByDefault;
use super::report::{CliResult, Level, Print, ReportStatus};
use super::screen::{Screen, StdoutState};
use super::serve::{ServeArgs, WorkerArgs};
use super::session::{Driver, FollowedPlan, Invocation};
use super::{
    action, agent, backup, changeset, checkpoint, decision, demo, doctor, events, gc, inside, invariant,
    lock, log, manual, mcp, plan, project, run, schema, serve, store, token,
};
use crate::render;
use crate::telemetry::Traces;

/// Runs the command line and returns its exit code.
pub(crate) fn main(argv: Vec<OsString>, embedded: OpenEmbedded) -> ExitCode {
    let clock = Clock { started: Timestamp::now(), since: Instant::now() };
    let cli = match Cli::try_parse_from(&argv) {
        Ok(cli) => cli,
        Err(error) => return ExitCode::from(misused(&argv, error, &clock)),
    };
    let screen = Screen::new(&cli.global);
    let words = cli.command.words();
    let traces = match Traces::begin(cli.global.config.as_deref()) {
        Ok(traces) => traces,
        Err(problem) => return ExitCode::from(answer(&screen, &words, &Err(problem), &clock)),
    };
    let (by_default, format) = match (&cli.command, cli.global.quiet) {
        (CliCommand::Serve(ServeArgs { log, .. }) | CliCommand::Worker(WorkerArgs { log, .. }), is_quiet) => {
            (if is_quiet { ByDefault::Errors } else { ByDefault::Work }, log.log_format)
        }
        (_, _) => (ByDefault::Nothing, None),
    };
    log::begin(by_default, format, traces.as_ref());
    // A command that answers once starts faster without worker threads.
    let mut runtime = match cli.command {
        CliCommand::Serve(_) | CliCommand::Worker(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    let outcome = match runtime.enable_all().build() {
        Ok(runtime) => {
            let outcome = runtime.block_on(under_interrupts(cli, &screen, &clock, embedded));
            // A thread that still reads the terminal must not keep the process alive.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => {
            let text = format!("could not start the runtime: {error}");
            Err(Box::new(
                Problem::new(Code::Internal, text).hint("check the limits on open files and threads"),
            ))
        }
    };
    let exit_code = answer(&screen, &words, &outcome, &clock);
    if let Some(traces) = traces {
        traces.end();
    }
    ExitCode::from(exit_code)
}

struct Clock {
    started: Timestamp,
    since: Instant,
}

impl Clock {
    fn timing(&self) -> Timing {
        let duration_ms = u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX);
        Timing { started: self.started.to_string(), duration_ms }
    }
}

async fn under_interrupts(cli: Cli, screen: &Screen, clock: &Clock, embedded: OpenEmbedded) -> CliResult {
    inside::refuse(&cli.command)?;
    let cli = match apart(cli, screen).await {
        SessionlessResult::Done(outcome) => return outcome,
        SessionlessResult::Asks(cli) => cli,
    };
    let mut interrupts = Interrupts::listen()?;
    let session = tokio::select! {
        session = Invocation::open(&cli.global, screen.clone(), clock.started, embedded) => session?,
        interrupt = interrupts.next() => return Err(interrupt.problem(None)),
    };
    let mut work = pin!(dispatch(&session, cli.command));
    let interrupt = tokio::select! {
        outcome = &mut work => {
            session.backend().shutdown().await;
            return outcome;
        }
        interrupt = interrupts.next() => interrupt,
    };
    session.interrupt(interrupt);
    let driving = session.driving();
    if let Some(driving) = &driving {
        screen.info(&on_interrupt(interrupt, driving));
    }
    let here = driving.as_ref().filter(|driving| driving.by == Driver::ThisProcess);
    let held = here.filter(|_| interrupt == Interrupt::Keyboard);
    // The work is still polled after a signal: it brings the plan to a state from which it can be resumed.
    let stopped = async {
        let stop = async {
            // Before any lock is released: a worker would claim the plan at once (page B10).
            if let Some(driving) = held {
                session.backend().hold_stopped(&driving.plan).await;
            }
            session.backend().shutdown().await;
        };
        tokio::join!(stop, async {
            if here.is_some() {
                // The command's result is the interruption, so the result of the work is dropped.
                drop(work.await);
            }
        });
    };
    interrupts.wind_up(interrupt, stopped).await;
    Err(interrupt.problem(driving.map(|driving| driving.resume)))
}

/// Returns the message for a signal that ends the following of a plan.
fn on_interrupt(interrupt: Interrupt, driving: &FollowedPlan) -> String {
    let resume = &driving.resume;
    match (driving.by, interrupt) {
        (Driver::ThisProcess, Interrupt::Keyboard) => {
            format!(
                "stopping the agent and saving its work; no worker continues the plan until you do: {resume}"
            )
        }
        (Driver::ThisProcess, Interrupt::Termination | Interrupt::Hangup) => {
            format!("stopping the agent and saving its work; a worker continues the plan, or run: {resume}")
        }
        (Driver::Server, _) => "the server continues the plan".to_owned(),
        (Driver::Worker, _) => "a worker continues the plan".to_owned(),
        (Driver::Person, _) => String::new(),
        (Driver::Waiting, _) => format!("the plan keeps waiting; a worker continues it, or run: {resume}"),
    }
}

/// Whether a command needs a session.
enum SessionlessResult {
    Done(CliResult),
    Asks(Cli),
}

/// Runs the commands that use neither a server nor the router. They act on the program or on the store itself.
async fn apart(cli: Cli, screen: &Screen) -> SessionlessResult {
    let Cli { global, command } = cli;
    SessionlessResult::Done(match command {
        CliCommand::Schema(args) => schema::run(&args),
        CliCommand::Completions(args) => manual::completions(&args),
        CliCommand::Man(args) => manual::man(&args),
        CliCommand::Serve(args) => serve::serve(&global, screen, args).await,
        CliCommand::Worker(args) => serve::worker(&global, screen, args).await,
        CliCommand::Store(command) => under_signals(store::run(&global, command)).await,
        CliCommand::Mcp => mcp::run().await,
        CliCommand::Demo(args) => demo::run(screen, args).await,
        command => return SessionlessResult::Asks(Cli { global, command }),
    })
}

/// Runs work that may be dropped at any point, and drops it when a signal arrives.
async fn under_signals(work: impl Future<Output = CliResult>) -> CliResult {
    let mut interrupts = Interrupts::listen()?;
    tokio::select! {
        outcome = work => outcome,
        interrupt = interrupts.next() => Err(interrupt.problem(None)),
    }
}

async fn dispatch(session: &Invocation, command: CliCommand) -> CliResult {
    match command {
        CliCommand::Run(args) => run::run(session, args).await,
        CliCommand::Project(command) => project::run(session, command).await,
        CliCommand::Action(command) => action::run(session, command).await,
        CliCommand::Invariant(command) => invariant::run(session, command).await,
        CliCommand::Agent(command) => agent::run(session, command).await,
        CliCommand::Plan(command) => plan::run(session, command).await,
        CliCommand::Decision(command) => decision::run(session, command).await,
        CliCommand::Changeset(command) => changeset::run(session, command).await,
        CliCommand::Checkpoint(command) => checkpoint::run(session, command).await,
        CliCommand::Lock(command) => lock::run(session, command).await,
        CliCommand::Backup(command) => backup::run(session, command).await,
        CliCommand::Token(command) => token::run(session, command).await,
        CliCommand::Events(args) => events::run(session, args).await,
        CliCommand::Doctor(args) => doctor::run(session, args).await,
        CliCommand::Gc(args) => gc::run(session, args).await,
        CliCommand::Completions(_)
        | CliCommand::Schema(_)
        | CliCommand::Man(_)
        | CliCommand::Serve(_)
        | CliCommand::Worker(_)
        | CliCommand::Store(_)
        | CliCommand::Mcp
        | CliCommand::Demo(_) => unreachable!("these never open a session"),
    }
}

/// Prints the outcome and returns the exit code.
fn answer(screen: &Screen, words: &str, outcome: &CliResult, clock: &Clock) -> u8 {
    let exit_code = match outcome {
        Ok(report) => report.exit_code(),
        Err(problem) => problem.exit_code(),
    };
    let written = if screen.is_json() {
        screen.print_exact(&line(words, outcome, clock.timing()))
    } else {
        in_text(screen, outcome, clock.started)
    };
    match written {
        Ok(_) => exit_code,
        Err(problem) => {
            screen.error(&render::problem::lines(&problem, clock.started));
            exit::FAILED
        }
    }
}

fn in_text(screen: &Screen, outcome: &CliResult, now: Timestamp) -> Result<StdoutState, Box<Problem>> {
    let problem = match outcome {
        Ok(report) => {
            let reader = match report.print {
                Print::Styled => screen.print(&report.lines())?,
                Print::Exact => screen.print_exact(&report.text)?,
            };
            for note in &report.notes {
                match note.level {
                    Level::Info => screen.info(&render::style::plain(&note.text)),
                    Level::Warn => screen.info(&format!("warning: {}", render::style::plain(&note.text))),
                }
            }
            match &report.ending {
                ReportStatus::Failed(problem) => problem,
                ReportStatus::Done | ReportStatus::Attention(_) => return Ok(reader),
            }
        }
        Err(problem) => problem,
    };
    screen.error(&render::problem::lines(problem, now));
    Ok(StdoutState::Listening)
}

/// Handles a command line that could not be parsed, and requests for help.
fn misused(argv: &[OsString], error: clap::Error, clock: &Clock) -> u8 {
    let words: Vec<_> = argv.iter().skip(1).map(|word| word.to_string_lossy()).collect();
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).take_while(|word| *word != "--").collect();
    if !error.use_stderr() || !wants_json(&words) {
        // Printing help into a closed pipe is not an error, as for any other output.
        drop(error.print());
        return u8::try_from(error.exit_code()).unwrap_or(exit::USAGE);
    }
    let text = error.render().to_string();
    let text = text.trim().strip_prefix("error: ").unwrap_or(text.trim());
    let (text, rest) = text.split_once("\n\n").unwrap_or((text, ""));
    let mut problem = Problem::new(Code::Usage, text.trim());
    if !rest.trim().is_empty() {
        problem = problem.hint(rest.trim());
    }
    let screen = Screen::new(&Global {
        store: None,
        server: None,
        token_file: None,
        config: None,
        format: Format::Json,
        json: true,
        quiet: false,
    });
    answer(&screen, &command_words(&words), &Err(Box::new(problem)), clock)
}

fn wants_json(words: &[&str]) -> bool {
    words.iter().any(|word| matches!(*word, "--json" | "--format=json"))
        || words.windows(2).any(|pair| pair == ["--format", "json"])
}

/// Returns the leading words that name existing commands.
fn command_words(words: &[&str]) -> String {
    let mut known = Vec::new();
    let mut at = Cli::command();
    for word in words {
        if let Some(found) = at.find_subcommand(word) {
            known.push(*word);
            at = found.clone();
        }
    }
    known.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_named_even_when_its_options_are_wrong() {
        assert_eq!(command_words(&["--json", "plan", "list", "--phase", "sleep"]), "plan list");
        assert_eq!(command_words(&["nonsense"]), "");
    }

    #[test]
    fn json_is_wanted_in_any_of_its_spellings() {
        for words in [&["--json", "x"][..], &["x", "--format", "json"], &["--format=json"]] {
            assert!(wants_json(words), "{words:?}");
        }
        assert!(!wants_json(&["--format", "text", "json"]));
    }
}
