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
    /// The profiles that it was joined with: what is required of their plans is required of this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
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
            also: Vec::new(),
        };
        vec![
            profile("manual", &Phase::ALL),
            profile("supervised", &[Phase::Execute, Phase::Apply]),
            profile("trusted", &[Phase::Apply]),
            profile("auto", &[]),
        ]
    }

    /// Returns the profile that lets no more pass than either of the two, under the name of this one.
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

    /// Returns its name, and those of the profiles that it was joined with.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.name).chain(&self.also).map(String::as_str)
    }

    /// Says whether a person must approve before this phase.
    pub fn asks_before(&self, phase: Phase) -> bool {
        self.asks_before.contains(&phase)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a join of two profiles lets something pass that one of them does not.
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
