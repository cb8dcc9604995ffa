//! Reads the logs of a plan's runs: lists them, reads a page of one, and follows one as it grows. Another
//! process may write the log file, so it is polled. The store decides whether the run has ended.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_domain::{Lock, LockScope, Phase, Plan, PlanId, State};
use tokio::time::Instant;

pub use super::reader::LogStart;
use super::reader::{self, Lines};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::task;

/// Poll intervals: for more lines of a log, for the first log of a plan, and for the state of the run in the
/// store.
const POLL: Duration = Duration::from_millis(100);
const FIRST_EVERY: Duration = Duration::from_millis(250);
const STATE_EVERY: Duration = Duration::from_secs(1);
/// Maximum number of bytes per read.
const PAGE_MAX: usize = 1024 * 1024;

/// A log on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSummary {
    /// The run.
    pub run: String,
    /// Time of its first line, as RFC 3339.
    pub began_at: String,
    /// Total number of bytes written, including dropped ones.
    pub size: u64,
}

/// The part of a plan's logs to read.
#[derive(Debug, Clone)]
pub struct LogRange {
    /// The run id or a unique prefix. Default: the newest run with a log.
    pub run: Option<String>,
    /// The position at which to start.
    pub start: LogStart,
    /// Maximum time to wait for a line.
    pub wait: Duration,
}

/// Whether more lines may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunState {
    /// The run has not ended.
    Live,
    /// The run has ended, and its whole log was read.
    Over,
}

/// A part of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogSlice {
    /// The run; `None` if no run of the plan has a log yet.
    pub run: Option<String>,
    /// Whole lines of JSON.
    pub bytes: Vec<u8>,
    /// The offset for the next read.
    pub next: u64,
    /// Whether more lines may follow.
    pub state: RunState,
}

/// One result of following a log.
#[derive(Debug)]
pub enum LogNews {
    /// Lines, and the offset after them.
    Lines {
        /// Whole lines of JSON.
        bytes: Vec<u8>,
        /// The offset for the next read.
        next: u64,
    },
    /// Nothing was written during the wait.
    Quiet,
    /// The run has ended, and its whole log was returned.
    Ended,
    /// The log was removed.
    Removed,
    /// This process is stopping.
    Stopping,
}

/// The result of waiting for the first log of a plan.
pub enum FirstLog {
    /// A run has a log.
    Found(LogFollower),
    /// No run has a log yet.
    NotYet,
    /// The plan ended before its first run, so there will be no log.
    Never,
    /// This process is stopping.
    Stopping,
}

/// Reads one log as it grows.
pub struct LogFollower {
    engine: Engine,
    plan: PlanId,
    run: String,
    directory: PathBuf,
    start: LogStart,
    asked: Option<Instant>,
}

impl Engine {
    fn logs_of(&self, plan: &PlanId) -> PathBuf {
        self.settings().logs.join(plan.as_str())
    }

    /// Lists the logs of a plan on this machine, in the order in which their runs started.
    pub async fn logs(&self, plan: &PlanId) -> Result<Vec<LogSummary>, EngineError> {
        let directory = self.logs_of(plan);
        task::blocking(move || summaries(&directory)).await.map_err(unread)
    }

