//! When an agent that ended badly is started again: only by rule, only for what may pass, and each time a little later.

use std::time::Duration;

use serde::Deserialize;

use crate::ending::Ending;
use crate::error::StartError;

/// The pause before the first restart; each later one is twice as long.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LONGEST: Duration = Duration::from_secs(60);
/// More restarts than this hide a fault rather than bridge it.
const RESTARTS_MAX: u32 = 10;

/// The rule of one agent, written as `restart = { max = 2, on = ["crash"] }`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "Written")]
pub(crate) struct Restart {
    max: u32,
    on: Vec<Cause>,
}

/// What a restart may help against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Cause {
    /// It exited with an error or was killed by a signal.
    Crash,
    /// The system could not start it now, such as for want of processes.
    Start,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    max: u32,
    on: Vec<Cause>,
}

impl TryFrom<Written> for Restart {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        if written.max > RESTARTS_MAX {
            return Err(format!("restart: max is at most {RESTARTS_MAX}"));
        }
        Ok(Self { max: written.max, on: written.on })
    }
}

impl Restart {
    /// Returns how long to wait before the next restart, or nothing when there is none: the end was no failure, will
    /// not pass by itself, is not in the rule, or `done` restarts were enough.
    pub(crate) fn pause(&self, done: u32, ended: &Result<Ending, StartError>) -> Option<Duration> {
        let cause = match ended {
            Ok(Ending::Failed { .. } | Ending::Killed { .. }) => Cause::Crash,
            Err(error) if error.may_pass() => Cause::Start,
            // Out of time or bounds, refused, or not understood: the same would happen again.
            Ok(
                Ending::Finished
                | Ending::TimedOut { .. }
                | Ending::Stopped
                | Ending::OutputExceeded { .. }
                | Ending::LimitExceeded { .. }
                | Ending::Unfinished { .. },
            )
            | Err(_) => return None,
        };
        let allowed = done < self.max && self.on.contains(&cause);
        allowed.then(|| PAUSE_FIRST.saturating_mul(1 << done).min(PAUSE_LONGEST))
    }
}

#[cfg(test)]
mod tests {
    use super::Restart;
    use crate::ending::Ending;
    use crate::error::StartError;
    use std::time::Duration;

    fn rule(text: &str) -> Result<Restart, String> {
        #[derive(serde::Deserialize)]
        struct Holder {
            restart: Restart,
        }
        let read = toml::from_str::<Holder>(&format!("restart = {text}"));
        read.map(|holder| holder.restart).map_err(|error| error.message().to_owned())
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
            // May pass, and is not in the rule.
            Err(StartError::Refused { program: "x".into(), reason: "full".into() }),
        ] {
            assert_eq!(rule.pause(0, &permanent), None, "{permanent:?}");
        }
        assert_eq!(Restart::default().pause(0, &crash), None);
    }

    #[test]
    fn a_rule_that_makes_no_sense_is_refused() {
        assert!(rule("{ max = 99, on = ['crash'] }").unwrap_err().contains("at most 10"));
        assert!(rule("{ max = 1, on = ['boredom'] }").unwrap_err().contains("boredom"));
        assert!(rule("{ max = 1 }").unwrap_err().contains("on"));
    }
}
