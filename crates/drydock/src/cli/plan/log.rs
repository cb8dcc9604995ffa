//! `drydock plan log`: the output of the agents, validations and reviewers of a run, and with `--follow` new output.

use std::time::Duration;

use clap::Args;
use drydock_api::{ClientError, Code, EventQuery, Log, LogLine, LogPage, LogQuery, Plan, Problem, State};
use serde_json::json;

use super::args::PlanIdArgs;
use crate::cli::report::{CliResult, Level, Report};
use crate::cli::screen::StdoutState;
use crate::cli::session::Invocation;
use crate::render;

/// How long one request waits for a line.
const WAIT_MS: u64 = 5_000;
/// Delay before looking again for the next run or for an unreachable server, and the maximum number of attempts for a
/// server.
const LOOK_AGAIN: Duration = Duration::from_millis(500);
const AWAY_MAX: u32 = 120;
/// How many old events are read at a time.
const EVENTS: u32 = 500;

/// Arguments of `drydock plan log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    #[command(flatten)]
    plan: PlanIdArgs,
    /// Print new output until the plan stops; with --run, until that run ends
    #[arg(long)]
    follow: bool,
    /// Print only the text, without time and stream; control characters are not removed
    #[arg(long)]
    raw: bool,
    /// Run id or unique prefix [default: the newest run]
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Prints lines, and counts or collects them.
struct Printer<'s> {
    session: &'s Invocation,
    raw: bool,
    follow: bool,
    /// The lines, if they are the data of one answer.
    kept: Vec<LogLine>,
    count: usize,
}

pub(crate) async fn log(session: &Invocation, args: LogArgs) -> CliResult {
    let plan = session.client().plan(&args.plan.id).await?;
    let mut printer = Printer { session, raw: args.raw, follow: args.follow, kept: Vec::new(), count: 0 };
    let read = match read(&mut printer, &plan, args.run.clone()).await {
        // Plans of earlier versions have their output in events.
        Err(problem) if problem.code == Code::NotFound && args.run.is_none() && printer.count == 0 => {
            if !from_events(&mut printer, &plan).await? {
                return Err(problem);
            }
            LogPage::default()
        }
        Ok(page) if page.run.is_none() => {
            from_events(&mut printer, &plan).await?;
            page
        }
        read => read?,
    };
    let data = json!({ "log": { "plan": plan.id, "run": read.run, "lines": printer.kept, "next_offset": read.next } });
    let report = Report::new(data, "");
    if printer.count > 0 || args.follow {
        return Ok(report);
    }
    let text = match plan.state {
        State::Queued => {
            format!("no output yet: {} is queued; --follow waits for it", plan.phase)
        }
        State::Cancelled | State::Applied => "no output".to_owned(),
        _ => "no output yet".to_owned(),
    };
    Ok(report.note(Level::Info, text))
}

/// Reads a log to the end that it has now, and with `--follow` all that is printed, the logs of later runs too.
async fn read(
    printer: &mut Printer<'_>,
    plan: &Plan,
    named: Option<String>,
) -> Result<LogPage, Box<Problem>> {
    let client = printer.session.client();
    let mut query =
        LogQuery { run: named.clone(), offset: Some(0), wait_ms: printer.follow.then_some(WAIT_MS) };
    let mut end = None;
    loop {
        let page = page(printer, plan, &query).await?;
        if printer.print(&page.lines)? == StdoutState::Gone {
            return Ok(page);
        }
        if page.run.is_some() {
            query.run = page.run.clone();
        }
        query.offset = Some(i64::try_from(page.next).unwrap_or(i64::MAX));
        if !printer.follow {
            // An agent may print as fast as this reads, so the end is where it was at the first part.
            let end = match end {
                Some(end) => end,
                None => *end.insert(end_of(printer, plan, &page).await?),
            };
            if page.lines.is_empty() || page.next >= end {
                return Ok(page);
            }
            continue;
        }
        if !page.lines.is_empty() || (!page.over && page.run.is_some()) {
            continue;
        }
        if named.is_some() {
            return Ok(page);
        }
        let now = client.plan(&plan.id).await?;
        match next_run(&client.plan_logs(&plan.id).await?.logs, query.run.as_deref()) {
            Some(next) => query = LogQuery { run: Some(next), offset: Some(0), ..query },
            None if rests(&now) => return Ok(page),
            None => tokio::time::sleep(LOOK_AGAIN).await,
        }
    }
}

