//! Which failures may pass by themselves and which would only be repeated: the one place that tells them apart. Whether
//! something is then tried again is a rule's business, and a rate limit's is the plan's.

use serde::Deserialize;

use crate::ending::Ending;
use crate::error::StartError;

/// What kept a model from doing the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFailure {
    /// Its service failed, could not be reached, or sent an unusable answer.
    Service,
    /// Its service did not accept the key or the login.
    Auth,
    /// It refused the task.
    Refused,
}

/// What an end means for whoever might try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Nature {
    /// It did its work.
    Success,
    /// It was we who stopped it.
    Stopped,
    /// The same may succeed later with nothing corrected.
    Transient(Passing),
    /// The same would happen again: something must be corrected first.
    Permanent,
}

/// A failure that may pass by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Passing {
    /// It exited with an error, was killed by a signal, or its model's service failed.
    Crash,
    /// The system could not start it now, such as for want of processes.
    Start,
    /// It showed no sign of life for so long that its rule had it stopped.
    Stall,
    /// The service behind it lets it do no more for now.
    RateLimit,
}

impl Nature {
    /// Tells what the end of an agent's run means.
    pub fn of(ended: &Result<Ending, StartError>) -> Nature {
        match ended {
            Ok(Ending::Finished) => Nature::Success,
            Ok(Ending::Stopped) => Nature::Stopped,
            Ok(
                Ending::Failed { .. }
                | Ending::Killed { .. }
                | Ending::ModelFailed { cause: ModelFailure::Service, .. },
            ) => Nature::Transient(Passing::Crash),
            Ok(Ending::Stalled { .. }) => Nature::Transient(Passing::Stall),
            Ok(Ending::RateLimited { .. }) => Nature::Transient(Passing::RateLimit),
            Err(StartError::Refused { .. } | StartError::Keeper { .. }) => Nature::Transient(Passing::Start),
            // Out of time or bounds, refused, or not understood; missing, or wrongly configured.
            Ok(
                Ending::TimedOut { .. }
                | Ending::OutputExceeded { .. }
                | Ending::LimitExceeded { .. }
                | Ending::Unfinished { .. }
                | Ending::ModelFailed { cause: ModelFailure::Auth | ModelFailure::Refused, .. },
            )
            | Err(
                StartError::ProgramMissing { .. }
                | StartError::NotExecutable { .. }
                | StartError::Script { .. }
                | StartError::Directory { .. }
                | StartError::Environment { .. }
                | StartError::Sandbox { .. },
            ) => Nature::Permanent,
        }
    }
}
