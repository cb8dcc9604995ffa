//! What this process has counted of its own work, for whoever measures it: transitions, and how long each commit took.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper ends of the classes of commit times, in microseconds.
const ENDS_US: [u64; 10] = [250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 100_000, 500_000, 2_500_000];

/// Counts of one process since it began.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    committed: AtomicU64,
    refused: AtomicU64,
    spent_us: AtomicU64,
    classes: [AtomicU64; ENDS_US.len()],
}

/// What was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metered {
    /// Transitions that were committed.
    pub committed: u64,
    /// Commands that were refused, or failed.
    pub refused: u64,
    /// How long all commits took together.
    pub spent: Duration,
    /// For each upper end, how many commits took as long or less.
    pub within: Vec<(Duration, u64)>,
}

impl Meter {
    /// Counts a commit that took this long.
    pub(crate) fn committed(&self, took: Duration) {
        let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.committed.fetch_add(1, Ordering::Relaxed);
        self.spent_us.fetch_add(took, Ordering::Relaxed);
        if let Some(class) = ENDS_US.iter().position(|end| took <= *end) {
            self.classes[class].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a command that came to nothing.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
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
            spent: Duration::from_micros(self.spent_us.load(Ordering::Relaxed)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_class_has_all_that_are_shorter() {
        let meter = Meter::default();
        for took in [100, 300, 900, 60_000_000] {
            meter.committed(Duration::from_micros(took));
        }
        meter.refused();
        let read = meter.read();
        assert_eq!((read.committed, read.refused), (4, 1));
        let counts: Vec<_> = read.within.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts, [1, 2, 3, 3, 3, 3, 3, 3, 3, 3]);
    }
}
