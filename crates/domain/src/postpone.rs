//! Waiting for something that passes: a provider's limit, or a remote that does not answer. How long, how often, and when
//! a person is asked instead.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Plan, RunId, Timestamp};

/// How often in a row a plan waits by itself.
pub const POSTPONED_MAX: u32 = 10;
/// The longest that a plan waits by itself.
pub const POSTPONED_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// The shortest wait, for a reset that is now or past.
const PAUSE_MS_MIN: i64 = 1000;
/// The first wait where nobody says for how long; each later one is twice as long.
const PAUSE_MS_FIRST: i64 = 60 * 1000;
const PAUSE_MS_LONGEST: i64 = 60 * 60 * 1000;
/// The same for a remote that is away.
const REMOTE_MS_FIRST: i64 = 2 * 1000;
const REMOTE_MS_LONGEST: i64 = 5 * 60 * 1000;

/// A limit that an agent says it has met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RateLimit {
    /// Which agent.
    pub agent: String,
    /// When the limit is over, where the agent knows.
    pub resets: Option<Timestamp>,
    /// The commit that keeps the work so far, for the next run to go on with.
    pub work: Option<String>,
}

/// A remote that a landing could not be settled with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteAway {
    /// Its name.
    pub remote: String,
    /// Its message, or why it could not be asked.
    pub text: String,
    /// Whether it answered, and each time refused because of the pushes of others.
    pub contended: bool,
}

/// Why a run was cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delay {
    /// An agent met its limit.
    RateLimit(RateLimit),
    /// The target's remote is away; Apply alone.
    Remote {
        /// The remote.
        away: RemoteAway,
        /// How often in a row the plan had waited for a remote before this failure. Distinguishes a retry of the
        /// same command from a later failure: both may name the same run.
        waited: u32,
    },
}

impl Delay {
    /// Returns the delay of a landing that met such a remote, for the plan as it was read before.
    pub fn remote(plan: &Plan, away: RemoteAway) -> Self {
        Self::Remote { away, waited: plan.postponed.as_ref().map_or(0, Postponed::remote_times) }
    }
}

impl RemoteAway {
    /// Returns the name of the cause in JSON.
    pub fn cause(&self) -> &'static str {
        if self.contended { "target_contended" } else { "remote_unreachable" }
    }

    /// Returns when to try again, the `times`-th time in a row.
    pub(crate) fn over_at(now: Timestamp, times: u32) -> Timestamp {
        let doublings = times.saturating_sub(1).min(16);
        now.plus_ms(REMOTE_MS_FIRST.saturating_mul(1 << doublings).min(REMOTE_MS_LONGEST))
    }
}

/// A queued phase that is not due before a time. It stays while the next run goes on, so that limits in a row are
/// counted, and is gone when a run ends in another way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponed {
    /// When the phase is due.
    pub until: Timestamp,
    /// The run that was cut short.
    pub run: RunId,
    /// Whose limit it is; empty where it is a remote that is waited for.
    pub agent: String,
    /// How often in a row.
    pub times: u32,
    /// The remote that is waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<RemoteAway>,
}

impl Postponed {
    /// Returns how often in a row a remote was waited for.
    pub(crate) fn remote_times(&self) -> u32 {
        if self.remote.is_some() { self.times } else { 0 }
    }

    /// Returns the name of the cause in JSON.
    pub fn cause(&self) -> &'static str {
        self.remote.as_ref().map_or("rate_limit", RemoteAway::cause)
    }

    /// Returns the details of the event about it.
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
            None => format!("agent {} met its rate limit", self.agent),
            Some(away) if away.contended => format!("{} refused the landing: {}", away.remote, away.text),
            Some(away) => format!("{} cannot be reached: {}", away.remote, away.text),
        }
    }
}

impl RateLimit {
    /// Returns when to try again, the `times`-th time in a row: when the limit is over, else a little later each time.
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
        RateLimit { agent: "writer".into(), resets, work: None }
    }

    /// Breaks when a reset that is known is not waited for, or one that is not is asked for again and again.
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
