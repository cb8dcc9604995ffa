//! The end of a run's log beside the events of its plan, for the live view. Lines that cannot be read are
//! left out: the work continues, and `plan log` reports the error.

use std::cell::RefCell;
use std::time::Duration;

use drydock_api::{Event, LogLine, LogQuery, Plan, State};

use super::session::Invocation;

/// How long one request waits for a line.
const WAIT_MS: u64 = 1_000;
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Requests new lines only. It means the last byte of a log, which ends a line.
const FROM_END: i64 = -1;

/// Reads the log of the run in progress.
pub(super) struct LogTail<'s> {
    session: &'s Invocation,
    place: RefCell<Option<Place>>,
}

#[derive(Clone, PartialEq, Eq)]
struct Place {
    run: String,
    offset: i64,
}

impl<'s> LogTail<'s> {
    pub(super) fn new(session: &'s Invocation) -> Self {
        Self { session, place: RefCell::new(None) }
    }

    /// Starts at the end of the log of a run in progress.
    pub(super) fn join(&self, plan: &Plan) {
        let run = plan.run.clone().filter(|_| plan.state == State::Processing);
        if let Some(run) = run.filter(|_| self.place.borrow().is_none()) {
            self.place.replace(Some(Place { run, offset: FROM_END }));
        }
    }

    /// Switches to the log of a run that was started.
    pub(super) fn notice(&self, event: &Event) {
        if event.kind == "plan.started" {
            self.place.replace(event.run.clone().map(|run| Place { run, offset: 0 }));
        }
    }

    /// Waits for the next lines and returns them. Cancel safe: dropping the future loses no line.
    pub(super) async fn next(&self, plan: &str) -> Vec<LogLine> {
        let Some(place) = self.place.borrow().clone() else { return std::future::pending().await };
        match self.read(plan, place, WAIT_MS).await {
            Some(lines) if !lines.is_empty() => lines,
            _ => {
                tokio::time::sleep(LOOK_AGAIN / 10).await;
                Vec::new()
            }
        }
    }

    /// Returns the lines available now.
    pub(super) async fn rest(&self, plan: &str) -> Vec<LogLine> {
        let mut lines = Vec::new();
        loop {
            let Some(place) = self.place.borrow().clone() else { return lines };
            match self.read(plan, place, 0).await {
                Some(more) if !more.is_empty() => lines.extend(more),
                _ => return lines,
            }
        }
    }

    async fn read(&self, plan: &str, place: Place, wait_ms: u64) -> Option<Vec<LogLine>> {
        let query = LogQuery {
            run: Some(place.run.clone()),
            offset: Some(place.offset),
            wait_ms: (wait_ms > 0).then_some(wait_ms),
        };
        let page = self.session.client().plan_log(plan, &query).await.ok()?;
        let next = Place { offset: i64::try_from(page.next).unwrap_or(i64::MAX), ..place.clone() };
        // Another run may have started during the request.
        if self.place.borrow().as_ref() == Some(&place) {
            self.place.replace(Some(next));
        }
        Some(page.lines)
    }
}
