//! The limits of a capture: limits on the files it reads, a deadline, and a stop that the caller can request
//! while it runs.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use crate::error::GitError;
use crate::run::LIMIT_FILES;

/// How often a wait checks for a stop request.
const LOOK: Duration = Duration::from_millis(50);
/// How long a capture may continue after a stop request: enough to capture ordinary work.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Size limits of a capture. Only files that differ from the base count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CaptureBounds {
    /// Maximum size of one file in bytes.
    pub file_max: u64,
    /// Maximum size of all files together in bytes.
    pub total_max: u64,
    /// Maximum number of files.
    pub files_max: u64,
}

impl Default for CaptureBounds {
    fn default() -> Self {
        Self { file_max: 1 << 30, total_max: 4 << 30, files_max: 100_000 }
    }
}

/// Reports whether a stop was requested.
#[derive(Clone)]
pub struct StopSignal(Arc<dyn Fn() -> bool + Send + Sync>);

impl StopSignal {
    /// Creates a signal from a function, which must return quickly.
    pub fn new(asked: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(asked))
    }
}

impl fmt::Debug for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StopSignal")
    }
}

/// Settings of all captures of a checkout.
#[derive(Debug, Clone)]
pub(crate) struct CaptureTerms {
    pub(crate) bounds: CaptureBounds,
    pub(crate) stop: Option<StopSignal>,
    limit: Duration,
    grace: Duration,
}

impl Default for CaptureTerms {
    fn default() -> Self {
        Self { bounds: CaptureBounds::default(), stop: None, limit: LIMIT_FILES, grace: STOP_GRACE }
    }
}

impl CaptureTerms {
    /// Returns the settings of an optional capture: it ends at the limit, and immediately on a stop request.
    pub(crate) fn within(&self, limit: Duration) -> CaptureTerms {
        CaptureTerms { limit, grace: Duration::ZERO, ..self.clone() }
    }

    /// Starts the clock of one capture.
    pub(crate) fn patience(&self) -> Patience {
        let Self { stop, limit, grace, .. } = self.clone();
        Patience { begun: Instant::now(), limit, stop, grace, asked: Arc::default() }
    }
}

/// The time left for an operation.
#[derive(Debug, Clone)]
pub(crate) struct Patience {
    begun: Instant,
    limit: Duration,
    stop: Option<StopSignal>,
    grace: Duration,
    /// When the stop request was first seen.
    asked: Arc<OnceLock<Instant>>,
}

/// Why no time is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Over {
    TimedOut { limit: Duration },
    Stopped,
}

impl Patience {
    /// Starts a time limit without a stop signal.
    pub(crate) fn of(limit: Duration) -> Patience {
        Patience { begun: Instant::now(), limit, stop: None, grace: Duration::ZERO, asked: Arc::default() }
    }

    pub(crate) fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns how long to wait until the next check, or why the wait is over.
    pub(crate) fn next_wait(&self) -> Result<Duration, Over> {
        let now = Instant::now();
        let left = (self.begun + self.limit).saturating_duration_since(now);
        if left.is_zero() {
            return Err(Over::TimedOut { limit: self.limit });
        }
        let Some(StopSignal(is_asked)) = &self.stop else { return Ok(left) };
        if is_asked() {
            let asked = *self.asked.get_or_init(|| now);
            if now.saturating_duration_since(asked) >= self.grace {
                return Err(Over::Stopped);
            }
        }
        Ok(left.min(LOOK))
    }
}

impl Over {
    pub(crate) fn named(self, attempt: &str) -> GitError {
        let attempt = attempt.to_owned();
        match self {
            Over::TimedOut { limit } => GitError::TimedOut { attempt, limit_s: limit.as_secs() },
            Over::Stopped => GitError::Stopped { attempt },
        }
    }
}
