//! Postponement: waiting for a temporary condition, such as a provider's rate limit or an unreachable remote.
//! Defines how long and how often a plan waits, and when a person is asked instead.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Plan, Remains, RunId, Timestamp};

/// Maximum number of consecutive postponements without asking a person.
pub const POSTPONED_MAX: u32 = 10;
/// Maximum duration of a postponement without asking a person.
pub const POSTPONED_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Minimum wait, for a reset time that is now or in the past.
const PAUSE_MS_MIN: i64 = 1000;
/// First wait if the reset time is unknown; each further wait is twice as long.
const PAUSE_MS_FIRST: i64 = 60 * 1000;
const PAUSE_MS_LONGEST: i64 = 60 * 60 * 1000;
/// First wait for an unreachable remote; each further wait is twice as long.
const REMOTE_MS_FIRST: i64 = 2 * 1000;
const REMOTE_MS_LONGEST: i64 = 5 * 60 * 1000;

/// A rate limit reported by an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// The agent's name.
    pub agent: String,
    /// When the limit ends, if the agent knows.
    pub resets: Option<Timestamp>,
    /// The work so far, from which the next run continues.
    pub work: Remains<String>,
}

/// A remote with which a landing could not be completed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteAway {
    /// The remote's name.
    pub remote: String,
    /// The remote's error message, or why it could not be reached.
    pub text: String,
    /// Whether the remote was reachable but refused every push because of concurrent pushes.
    pub contended: bool,
}

/// Why a run was interrupted by a temporary condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// An agent met its rate limit.
    RateLimit(RateLimit),
    /// The target's remote is unavailable. Apply only.
    Remote {
        /// The remote.
        away: RemoteAway,
        /// Number of consecutive postponements for a remote before this failure. It distinguishes a retry of
        /// the same command from a later failure, because both may name the same run.
        waited: u32,
    },
}

impl Delay {
    /// Returns the delay of a landing that met an unavailable remote. `plan` is the plan as read before the
    /// landing.
    pub fn remote(plan: &Plan, away: RemoteAway) -> Self {
        Self::Remote { away, waited: plan.postponed.as_ref().map_or(0, Postponed::remote_times) }
    }
}

impl RemoteAway {
    /// Returns the name of the cause in JSON.
    pub fn cause(&self) -> &'static str {
        if self.contended { "target_contended" } else { "remote_unreachable" }
    }

    /// Returns the time of the next attempt after `times` consecutive failures.
    pub(crate) fn over_at(now: Timestamp, times: u32) -> Timestamp {
        let doublings = times.saturating_sub(1).min(16);
        now.plus_ms(REMOTE_MS_FIRST.saturating_mul(1 << doublings).min(REMOTE_MS_LONGEST))
    }
}

/// The postponement of a queued phase. It is kept while the next run works, so that consecutive limits are
/// counted, and removed when a run ends in another way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponed {
    /// When the phase is due.
    pub until: Timestamp,
    /// The interrupted run.
    pub run: RunId,
    /// The agent with the rate limit; empty for an unavailable remote.
    pub agent: String,
    /// Number of consecutive postponements.
    pub times: u32,
    /// The unavailable remote.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteAway>,
}

impl Postponed {
    /// Returns the number of consecutive postponements for a remote.
    pub(crate) fn remote_times(&self) -> u32 {
        if self.remote.is_some() { self.times } else { 0 }
    }

    /// Returns the name of the cause in JSON.
    pub fn cause(&self) -> &'static str {
        self.remote.as_ref().map_or("rate_limit", RemoteAway::cause)
    }

    /// Returns the data of the postponement event.
    pub(crate) fn details(&self) -> Value {
        json!({
            "until": self.until.to_string(),
            "times": self.times,
            "cause": self.cause(),
            "reason": self.reason(),
            "remote": self.remote.as_ref().map(|away| &away.remote),
        })
    }

    /// Returns the reason for waiting, as text for people.
    pub fn reason(&self) -> String {
        match &self.remote {
            None => format!("agent {} reached its rate limit", self.agent),
            Some(away) if away.contended => format!("{} refused the landing: {}", away.remote, away.text),
            Some(away) => format!("{} cannot be reached: {}", away.remote, away.text),
        }
    }
}

impl RateLimit {
    /// Returns the time of the next attempt: when the limit ends if known, otherwise after a wait that
    /// doubles each time.
    pub(crate) fn over_at(&self, now: Timestamp, times: u32) -> Timestamp {
        let doublings = times.saturating_sub(1).min(16);
        let pause_ms = PAUSE_MS_FIRST.saturating_mul(1 << doublings).min(PAUSE_MS_LONGEST);
        self.resets.map_or(now.plus_ms(pause_ms), |resets| resets.max(now.plus_ms(PAUSE_MS_MIN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_000_000_000);

    fn limit(resets: Option<Timestamp>) -> RateLimit {
        RateLimit { agent: "writer".into(), resets, work: Remains::Work(None) }
    }

    /// Fails if a known reset time is ignored, or if the wait for an unknown one does not grow.
    #[test]
    fn a_known_reset_is_waited_for_and_an_unknown_one_ever_longer() {
        let at = |seconds: i64| NOW.plus_ms(seconds * 1000);
        assert_eq!(limit(Some(at(90))).over_at(NOW, 7), at(90));
        assert_eq!(
            limit(Some(at(-90))).over_at(NOW, 1),
            at(1),
            "a reset that is past is tried soon, not at once"
        );
        let pauses: Vec<_> = [1, 2, 3, 7, 100].map(|times| limit(None).over_at(NOW, times)).to_vec();
        assert_eq!(pauses, [at(60), at(120), at(240), at(3600), at(3600)]);
    }
}
