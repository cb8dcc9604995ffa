//! Following the feed. However many follow it in this process, one task reads what is new and keeps the newest events
//! ready to be sent; a follower that is further behind reads from the store until it has caught up. A follower keeps
//! nothing but its place, so one that is slow costs nothing, and one that comes back misses nothing.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use drydock_domain::{PlanId, Recorded, told};
use drydock_store::{EventFilter, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::hook::Pattern;
use crate::task;

/// How many of the newest events are kept ready, and how much text.
const READY_MAX: usize = 1024;
const READY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many events are read at a time, and how many a look for a kind passes before it says how far it came.
const PAGE: i64 = 200;
const SCAN_MAX: i64 = 5_000;
/// How much text a follower is handed at a time; one event may be more.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// How long to wait for news that nobody told of, and after a failure.
const IDLE_MAX: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a reader of a page waits whose place is beyond the end: long enough that one who does not heed it asks seldom.
const BEYOND_WAIT: Duration = Duration::from_secs(1);

/// An event, and how it is shown to others.
#[derive(Debug)]
pub struct Shown {
    /// The event.
    pub event: Recorded,
    /// The event as JSON, in the shape that it has everywhere.
    pub json: String,
}

/// Which events are followed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Interest {
    /// Only those of this plan.
    pub plan: Option<PlanId>,
    /// Only those of these kinds.
    pub kinds: Option<Pattern>,
}

/// A page of events, and where to read on.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<Recorded>,
    /// The place to read on after, when there may be more now.
    pub next: Option<i64>,
    /// Where the feed ends, when the place that was asked about is beyond that.
    pub ends_at: Option<i64>,
}

/// The newest events of the feed, for all who follow it in this process.
#[derive(Debug)]
pub(crate) struct Feed {
    ready: Mutex<Ready>,
    /// The newest event that was seen; none until the first look.
    newest: watch::Sender<Option<i64>>,
    begun: Once,
}

/// Events with nothing missing between them, the newest last.
#[derive(Debug, Default)]
struct Ready {
    events: VecDeque<Arc<Shown>>,
    bytes: usize,
}

/// Somebody who follows the feed from a place.
pub struct Follower {
    engine: Engine,
    interest: Interest,
    after: i64,
    newest: watch::Receiver<Option<i64>>,
}

/// What a follower was handed.
#[derive(Debug)]
pub enum News {
    /// What happened, in order.
    Events(Vec<Arc<Shown>>),
    /// Nothing happened for as long as it would wait.
    Quiet,
    /// This process is stopping.
    Over,
}

impl Interest {
    fn includes(&self, event: &Recorded) -> bool {
        self.plan.as_ref().is_none_or(|plan| event.plan.as_ref() == Some(plan))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.means(&event.kind))
    }
}

impl Engine {
    /// Follows the feed from behind an event. What was committed before the call is told too.
    pub fn follow(&self, after: i64, interest: Interest) -> Follower {
        self.feed().begun.call_once(|| self.begin_feed());
        Follower { engine: self.clone(), interest, after, newest: self.feed().newest.subscribe() }
    }

    /// Returns where the feed ends, when a place is beyond that: whoever comes with it read another feed, such as the one before
    /// a backup was restored, and would miss all that comes.
    pub async fn feed_end_before(&self, after: i64) -> Result<Option<i64>, EngineError> {
        // The first place is in every feed.
        if after <= 0 {
            return Ok(None);
        }
        let newest = self.store().event_newest().await?;
        Ok((after > newest).then_some(newest))
    }

