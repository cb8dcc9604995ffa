//! Restart policy of a failed agent: only if configured, only for transient failures, and with an increasing
//! delay.

use std::time::Duration;

use serde::Deserialize;

use crate::ending::Ending;
use crate::error::StartError;
use crate::failure::{EndingKind, TransientCause};

/// Delay before the first restart; each later one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);
/// More restarts would hide a fault rather than bridge it.
const RESTARTS_MAX: u32 = 10;

/// The restart policy of one agent, configured as `restart = { max = 2, on = ["crash"] }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "RawRestart")]
pub(crate) struct RestartPolicy {
    max: u32,
    on: Vec<TransientCause>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRestart {
    max: u32,
    on: Vec<TransientCause>,
}

impl TryFrom<RawRestart> for RestartPolicy {
    type Error = String;

    fn try_from(written: RawRestart) -> Result<Self, String> {
        if written.max > RESTARTS_MAX {
            return Err(format!("restart: max is at most {RESTARTS_MAX}"));
        }
        if written.on.contains(&TransientCause::RateLimit) {
            return Err("restart: drydock always waits for rate limits; use crash, start or stall".to_owned());
        }
        Ok(Self { max: written.max, on: written.on })
    }
}

impl RestartPolicy {
    /// Returns the delay before the next restart. Returns `None` if the run did not fail, the failure is
    /// permanent or not covered by the policy, or there were already `max` restarts.
    pub(crate) fn pause(&self, done: u32, ended: &Result<Ending, StartError>) -> Option<Duration> {
        let EndingKind::Transient(cause) = EndingKind::of(ended) else { return None };
        let allowed = done < self.max && self.on.contains(&cause);
        allowed.then(|| PAUSE_FIRST.saturating_mul(1 << done).min(PAUSE_LONGEST))
    }
}

impl RestartPolicy {
    /// Returns true if a stalled agent is stopped, so that it can be restarted.
    pub(crate) fn stops_stalled(&self) -> bool {
        self.on.contains(&TransientCause::Stall)
    }
}

#[cfg(test)]
mod tests {
    use super::RestartPolicy;
    use crate::ending::Ending;
    use crate::error::StartError;
    use std::time::Duration;

    fn rule(text: &str) -> Result<RestartPolicy, String> {
        #[derive(serde::Deserialize)]
        struct Holder {
            restart: RestartPolicy,
        }
        let read = toml::from_str::<Holder>(&format!("restart = {text}"));
        read.map(|holder| holder.restart).map_err(|error| error.message().to_owned())
    }

    fn written(text: &str) -> RestartPolicy {
        rule(text).unwrap()
    }

    #[test]
    fn only_what_may_pass_is_tried_again_and_each_time_later() {
        let rule = rule("{ max = 3, on = ['crash'] }").unwrap();
        let crash = Ok(Ending::Killed { signal: 9, tail: String::new() });
        let pauses: Vec<_> = (0..4).map(|done| rule.pause(done, &crash)).collect();
        let s = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(pauses, [s(1), s(2), s(4), None]);
        for permanent in [
            Ok(Ending::Finished),
            Ok(Ending::Stopped),
            Ok(Ending::Unfinished { reason: String::new(), tail: String::new() }),
            Err(StartError::ProgramMissing { program: "x".into() }),
            // Transient, but not in the policy.
            Err(StartError::Refused { program: "x".into(), reason: "full".into() }),
        ] {
            assert_eq!(rule.pause(0, &permanent), None, "{permanent:?}");
        }
        assert_eq!(RestartPolicy::default().pause(0, &crash), None);
        let stall = Ok(Ending::Stalled { quiet: Duration::from_secs(9), tail: String::new() });
        assert_eq!(rule.pause(0, &stall), None, "not in the rule");
        let (patient, never) = (written("{ max = 1, on = ['stall'] }"), RestartPolicy::default());
        assert_eq!((patient.pause(0, &stall), patient.pause(1, &stall)), (s(1), None));
        assert!(patient.stops_stalled() && !rule.stops_stalled() && !never.stops_stalled());
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        assert!(rule("{ max = 99, on = ['crash'] }").unwrap_err().contains("at most 10"));
        assert!(rule("{ max = 1, on = ['boredom'] }").unwrap_err().contains("boredom"));
        assert!(rule("{ max = 1, on = ['rate_limit'] }").unwrap_err().contains("always waits for"));
        assert!(rule("{ max = 1 }").unwrap_err().contains("on"));
    }
}