/// Returns where the log of this part ends now.
async fn end_of(printer: &Printer<'_>, plan: &Plan, page: &LogPage) -> Result<u64, Box<Problem>> {
    let Some(run) = &page.run else { return Ok(page.next) };
    let logs = printer.session.client().plan_logs(&plan.id).await?.logs;
    Ok(logs.iter().find(|log| log.run == *run).map_or(page.next, |log| log.size))
}

/// Returns the run whose log follows that of this one; several may have begun since.
fn next_run(logs: &[Log], run: Option<&str>) -> Option<String> {
    let Some(run) = run else { return logs.first().map(|log| log.run.clone()) };
    match logs.iter().position(|log| log.run == run) {
        Some(at) => logs.get(at + 1).map(|log| log.run.clone()),
        // Its log was removed, so its place in the order is unknown.
        None => logs.last().map(|log| log.run.clone()),
    }
}

/// Reads one page. With `--follow`, retries if the server is unreachable.
async fn page(printer: &Printer<'_>, plan: &Plan, query: &LogQuery) -> Result<LogPage, Box<Problem>> {
    let mut tries = 0;
    loop {
        match printer.session.client().plan_log(&plan.id, query).await {
            Err(ClientError::Unreachable(_)) if printer.follow && tries < AWAY_MAX => tries += 1,
            answer => return Ok(answer?),
        }
        if tries == 1 {
            printer.session.screen().info("the server cannot be reached; retrying");
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// Returns true if the plan does nothing until a person acts.
fn rests(plan: &Plan) -> bool {
    match plan.state {
        State::Queued | State::Complete => plan.gate.is_some(),
        _ => plan.is_settled(),
    }
}

/// Prints the output that a plan of an earlier version has in its events. Returns true if there was any.
async fn from_events(printer: &mut Printer<'_>, plan: &Plan) -> Result<bool, Box<Problem>> {
    let mut query = EventQuery {
        plan: Some(plan.id.clone()),
        kind: Some("agent.output".to_owned()),
        limit: Some(EVENTS),
        ..EventQuery::default()
    };
    loop {
        let page = printer.session.client().events(&query).await?;
        for event in &page.events {
            let texts = event.data["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
            let line = |text: &serde_json::Value| LogLine {
                at: event.at.clone(),
                stream: "stdout".to_owned(),
                text: text.as_str().unwrap_or_default().to_owned(),
                dropped: None,
            };
            let lines: Vec<_> = texts.iter().map(line).collect();
            if printer.print(&lines)? == StdoutState::Gone {
                return Ok(true);
            }
        }
        match page.next {
            Some(next) => query.after = Some(next),
            None => return Ok(printer.count > 0),
        }
    }
}

impl Printer<'_> {
    fn print(&mut self, lines: &[LogLine]) -> Result<StdoutState, Box<Problem>> {
        let screen = self.session.screen();
        self.count += lines.len();
        if screen.is_json() && !self.follow {
            self.kept.extend_from_slice(lines);
            return Ok(StdoutState::Listening);
        }
        if screen.is_json() {
            let text: String = lines.iter().map(|line| format!("{}\n", json!({ "line": line }))).collect();
            return screen.print_exact(&text);
        }
        if !self.raw {
            return screen.print(&lines.iter().map(render::log::line).collect::<String>());
        }
        for mark in lines.iter().filter(|line| line.dropped.is_some()) {
            screen.info(&mark.text);
        }
        screen.print_exact(&lines.iter().filter_map(render::log::raw).collect::<String>())
    }
}
