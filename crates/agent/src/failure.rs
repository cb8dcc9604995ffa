//! Classifies failures as transient or permanent. Restart policies decide whether a run is retried; rate
//! limits are handled by the plan.

use serde::Deserialize;

use crate::ending::Ending;
use crate::error::StartError;

/// Why a model did not do the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelFailure {
    /// The service failed, was unreachable, or sent an invalid response.
    Service,
    /// The service rejected the key or the login.
    Auth,
    /// The model refused the task.
    Refused,
}

/// Classification of the end of a run, for retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndingKind {
    /// The work was done.
    Success,
    /// Drydock stopped the run.
    Stopped,
    /// A retry may succeed without any correction.
    Transient(TransientCause),
    /// A retry would fail again; something must be corrected first.
    Permanent,
}

/// The cause of a transient failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TransientCause {
    /// The agent exited with an error, was killed by a signal, or its model's service failed.
    Crash,
    /// The system could not start it, for example because of too many processes.
    Start,
    /// The run showed no signs of life and was stopped, as configured.
    Stall,
    /// The agent's service rejects further requests for now.
    RateLimit,
}

impl EndingKind {
    /// Classifies the end of an agent's run.
    pub fn of(ended: &Result<Ending, StartError>) -> EndingKind {
        match ended {
            Ok(Ending::Finished) => EndingKind::Success,
            Ok(Ending::Stopped) => EndingKind::Stopped,
            Ok(
                Ending::Failed { .. }
                | Ending::Killed { .. }
                | Ending::ModelFailed { cause: ModelFailure::Service, .. },
            ) => EndingKind::Transient(TransientCause::Crash),
            Ok(Ending::Stalled { .. }) => EndingKind::Transient(TransientCause::Stall),
            Ok(Ending::RateLimited { .. }) => EndingKind::Transient(TransientCause::RateLimit),
            Err(StartError::Refused { .. } | StartError::Keeper { .. }) => {
                EndingKind::Transient(TransientCause::Start)
            }
            // Over a limit, refused or invalid; program missing or configuration wrong.
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
            ) => EndingKind::Permanent,
        }
    }
}
