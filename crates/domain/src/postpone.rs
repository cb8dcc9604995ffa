//! Waiting for a provider's limit to pass: how long by itself, how often, and when a person is asked instead.

use serde::{Deserialize, Serialize};

use crate::{RunId, Timestamp};

/// How often in a row a plan waits by itself.
pub const POSTPONED_MAX: u32 = 10;
/// The longest that a plan waits by itself.
pub const POSTPONED_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// The shortest wait, for a reset that is now or past.
const PAUSE_MS_MIN: i64 = 1000;
/// The first wait where nobody says for how long; each later one is twice as long.
const PAUSE_MS_FIRST: i64 = 60 * 1000;
const PAUSE_MS_LONGEST: i64 = 60 * 60 * 1000;

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

/// A queued phase that is not due before a time. It stays while the next run goes on, so that limits in a row are
/// counted, and is gone when a run ends in another way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Postponed {
    /// When the phase is due.
    pub until: Timestamp,
    /// The run that was cut short.
    pub run: RunId,
    /// Whose limit it is.
    pub agent: String,
    /// How often in a row.
    pub times: u32,
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
