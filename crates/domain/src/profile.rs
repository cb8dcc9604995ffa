//! Automation profiles: the phases that need a person's approval, and the reaction to a divergence.

use serde::{Deserialize, Serialize};

use crate::{Budget, Phase};

/// Defines how much of a plan runs without asking a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    /// The profile's name.
    pub name: String,
    /// The phases that a person must approve before they start.
    pub asks_before: Vec<Phase>,
    /// The reaction to a divergence that cannot be resolved by a rebase.
    pub on_divergence: OnDivergence,
    /// The budget of a plan with this profile.
    #[serde(default)]
    pub budget: Budget,
    /// The other profiles merged into this one. Requirements for plans with those profiles apply to this one
    /// too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

/// The reaction to a divergence that cannot be resolved by a rebase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnDivergence {
    /// Back up the local commits, reset the branch to the remote, and ask.
    Recover,
    /// Leave everything unchanged, and ask.
    Pause,
}

impl Profile {
    /// The profile of a plan that does not name one.
    pub const DEFAULT: &'static str = "supervised";

    /// Returns the built-in profiles, least automatic first.
    pub fn built_in() -> Vec<Profile> {
        let profile = |name: &str, asks_before: &[Phase]| Profile {
            name: name.to_owned(),
            asks_before: asks_before.to_vec(),
            on_divergence: OnDivergence::Recover,
            budget: Budget::UNLIMITED,
            also: Vec::new(),
        };
        vec![
            profile("manual", &Phase::ALL),
            profile("supervised", &[Phase::Execute, Phase::Apply]),
            profile("trusted", &[Phase::Apply]),
            profile("auto", &[]),
        ]
    }

    /// Returns a profile that is at least as strict as both, with the name of this one.
    #[must_use]
    pub fn strictest(self, other: Profile) -> Profile {
        let asks_before =
            Phase::ALL.into_iter().filter(|phase| self.asks_before(*phase) || other.asks_before(*phase));
        let asks_before = asks_before.collect();
        let on_divergence = match (self.on_divergence, other.on_divergence) {
            (OnDivergence::Recover, OnDivergence::Recover) => OnDivergence::Recover,
            (OnDivergence::Pause, _) | (_, OnDivergence::Pause) => OnDivergence::Pause,
        };
        let budget = self.budget.smallest(other.budget);
        let mut also = self.also;
        for name in std::iter::once(other.name).chain(other.also) {
            if name != self.name && !also.contains(&name) {
                also.push(name);
            }
        }
        Profile { name: self.name, asks_before, on_divergence, budget, also }
    }

    /// Returns the name of the profile and of the profiles merged into it.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.also).map(String::as_str)
    }

    /// Returns true if a person must approve this phase.
    pub fn asks_before(&self, phase: Phase) -> bool {
        self.asks_before.contains(&phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if the merge of two profiles allows something that one of them does not.
    #[test]
    fn the_strictest_of_two_profiles_lets_no_more_pass_than_either() {
        let auto = Profile::built_in().into_iter().find(|profile| profile.name == "auto").unwrap();
        let tight = Profile {
            name: "tight".to_owned(),
            asks_before: vec![Phase::Execute],
            on_divergence: OnDivergence::Pause,
            budget: "tool_calls=5".parse().unwrap(),
            also: Vec::new(),
        };
        for (one, other) in [(auto.clone(), tight.clone()), (tight.clone(), auto.clone())] {
            let name = one.name.clone();
            let both = one.strictest(other);
            assert_eq!(both.name, name);
            assert!(both.names().any(|name| name == "tight") && both.names().any(|name| name == "auto"));
            assert_eq!(
                (&both.asks_before, both.on_divergence, both.budget),
                (&tight.asks_before, OnDivergence::Pause, tight.budget)
            );
        }
        assert_eq!(tight.clone().strictest(tight.clone()), tight);
    }
}
