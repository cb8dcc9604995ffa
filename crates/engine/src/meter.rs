//! What this process has counted of its own work, for whoever measures it: transitions, and how long each commit took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drydock_store::CommitError;

/// The upper ends of the classes of commit times, in microseconds.
const ENDS_US: [u64; 10] = [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// What came of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is recorded.
    Committed,
    /// The plan does not take it.
    Refused,
    /// It could not be judged or recorded: the lock was lost, or the store failed.
    Failed,
}

impl Outcome {
    pub(crate) fn of<T>(committed: &Result<T, CommitError>) -> Self {
        match committed {
            Ok(_) => Self::Committed,
            Err(CommitError::Refused(_)) => Self::Refused,
            Err(
                CommitError::LeaseLost { .. }
                | CommitError::ProjectLockMissing
                | CommitError::PlanMissing(_)
                | CommitError::PlanExists(_)
                | CommitError::Store(_),
            ) => Self::Failed,
        }
    }

    /// Returns the name that metrics and traces have for it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// Counts of one process since it began.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    committed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    spent_us: AtomicU64,
    classes: [AtomicU64; ENDS_US.len()],
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metered {
    /// Transitions that were committed.
    pub committed: u64,
    /// Commands that were refused.
    pub refused: u64,
    /// Commands that could not be judged or recorded.
    pub failed: u64,
    /// How long all commits took together.
    pub spent: Duration,
    /// For each upper end, how many commits took as long or less.
    pub within: Vec<(Duration, u64)>,
}

impl Meter {
    /// Counts a command, and if it was committed, how long that took.
    pub(crate) fn count(&self, outcome: Outcome, took: Duration) {
        match outcome {
            Outcome::Committed => self.committed(took),
            Outcome::Refused => _ = self.refused.fetch_add(1, Ordering::Relaxed),
            Outcome::Failed => _ = self.failed.fetch_add(1, Ordering::Relaxed),
        }
    }

    fn committed(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.spent_us.fetch_add(took, Ordering::Relaxed);
        if let Some(class) = ENDS_US.iter().position(|end| took <= *end) {
            self.classes[class].fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Metered {
        let mut so_far = 0;
        let within = ENDS_US.iter().zip(&self.classes).map(|(end, class)| {
            so_far += class.load(Ordering::Relaxed);
            (Duration::from_micros(*end), so_far)
        });
        Metered {
            within: within.collect(),
            committed: self.committed.load(Ordering::Relaxed),
            refused: self.refused.load(Ordering::Relaxed),
            failed: self.failed.load(Ordering::Relaxed),
            spent: Duration::from_micros(self.spent_us.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use drydock_domain::Refusal;
    use drydock_store::StoreError;

    use super::*;

    #[test]
    fn each_class_has_all_that_are_shorter() {
        let meter = Meter::default();
        for took in [100, 300, 900, 60_000_000] {
            meter.count(Outcome::Committed, Duration::from_micros(took));
        }
        let read = meter.read();
        let counts: Vec<_> = read.within.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
    }

    /// Breaks when a store that fails looks like somebody who asks for what cannot be.
    #[test]
    fn a_failure_is_not_counted_as_a_refusal() {
        let meter = Meter::default();
        for committed in [
            Ok(()),
            Err(CommitError::Refused(Refusal::NothingChanged)),
            Err(CommitError::ProjectLockMissing),
            Err(CommitError::Store(StoreError::Injected)),
        ] {
            meter.count(Outcome::of(&committed), Duration::ZERO);
        }
        let read = meter.read();
        assert_eq!((read.committed, read.refused, read.failed), (1, 1, 2));
    }
}
