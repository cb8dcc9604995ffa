//! Wakes tasks that wait for a change of the store. A wake carries no data: the woken task reads the feed.

use std::sync::Arc;
use std::time::Duration;

use drydock_domain::error_chain;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use crate::store::{ChangeSource, StoreInner};

/// Polling interval for commits of other processes on SQLite; one poll takes about a microsecond.
const POLL_EVERY: Duration = Duration::from_millis(20);

/// Notifies the watchers after every detected commit.
#[derive(Debug, Clone)]
pub(crate) struct Notifier {
    rung: Arc<watch::Sender<u64>>,
}

impl Notifier {
    pub(crate) fn new() -> Self {
        Self { rung: Arc::new(watch::Sender::new(0)) }
    }

    pub(crate) fn notify(&self) {
        self.rung.send_modify(|count| *count = count.wrapping_add(1));
    }

    pub(crate) fn listen(&self) -> watch::Receiver<u64> {
        self.rung.subscribe()
    }

    /// Returns true if there is a watcher.
    pub(crate) fn is_heard(&self) -> bool {
        self.rung.receiver_count() > 0
    }
}

/// Waits for commits of this process or any other.
#[derive(Debug)]
pub struct Watch {
    store: Arc<StoreInner>,
    heard: watch::Receiver<u64>,
}

impl Watch {
    pub(crate) fn new(store: Arc<StoreInner>) -> Self {
        // Polls now, so that earlier commits of other processes do not count as a change later.
        notice(&store);
        let heard = store.bell().listen();
        Self { store, heard }
    }

    /// Returns when something was committed since the last return, or after `limit`. May return early.
    pub async fn changed(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        match self.store.reach() {
            ChangeSource::Told => {
                timeout_at(deadline, self.heard.changed()).await.ok();
            }
            ChangeSource::Polled => loop {
                let next = deadline.min(Instant::now() + POLL_EVERY);
                tokio::select! {
                    biased;
                    _ = self.heard.changed() => return,
                    () = sleep_until(next) => notice(&self.store),
                }
                if Instant::now() >= deadline {
                    // The last poll may have detected a commit, which this return reports.
                    self.heard.mark_unchanged();
                    return;
                }
            },
        }
    }
}

fn notice(store: &StoreInner) {
    if let Err(error) = store.notice() {
        tracing::warn!(error = %error_chain(&error), "could not poll for changes of other processes");
    }
}