    /// Returns events behind a place in the feed, at most `limit`. Waits for one up to `wait`.
    pub async fn events_page(
        &self,
        after: i64,
        interest: &Interest,
        limit: i64,
        wait: Duration,
    ) -> Result<EventPage, EngineError> {
        let began = Instant::now();
        let mut deadline = began + wait;
        // Watching before looking: what is committed in between wakes us.
        let mut watch = self.store().watch();
        let mut from = after;
        loop {
            let mut page = self.scan(from, interest, limit).await?;
            if page.events.is_empty() && page.next.is_none() {
                page.ends_at = self.feed_end_before(after).await?;
            }
            if page.ends_at.is_some() {
                deadline = deadline.min(began + BEYOND_WAIT);
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let stopping = self.stopping().is_cancelled();
            if !page.events.is_empty() || page.next.is_some() || left.is_zero() || stopping {
                return Ok(page);
            }
            from = after;
            tokio::select! {
                () = watch.changed(left) => {}
                () = self.stopping().cancelled() => {}
            }
        }
    }

    /// Reads on until there are enough events, there are no more, or too many were of other kinds.
    async fn scan(&self, after: i64, interest: &Interest, limit: i64) -> Result<EventPage, StoreError> {
        // One more than asked for tells whether there is more.
        let size = if interest.kinds.is_none() { limit + 1 } else { PAGE.max(limit + 1) };
        let (mut from, mut events) = (after, Vec::new());
        loop {
            let filter = EventFilter { after: from, plan: interest.plan.clone(), limit: size };
            let page = self.store().event_list(&filter).await?;
            let (length, last) = (page.len() as i64, page.last().map_or(from, |event| event.seq));
            for event in page.into_iter().filter(|event| interest.includes(event)) {
                if events.len() as i64 == limit {
                    let next = events.last().map(|event: &Recorded| event.seq);
                    return Ok(EventPage { events, next, ends_at: None });
                }
                events.push(event);
            }
            if length < size {
                return Ok(EventPage { events, next: None, ends_at: None });
            }
            from = last;
            if from.saturating_sub(after) >= SCAN_MAX {
                return Ok(EventPage { events, next: Some(from), ends_at: None });
            }
            // A look on SQLite waits for nothing, and others want this thread too.
            tokio::task::yield_now().await;
        }
    }

    /// Starts the task that reads for everybody. It ends with the engine, and one that ended badly is replaced.
    fn begin_feed(&self) {
        let engine = self.clone();
        let reading = task::start("feed", async move {
            while !engine.stopping().is_cancelled() {
                let reader = engine.clone();
                match task::start("feed's reader", async move { reader.read_feed().await }).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(error = %told(&error), "could not read the feed"),
                    Err(error) => {
                        tracing::error!(error = %told(&error), "the reader of the feed ended badly")
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                    () = engine.stopping().cancelled() => {}
                }
            }
        });
        // Nobody waits for it: it ends by the token that it watches, and followers watch the same one.
        drop(reading);
    }

    async fn read_feed(&self) -> Result<(), StoreError> {
        let mut watch = self.store().watch();
        let known = *self.feed().newest.borrow();
        let mut after = match known {
            Some(known) => known,
            None => self.store().event_newest().await?,
        };
        self.feed().newest.send_replace(Some(after));
        while !self.stopping().is_cancelled() {
            let page = self.store().event_list(&EventFilter { after, plan: None, limit: PAGE }).await?;
            if let Some(last) = page.last().map(|event| event.seq) {
                after = last;
                let shown: Vec<_> = page.into_iter().map(|event| self.shown(event)).collect();
                self.feed().add(shown);
                self.feed().newest.send_replace(Some(after));
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                () = watch.changed(IDLE_MAX) => {}
                () = self.stopping().cancelled() => {}
            }
        }
        Ok(())
    }

    fn shown(&self, event: Recorded) -> Arc<Shown> {
        let json = (self.settings().hooks.shape)(event.clone()).to_string();
        Arc::new(Shown { event, json })
    }
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self { ready: Mutex::default(), newest: watch::Sender::new(None), begun: Once::new() }
    }

    fn add(&self, shown: Vec<Arc<Shown>>) {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        for one in shown {
            ready.bytes += one.json.len();
            ready.events.push_back(one);
        }
        while ready.events.len() > READY_MAX || ready.bytes > READY_BYTES_MAX {
            let Some(oldest) = ready.events.pop_front() else { break };
            ready.bytes -= oldest.json.len();
        }
    }

    /// Returns the ready events behind a place, some of them when they are many; none when the place is too far back.
    fn behind(&self, after: i64) -> Option<Vec<Arc<Shown>>> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ready.events.front()?.event.seq;
        let skipped = usize::try_from(after.saturating_add(1).saturating_sub(first)).ok()?;
        let mut bytes = 0;
        let enough = |one: &&Arc<Shown>| {
            let fits = bytes < BATCH_BYTES_MAX;
            bytes += one.json.len();
            fits
        };
        Some(ready.events.iter().skip(skipped).take_while(enough).map(Arc::clone).collect())
    }
}

impl Follower {
    /// Returns what comes next, waiting up to `limit` for it. Dropping the call loses nothing.
    pub async fn next(&mut self, limit: Duration) -> Result<News, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            if self.engine.stopping().is_cancelled() {
                return Ok(News::Over);
            }
            let newest = *self.newest.borrow_and_update();
            let (batch, reached) = match self.engine.feed().behind(self.after) {
                Some(batch) => {
                    let reached = batch.last().map_or(self.after, |last| last.event.seq);
                    (batch, reached)
                }
                None if newest.is_some_and(|newest| self.after >= newest) => (Vec::new(), self.after),
                None => self.page(newest).await?,
            };
            let moved = reached > self.after;
            self.after = self.after.max(reached);
            let wanted: Vec<_> = batch.into_iter().filter(|one| self.interest.includes(&one.event)).collect();
            if !wanted.is_empty() {
                return Ok(News::Events(wanted));
            }
            if moved {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => {
                    changed.expect("the engine that this follower holds owns the other end");
                }
                () = self.engine.stopping().cancelled() => {}
                () = tokio::time::sleep_until(deadline) => return Ok(News::Quiet),
            }
        }
    }

    /// Reads from the store what is no longer ready, and says how far that goes. `newest` was seen before the read.
    async fn page(&self, newest: Option<i64>) -> Result<(Vec<Arc<Shown>>, i64), EngineError> {
        let filter = EventFilter { after: self.after, plan: self.interest.plan.clone(), limit: PAGE };
        let page = self.engine.store().event_list(&filter).await?;
        let shown: Vec<_> = page.into_iter().map(|event| self.engine.shown(event)).collect();
        let reached = match shown.last() {
            Some(last) => last.event.seq,
            // Of the plan there is nothing up to what was the newest event of all.
            None => newest.unwrap_or(self.after),
        };
        Ok((shown, reached))
    }
}
