//! The reason for moving a plan's branch before the next run. It is stored with the backup of the branch's
//! previous commits.

use serde::{Deserialize, Serialize};

/// Why the branch moves to the commit at which the next run starts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RestartReason {
    /// A person's answer about a divergence.
    #[default]
    Answer,
    /// A person's answer to another question; the next run continues from the kept work.
    Work,
    /// A rollback by a person.
    RollBack,
    /// A rate limit interrupted a run; the next run continues from its work.
    RateLimit,
    /// A run was interrupted; the next run continues from its work.
    Interrupted,
    /// The budget was exhausted; the next run continues from the work so far.
    Budget,
    /// A retry continues from the work of the failed run.
    Retry,
    /// A retry starts over from the commit at which the plan's work began.
    StartOver,
    /// A person accepted the work of a failed run.
    Accepted,
    /// A person requested another review of a proposal.
    Review,
    /// The results of the subplans were joined.
    Subplans,
    /// The subplan resolves the conflict of a sibling.
    Conflict,
}

impl RestartReason {
    /// Returns the reason, as text for people.
    pub fn reason(self) -> &'static str {
        match self {
            RestartReason::Answer => "a person chose other commits",
            RestartReason::Work => "a person answered, and the next run continues from the kept work",
            RestartReason::RollBack => "a person rolled the plan back",
            RestartReason::RateLimit => {
                "a rate limit stopped the run, and the next one continues from its kept work"
            }
            RestartReason::Interrupted => "the run was interrupted, and the next one continues its work",
            RestartReason::Budget => "the budget was used up, and the next run continues from the kept work",
            RestartReason::Retry => "the phase was retried, and continues from the kept work",
            RestartReason::StartOver => "the phase was started over from its base",
            RestartReason::Accepted => {
                "a person accepted the kept work, and the next run validates and reviews it"
            }
            RestartReason::Review => "a person asked for another review of the proposal",
            RestartReason::Subplans => {
                "the results of the subplans were joined, and the next run validates and \
                                 reviews them"
            }
            RestartReason::Conflict => "the run resolves the conflict of a sibling",
        }
    }
}
