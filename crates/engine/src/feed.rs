//! Follows the feed. One task per process reads new events for all followers and keeps the newest in memory,
//! ready to send. A follower that is further behind reads from the store until it has caught up. A follower's
//! only state is its position, so a slow one needs no memory, and one that reconnects misses no events.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, Once, PoisonError};
use std::time::Duration;

use drydock_domain::{PlanId, StoredEvent, error_chain};
use drydock_store::{EventFilter, StoreError};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::hook::Pattern;
use crate::task;

/// The limits of the events in memory, as a count and in bytes.
const READY_MAX: usize = 1024;
const READY_BYTES_MAX: usize = 16 * 1024 * 1024;
/// How many events are read at a time, and how many a filtered read scans before it returns its position.
const PAGE: i64 = 200;
const SCAN_MAX: i64 = 5_000;
/// How many bytes of events a follower gets at a time; a single event may be larger.
const BATCH_BYTES_MAX: usize = 256 * 1024;
/// How long the reader waits without a wake before it polls, and how long it waits after a failure.
const IDLE_MAX: Duration = Duration::from_secs(5);
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// How long a page request waits if its position is beyond the end of the feed. The delay limits the rate of
/// clients that ignore `ends_at`.
const BEYOND_WAIT: Duration = Duration::from_secs(1);

/// An event and its JSON.
#[derive(Debug)]
pub struct EncodedEvent {
    /// The event.
    pub event: StoredEvent,
    /// The event as JSON, in the form that every interface uses.
    pub json: String,
}

/// The filter of a follower.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FeedFilter {
    /// Only events of this plan.
    pub plan: Option<PlanId>,
    /// Only events of these kinds.
    pub kinds: Option<Pattern>,
}

/// A page of events, and the position of the next page.
#[derive(Debug, Clone, PartialEq)]
pub struct EventPage {
    /// The events, oldest first.
    pub events: Vec<StoredEvent>,
    /// The position to continue after, if there may be more events now.
    pub next: Option<i64>,
    /// The end of the feed, if the requested position is beyond it.
    pub ends_at: Option<i64>,
}

/// The newest events of the feed, for all followers in this process.
#[derive(Debug)]
pub(crate) struct Feed {
    ready: Mutex<Ready>,
    /// The newest event that was read; `None` until the first read.
    newest: watch::Sender<Option<i64>>,
    begun: Once,
}

/// Consecutive events without gaps, the newest last.
#[derive(Debug, Default)]
struct Ready {
    events: VecDeque<Arc<EncodedEvent>>,
    bytes: usize,
}

/// Reads the feed from a position.
pub struct Follower {
    engine: Engine,
    interest: FeedFilter,
    after: i64,
    newest: watch::Receiver<Option<i64>>,
}

/// The result of one call to a follower.
#[derive(Debug)]
pub enum FeedBatch {
    /// New events, in order.
    Events(Vec<Arc<EncodedEvent>>),
    /// No event arrived within the limit.
    Quiet,
    /// This process is stopping.
    Over,
}

impl FeedFilter {
    fn includes(&self, event: &StoredEvent) -> bool {
        self.plan.as_ref().is_none_or(|plan| event.plan.as_ref() == Some(plan))
            && self.kinds.as_ref().is_none_or(|kinds| kinds.means(&event.kind))
    }
}

impl Engine {
    /// Follows the feed from after an event. Events that were committed before the call are included.
    pub fn follow(&self, after: i64, interest: FeedFilter) -> Follower {
        self.feed().begun.call_once(|| self.begin_feed());
        Follower { engine: self.clone(), interest, after, newest: self.feed().newest.subscribe() }
    }

    /// Returns the end of the feed if the position is beyond it. A caller with such a position has read
    /// another feed, such as the one before a backup was restored, and would miss all new events.
    pub async fn feed_end_before(&self, after: i64) -> Result<Option<i64>, EngineError> {
        // Position 0 is valid in every feed.
        if after <= 0 {
            return Ok(None);
        }
        let newest = self.store().event_newest().await?;
        Ok((after > newest).then_some(newest))
    }

