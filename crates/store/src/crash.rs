//! Places inside a commit where a test can let the process die or the transaction fail. They are hit only by what
//! writes a plan (`plan_create`, `plan_transact`), so a fault never hides behind the lease that comes before it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Options, StoreError};

/// A place inside the commit of a transition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPoint {
    /// The transaction has begun.
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
    /// All is written, nothing is committed.
    BeforeCommit,
    /// All is committed, nobody was told.
    AfterCommit,
}

impl CrashPoint {
    /// Returns every point, in the order a commit passes them.
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

    /// Returns the name it is parsed from.
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

/// A name that no crash point has.
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

/// The faults that a test asked for. Clones share the count of transitions that pass unharmed.
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

    /// Says whether the steps of the transition that begins now must be taken one at a time.
    pub(crate) fn arm(&self) -> bool {
        let asked = self.crash_at.is_some() || self.fail_at.is_some();
        let less = |left: u32| left.checked_sub(1);
        asked && self.spared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }

    /// Dies or fails when a test asked for it here.
    pub(crate) fn hit(&self, point: CrashPoint) -> Result<(), StoreError> {
        if self.crash_at == Some(point) {
            std::process::abort();
        }
        if self.fail_at == Some(point) { Err(StoreError::Injected) } else { Ok(()) }
    }
}
