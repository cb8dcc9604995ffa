//! Automation profiles: before which phases a person is asked, and what a divergence does.

use serde::{Deserialize, Serialize};

use crate::{Budget, Phase};

/// How much of a plan's life goes on without a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// Its name.
    pub name: String,
    /// The phases a person must approve before they start.
    pub asks_before: Vec<Phase>,
    /// What a divergence that cannot be rebased does.
    pub on_divergence: OnDivergence,
    /// What a plan may use.
    #[serde(default)]
    pub budget: Budget,
}

/// What a divergence that cannot be rebased does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDivergence {
    /// Pin the local commits, reset to the remote, ask.
    Recover,
    /// Leave everything as it is and ask.
    Pause,
}

impl Profile {
    /// The profile of a plan that names none.
    pub const DEFAULT: &'static str = "supervised";

    /// Returns the built-in profiles, least automatic first.
    pub fn built_in() -> Vec<Profile> {
        let profile = |name: &str, asks_before: &[Phase]| Profile {
            name: name.to_owned(),
            asks_before: asks_before.to_vec(),
            on_divergence: OnDivergence::Recover,
            budget: Budget::UNLIMITED,
        };
        vec![
            profile("manual", &Phase::ALL),
            profile("supervised", &[Phase::Execute, Phase::Apply]),
            profile("trusted", &[Phase::Apply]),
            profile("auto", &[]),
        ]
    }

    /// Says whether a person must approve before this phase.
    pub fn asks_before(&self, phase: Phase) -> bool {
        self.asks_before.contains(&phase)
    }
}