    /// Returns at most `limit` events after a position. Waits for the first one up to `wait`.
    pub async fn events_page(
        &self,
        after: i64,
        interest: &FeedFilter,
        limit: i64,
        wait: Duration,
    ) -> Result<EventPage, EngineError> {
        let began = Instant::now();
        let mut deadline = began + wait;
        // Subscribe before reading: an event that is committed in between wakes this loop.
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

    /// Reads until there are enough events, no more events, or too many of other kinds.
    async fn scan(&self, after: i64, interest: &FeedFilter, limit: i64) -> Result<EventPage, StoreError> {
        // One more event than requested shows whether there are more.
        let size = if interest.kinds.is_none() { limit + 1 } else { PAGE.max(limit + 1) };
        let (mut from, mut events) = (after, Vec::new());
        loop {
            let filter = EventFilter { after: from, plan: interest.plan.clone(), limit: size };
            let page = self.store().event_list(&filter).await?;
            let (length, last) = (page.len() as i64, page.last().map_or(from, |event| event.seq));
            for event in page.into_iter().filter(|event| interest.includes(event)) {
                if events.len() as i64 == limit {
                    let next = events.last().map(|event: &StoredEvent| event.seq);
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
            // Reads on SQLite never suspend, so yield the thread to other tasks.
            tokio::task::yield_now().await;
        }
    }

    /// Starts the task that reads for all followers. It ends with the engine; if the reader fails or panics,
    /// it is restarted.
    fn begin_feed(&self) {
        let engine = self.clone();
        let reading = task::start("feed", async move {
            while !engine.stopping().is_cancelled() {
                let reader = engine.clone();
                match task::start("feed reader", async move { reader.read_feed().await }).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(error = %error_chain(&error), "could not read the feed"),
                    Err(error) => {
                        tracing::error!(error = %error_chain(&error), "the reader of the feed panicked")
                    }
                }
                tokio::select! {
                    () = tokio::time::sleep(RETRY_AFTER) => {}
                    () = engine.stopping().cancelled() => {}
                }
            }
        });
        // The task is not joined: it ends by the token that it watches, and followers watch the same token.
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

    fn shown(&self, event: StoredEvent) -> Arc<EncodedEvent> {
        let json = (self.settings().hooks.shape)(event.clone()).to_string();
        Arc::new(EncodedEvent { event, json })
    }
}

impl Feed {
    pub(crate) fn new() -> Self {
        Self { ready: Mutex::default(), newest: watch::Sender::new(None), begun: Once::new() }
    }

    fn add(&self, shown: Vec<Arc<EncodedEvent>>) {
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

    /// Returns events in memory after a position, up to the batch size. Returns `None` if the position is
    /// older than the events in memory.
    fn behind(&self, after: i64) -> Option<Vec<Arc<EncodedEvent>>> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let first = ready.events.front()?.event.seq;
        let skipped = usize::try_from(after.saturating_add(1).saturating_sub(first)).ok()?;
        let mut bytes = 0;
        let enough = |one: &&Arc<EncodedEvent>| {
            let fits = bytes < BATCH_BYTES_MAX;
            bytes += one.json.len();
            fits
        };
        Some(ready.events.iter().skip(skipped).take_while(enough).map(Arc::clone).collect())
    }
}

impl Follower {
    /// Returns the next events, and waits for them up to `limit`. Cancel safe: dropping the future loses no
    /// events.
    pub async fn next(&mut self, limit: Duration) -> Result<FeedBatch, EngineError> {
        let deadline = Instant::now() + limit;
        loop {
            if self.engine.stopping().is_cancelled() {
                return Ok(FeedBatch::Over);
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
                return Ok(FeedBatch::Events(wanted));
            }
            if moved {
                tokio::task::yield_now().await;
                continue;
            }
            tokio::select! {
                changed = self.newest.changed() => {
                    changed.expect("the engine, which this follower holds, owns the sender");
                }
                () = self.engine.stopping().cancelled() => {}
                () = tokio::time::sleep_until(deadline) => return Ok(FeedBatch::Quiet),
            }
        }
    }

    /// Reads events that are no longer in memory from the store, and returns the position reached. `newest`
    /// must have been read before this call.
    async fn page(&self, newest: Option<i64>) -> Result<(Vec<Arc<EncodedEvent>>, i64), EngineError> {
        let filter = EventFilter { after: self.after, plan: self.interest.plan.clone(), limit: PAGE };
        let page = self.engine.store().event_list(&filter).await?;
        let shown: Vec<_> = page.into_iter().map(|event| self.engine.shown(event)).collect();
        let reached = match shown.last() {
            Some(last) => last.event.seq,
            // The plan has no events up to the event that was then the newest of the feed.
            None => newest.unwrap_or(self.after),
        };
        Ok((shown, reached))
    }
}
