//! Points inside a commit where a test can crash the process or fail the transaction. Only plan writes
//! (`plan_create`, `plan_transact`) reach them, so that a fault cannot hit the acquisition of the lease
//! before the commit.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Options, StoreError};

/// A point inside the commit of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The transaction has started.
    AfterBegin,
    /// The lock rows were compared.
    AfterLockCheck,
    /// The plan row was written.
    AfterPlan,
    /// The events were appended.
    AfterEvents,
    /// The decisions were opened and closed.
    AfterDecisions,
    /// The changesets were sealed.
    AfterChangesets,
    /// The outbox was written.
    AfterOutbox,
    /// Everything is written, nothing is committed.
    BeforeCommit,
    /// Everything is committed, no watcher is woken yet.
    AfterCommit,
}

impl CrashPoint {
    /// Returns every point, in the order in which a commit reaches them.
    pub fn all() -> [CrashPoint; 9] {
        [
            CrashPoint::AfterBegin,
            CrashPoint::AfterLockCheck,
            CrashPoint::AfterPlan,
            CrashPoint::AfterEvents,
            CrashPoint::AfterDecisions,
            CrashPoint::AfterChangesets,
            CrashPoint::AfterOutbox,
            CrashPoint::BeforeCommit,
            CrashPoint::AfterCommit,
        ]
    }

    /// Returns the name that [`FromStr`] parses.
    pub fn name(self) -> &'static str {
        match self {
            CrashPoint::AfterBegin => "after_begin",
            CrashPoint::AfterLockCheck => "after_lock_check",
            CrashPoint::AfterPlan => "after_plan",
            CrashPoint::AfterEvents => "after_events",
            CrashPoint::AfterDecisions => "after_decisions",
            CrashPoint::AfterChangesets => "after_changesets",
            CrashPoint::AfterOutbox => "after_outbox",
            CrashPoint::BeforeCommit => "before_commit",
            CrashPoint::AfterCommit => "after_commit",
        }
    }
}

impl fmt::Display for CrashPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Returned when a text is not the name of a crash point.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a crash point")]
pub struct UnknownPoint(String);

impl FromStr for CrashPoint {
    type Err = UnknownPoint;

    fn from_str(text: &str) -> Result<Self, UnknownPoint> {
        let found = CrashPoint::all().into_iter().find(|point| point.name() == text);
        found.ok_or_else(|| UnknownPoint(text.to_owned()))
    }
}

/// The faults that a test requested. Clones share the count of transitions to spare.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults {
    crash_at: Option<CrashPoint>,
    fail_at: Option<CrashPoint>,
    spared: Arc<AtomicU32>,
}

impl Faults {
    pub(crate) fn new(options: &Options) -> Self {
        let spared = Arc::new(AtomicU32::new(options.spared));
        Self { crash_at: options.crash_at, fail_at: options.fail_at, spared }
    }

    /// Counts a transition. Returns true if a fault was requested for it, so that its steps must run one at a
    /// time.
    pub(crate) fn arm(&self) -> bool {
        let asked = self.crash_at.is_some() || self.fail_at.is_some();
        let less = |left: u32| left.checked_sub(1);
        asked && self.spared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Crashes or fails if a test requested it at this point.
    pub(crate) fn hit(&self, point: CrashPoint) -> Result<(), StoreError> {
        if self.crash_at == Some(point) {
            std::process::abort();
        }
        if self.fail_at == Some(point) { Err(StoreError::Injected) } else { Ok(()) }
    }
}