    /// Reads a part of a log. Waits for a line if there is none and the run has not ended or is about to
    /// start.
    pub async fn log_page(&self, plan: &Plan, query: &LogRange) -> Result<LogSlice, EngineError> {
        let deadline = Instant::now() + query.wait;
        let left = || deadline.saturating_duration_since(Instant::now());
        let none = |state| Ok(LogSlice { run: None, bytes: Vec::new(), next: 0, state });
        let mut follower = match self.log_follow(plan, query.run.as_deref(), query.start).await? {
            Some(follower) => follower,
            None if !is_due(plan) => return none(RunState::Over),
            None => match self.log_first(&plan.id, query.start, left()).await? {
                FirstLog::Found(follower) => follower,
                FirstLog::NotYet | FirstLog::Stopping => return none(RunState::Live),
                FirstLog::Never => return none(RunState::Over),
            },
        };
        let news = follower.next(left()).await?;
        let state = if matches!(news, LogNews::Ended) { RunState::Over } else { RunState::Live };
        let run = Some(follower.run.clone());
        match news {
            LogNews::Lines { bytes, next } => Ok(LogSlice { run, bytes, next, state }),
            LogNews::Removed => Err(self.no_log(plan, &follower.run).await?),
            LogNews::Quiet | LogNews::Ended | LogNews::Stopping => {
                Ok(LogSlice { run, bytes: Vec::new(), next: follower.offset(), state })
            }
        }
    }

    /// Follows a log. Returns `None` if no run is named and no run of the plan has a log yet.
    pub async fn log_follow(
        &self,
        plan: &Plan,
        run: Option<&str>,
        start: LogStart,
    ) -> Result<Option<LogFollower>, EngineError> {
        let mut logs = self.logs(&plan.id).await?;
        if let Some(given) = run {
            logs.retain(|log| log.run.starts_with(given));
            if let Some(exact) = logs.iter().position(|log| log.run == given) {
                logs = vec![logs.swap_remove(exact)];
            }
        }
        let newest = match (logs.pop(), run) {
            (Some(_), Some(given)) if !logs.is_empty() => {
                let candidates = logs.into_iter().map(|log| log.run).collect();
                return Err(EngineError::Ambiguous { kind: "run", given: given.to_owned(), candidates });
            }
            (Some(log), _) => log.run,
            (None, Some(given)) => return Err(self.no_log(plan, given).await?),
            (None, None) => return self.none_yet(plan).await.map(|()| None),
        };
        Ok(Some(self.follower(&plan.id, newest, start)))
    }

    /// Waits up to `limit` for the first log of a plan that has none yet. The plan is read again each time,
    /// because it may end, or the run may start on another machine; then this fails like `log_follow`.
    pub async fn log_first(
        &self,
        plan: &PlanId,
        start: LogStart,
        limit: Duration,
    ) -> Result<FirstLog, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            let now = self.plan(plan.as_str()).await?;
            // The oldest, not the newest: a short run may have ended since the last check.
            if let Some(first) = self.logs(plan).await?.into_iter().next() {
                return Ok(FirstLog::Found(self.follower(plan, first.run, start)));
            }
            self.none_yet(&now).await?;
            if now.stage.is_terminal() {
                return Ok(FirstLog::Never);
            }
            if self.stopping().is_cancelled() {
                return Ok(FirstLog::Stopping);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(FirstLog::NotYet);
            }
            tokio::select! {
                () = tokio::time::sleep(FIRST_EVERY.min(left)) => {}
                () = self.stopping().cancelled() => {}
            }
        }
    }

    fn follower(&self, plan: &PlanId, run: String, start: LogStart) -> LogFollower {
        let directory = self.logs_of(plan).join(&run);
        LogFollower { engine: self.clone(), plan: plan.clone(), run, directory, start, asked: None }
    }

    /// Fails if a plan without a log on this machine must have one on another: its work has started, but in
    /// no process of this machine.
    async fn none_yet(&self, plan: &Plan) -> Result<(), EngineError> {
        let is_before = match plan.stage.phase() {
            Phase::Strategize => true,
            Phase::Execute => plan.phase_started_at.is_none(),
            Phase::Apply => false,
        };
        // No run follows in a plan that is over, so a log is only missing if an earlier run had one.
        let had_one = plan.spec.agents.strategize.is_some() || plan.reversions > 0;
        let is_before = is_before && !(plan.stage.is_terminal() && had_one);
        let Some(run) = plan.run.as_ref().filter(|_| !is_before) else { return Ok(()) };
        let here = &self.identity().process().host;
        let locks = self.store().lock_list().await?;
        let begins_here = |lock: &Lock| {
            lock.scope == LockScope::Plan && lock.key == plan.id.as_str() && lock.holder.process.host == *here
        };
        if is_at_work(plan) && locks.iter().any(begins_here) {
            return Ok(());
        }
        Err(self.no_log(plan, run.as_str()).await?)
    }

    /// Returns the error that a log is not on this machine, with the machine that may have it.
    async fn no_log(&self, plan: &Plan, run: &str) -> Result<EngineError, EngineError> {
        let here = self.identity().process().host.clone();
        let locks = self.store().lock_list().await?;
        let held =
            locks.into_iter().find(|lock| lock.scope == LockScope::Plan && lock.key == plan.id.as_str());
        let at = match held.map(|lock| lock.holder.process.host).filter(|host| *host != here) {
            Some(host) => format!("{run} on {here} (its plan is held by a process on {host})"),
            None => format!("{run} on {here}"),
        };
        Ok(EngineError::absent("log of run", at))
    }
}

