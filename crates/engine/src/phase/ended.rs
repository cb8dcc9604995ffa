//! How an agent's run ended, with the names of the contract: the `outcome` of `agent.ended`, and the class of
//! the failure.

use drydock_agent::{Ending, ModelFailure, StartError};
use drydock_domain::{ErrorClass, Event, error_chain};
use serde_json::json;

use super::scope::RunContext;
use crate::error::EngineError;

/// How an agent's run ended. A run that drydock stopped for a reason not listed here has no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentOutcome {
    Done,
    FailedModel,
    FailedAuth,
    RateLimited,
    FailedAgent,
    Refused,
    NoChange,
    Stalled,
    Budget,
}

impl AgentOutcome {
    /// Returns the outcome of an ending; `None` if drydock stopped the run.
    pub(super) fn of(ending: &Result<Ending, StartError>) -> Option<AgentOutcome> {
        Some(match ending {
            Ok(Ending::Finished) => AgentOutcome::Done,
            Ok(Ending::Stopped) => return None,
            Ok(Ending::RateLimited { .. }) => AgentOutcome::RateLimited,
            Ok(Ending::Stalled { .. }) => AgentOutcome::Stalled,
            Ok(Ending::ModelFailed { cause, .. }) => match cause {
                ModelFailure::Service => AgentOutcome::FailedModel,
                ModelFailure::Auth => AgentOutcome::FailedAuth,
                ModelFailure::Refused => AgentOutcome::Refused,
            },
            Ok(
                Ending::Failed { .. }
                | Ending::Killed { .. }
                | Ending::TimedOut { .. }
                | Ending::OutputExceeded { .. }
                | Ending::LimitExceeded { .. }
                | Ending::Unfinished { .. },
            )
            | Err(_) => AgentOutcome::FailedAgent,
        })
    }

    fn name(self) -> &'static str {
        match self {
            AgentOutcome::Done => "done",
            AgentOutcome::FailedModel => "failed_model",
            AgentOutcome::FailedAuth => "failed_auth",
            AgentOutcome::RateLimited => "rate_limited",
            AgentOutcome::FailedAgent => "failed_agent",
            AgentOutcome::Refused => "refused",
            AgentOutcome::NoChange => "no_change",
            AgentOutcome::Stalled => "stalled",
            AgentOutcome::Budget => "budget",
        }
    }

    /// Returns the class of a failure with this outcome.
    pub(super) fn class(self) -> ErrorClass {
        match self {
            AgentOutcome::FailedModel => ErrorClass::FailedModel,
            AgentOutcome::FailedAuth => ErrorClass::FailedAuth,
            AgentOutcome::Refused => ErrorClass::Refused,
            AgentOutcome::Stalled => ErrorClass::Stalled,
            AgentOutcome::Done
            | AgentOutcome::RateLimited
            | AgentOutcome::FailedAgent
            | AgentOutcome::NoChange
            | AgentOutcome::Budget => ErrorClass::AgentFailed,
        }
    }
}

impl RunContext<'_> {
    pub(super) async fn emit_ended(
        &self,
        agent: &str,
        how: &str,
        outcome: Option<AgentOutcome>,
    ) -> Result<(), EngineError> {
        let details = json!({ "agent": agent, "how": how, "outcome": outcome.map(AgentOutcome::name) });
        self.emit(Event::Agent { what: "ended", details }).await
    }
}

/// Describes how an agent ended or could not start, worded to follow the agent's name.
pub(super) fn described(ending: &Result<Ending, StartError>) -> String {
    match ending {
        Ok(ending) => wording(ending),
        Err(error) => error_chain(error),
    }
}

/// Describes how an agent ended, worded to follow the agent's name.
pub(crate) fn wording(ending: &Ending) -> String {
    match ending {
        Ending::Finished => FINISHED.to_owned(),
        Ending::Failed { code, .. } => format!("ended with exit code {code}"),
        Ending::Killed { signal, .. } => format!("was killed by signal {signal}"),
        Ending::TimedOut { after, .. } => format!("took longer than {} s", after.as_secs()),
        Ending::Stopped => "was stopped".to_owned(),
        Ending::OutputExceeded { limit } => format!("wrote more than {limit} bytes"),
        Ending::LimitExceeded { what, max, .. } => format!("used more than {max} {what}"),
        Ending::Unfinished { reason, .. } | Ending::ModelFailed { reason, .. } => reason.clone(),
        Ending::Stalled { quiet, .. } => {
            format!("was silent for {} s and was stopped", quiet.as_secs())
        }
        Ending::RateLimited { .. } => "reached its rate limit".to_owned(),
    }
}

/// The description of an agent that finished its work.
pub(super) const FINISHED: &str = "finished";
