//! Why a plan's branch is put elsewhere before the next run. The pin that keeps what was there says it.

use serde::{Deserialize, Serialize};

/// What had the branch put where the next run begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TakeUp {
    /// A person's answer about a branch and its remote that went apart.
    #[default]
    Answer,
    /// A person's answer to another question, after which the kept work is continued.
    Work,
    /// A person's rollback.
    RollBack,
    /// A rate limit cut a run short, and its work is gone on with.
    RateLimit,
    /// The run was interrupted, and the next one continues its work.
    Interrupted,
    /// The budget was used up, and the work so far is gone on with.
    Budget,
    /// A retry continues from the work that the failed run left.
    Retry,
    /// A retry starts over from where the plan's work began.
    StartOver,
    /// A person accepted the work that a failed run left.
    Accepted,
    /// A person has a proposal reviewed again.
    Review,
    /// The results of subplans joined.
    Subplans,
    /// The conflict of a sibling is to be resolved.
    Conflict,
}

impl TakeUp {
    /// Returns the reason, for a person to read.
    pub fn reason(self) -> &'static str {
        match self {
            TakeUp::Answer => "a person chose other commits",
            TakeUp::Work => "a person answered, and the next run goes on with the work that was kept",
            TakeUp::RollBack => "a person rolled the plan back",
            TakeUp::RateLimit => {
                "a rate limit cut the run short, and the next one goes on with its kept work"
            }
            TakeUp::Interrupted => "the run was interrupted, and the next one continues its work",
            TakeUp::Budget => "the budget was used up, and the next run goes on with the kept work",
            TakeUp::Retry => "the phase was retried, and continues from the kept work",
            TakeUp::StartOver => "the phase was started over from its base",
            TakeUp::Accepted => "a person accepted the kept work, and the next run judges it",
            TakeUp::Review => "a person has the proposal reviewed again",
            TakeUp::Subplans => "the results of the subplans joined, and the next run judges them",
            TakeUp::Conflict => "the run resolves the conflict of a sibling",
        }
    }
}