impl LogFollower {
    /// Returns the id of the followed run.
    pub fn run(&self) -> &str {
        &self.run
    }

    fn offset(&self) -> u64 {
        match self.start {
            LogStart::At(offset) => offset,
            LogStart::Last(_) => 0,
        }
    }

    /// Returns the next result, waiting up to `limit` for it. Dropping the future loses no lines.
    pub async fn next(&mut self, limit: Duration) -> Result<LogNews, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            if self.engine.stopping().is_cancelled() {
                return Ok(LogNews::Stopping);
            }
            // Checked before the log is read, so that the read includes every line written before the run
            // ended.
            let over = self.is_over().await?;
            let Some(Lines { bytes, next }) = self.read().await? else { return Ok(LogNews::Removed) };
            self.start = LogStart::At(next);
            if !bytes.is_empty() {
                return Ok(LogNews::Lines { bytes, next });
            }
            if over {
                return Ok(LogNews::Ended);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(LogNews::Quiet);
            }
            tokio::select! {
                () = tokio::time::sleep(POLL.min(left)) => {}
                () = self.engine.stopping().cancelled() => {}
            }
        }
    }

    async fn read(&self) -> Result<Option<Lines>, EngineError> {
        let (directory, start) = (self.directory.clone(), self.start);
        task::blocking(move || reader::read(&directory, start, PAGE_MAX)).await.map_err(unread)
    }

    async fn is_over(&mut self) -> Result<bool, EngineError> {
        if self.asked.is_some_and(|asked| asked.elapsed() < STATE_EVERY) {
            return Ok(false);
        }
        let plan = self.engine.store().plan_fetch(&self.plan).await?;
        self.asked = Some(Instant::now());
        let goes_on =
            |plan: &Plan| is_at_work(plan) && plan.run.as_ref().is_some_and(|run| run.as_str() == self.run);
        let over = !plan.is_some_and(|plan| goes_on(&plan));
        if over {
            // The next call checks again: the run counts as ended only if it stays so.
            self.asked = None;
        }
        Ok(over)
    }
}

fn is_at_work(plan: &Plan) -> bool {
    plan.stage.state() == State::Processing
}

/// Returns true if a run is in progress or will start automatically.
fn is_due(plan: &Plan) -> bool {
    is_at_work(plan) || plan.stage.state() == State::Queued
}

fn summaries(directory: &Path) -> io::Result<Vec<LogSummary>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Ok(run) = entry.file_name().into_string() else { continue };
        if let Some((began_at, size)) = reader::summary(&entry.path())? {
            found.push(LogSummary { run, began_at, size });
        }
    }
    found.sort_by(|one, other| (&one.began_at, &one.run).cmp(&(&other.began_at, &other.run)));
    Ok(found)
}

fn unread(source: io::Error) -> EngineError {
    EngineError::File { attempt: "read the log".to_owned(), source }
}
