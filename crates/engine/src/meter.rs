//! Metrics of this process: how many commands were committed, refused or failed, and how long each commit
//! took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drydock_store::CommitError;

/// The upper bounds of the histogram buckets for commit times, in microseconds.
const ENDS_US: [u64; 10] = [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// The outcome of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandOutcome {
    /// The transition is stored.
    Committed,
    /// The plan does not accept the command.
    Refused,
    /// The command could not be decided or stored: the lock was lost, or the store failed.
    Failed,
}

impl CommandOutcome {
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

    /// Returns the name used in metrics and traces.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Committed => "committed",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The counters of this process since it started.
#[derive(Debug, Default)]
pub(crate) struct CommitMetrics {
    committed: AtomicU64,
    refused: AtomicU64,
    failed: AtomicU64,
    spent_us: AtomicU64,
    classes: [AtomicU64; ENDS_US.len()],
}

/// The values of the counters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitStats {
    /// How many transitions were committed.
    pub committed: u64,
    /// How many commands were refused.
    pub refused: u64,
    /// How many commands could not be decided or stored.
    pub failed: u64,
    /// The total duration of all commits.
    pub spent: Duration,
    /// For each upper bound, the number of commits that took at most that long.
    pub within: Vec<(Duration, u64)>,
}

impl CommitMetrics {
    /// Counts a command and, if it was committed, the duration of the commit.
    pub(crate) fn count(&self, outcome: CommandOutcome, took: Duration) {
        match outcome {
            CommandOutcome::Committed => self.committed(took),
            CommandOutcome::Refused => _ = self.refused.fetch_add(1, Ordering::Relaxed),
            CommandOutcome::Failed => _ = self.failed.fetch_add(1, Ordering::Relaxed),
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

    pub(crate) fn read(&self) -> CommitStats {
        let mut so_far = 0;
        let within = ENDS_US.iter().zip(&self.classes).map(|(end, class)| {
            so_far += class.load(Ordering::Relaxed);
            (Duration::from_micros(*end), so_far)
        });
        CommitStats {
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
        let meter = CommitMetrics::default();
        for took in [100, 300, 900, 60_000_000] {
            meter.count(CommandOutcome::Committed, Duration::from_micros(took));
        }
        let read = meter.read();
        let counts: Vec<_> = read.within.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
    }

    /// Breaks when a failure of the store looks like a caller's request that the plan refuses.
    #[test]
    fn a_failure_is_not_counted_as_a_refusal() {
        let meter = CommitMetrics::default();
        for committed in [
            Ok(()),
            Err(CommitError::Refused(Refusal::NothingChanged)),
            Err(CommitError::ProjectLockMissing),
            Err(CommitError::Store(StoreError::Injected)),
        ] {
            meter.count(CommandOutcome::of(&committed), Duration::ZERO);
        }
        let read = meter.read();
        assert_eq!((read.committed, read.refused, read.failed), (1, 1, 2));
    }
}
