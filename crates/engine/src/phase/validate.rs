//! Validations: commands that judge a result. Each answer is an event; required ones decide.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drydock_agent::Ending;
use drydock_domain::{Event, Validation, ValidationRun};
use tracing::Instrument;

use super::scope::Scope;
use crate::error::EngineError;
use crate::trace;

/// How long a validation may take that names no limit.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20 * 60);
/// How much of its output is kept.
const OUTPUT_KEPT_MAX: usize = 8 * 1024;

impl Scope<'_> {
    /// Runs the plan's validations at the root of a result. None means that the run was asked to stop.
    pub(super) async fn validate(&self, tree: &Path) -> Result<Option<Vec<ValidationRun>>, EngineError> {
        let mut runs = Vec::new();
        for validation in &self.plan.spec.validations {
            let Some(run) = self.validate_one(validation, tree).await else { return Ok(None) };
            self.note(Event::Validated(run.clone())).await?;
            runs.push(run);
        }
        Ok(Some(runs))
    }

    async fn validate_one(&self, validation: &Validation, tree: &Path) -> Option<ValidationRun> {
        let timeout = validation.timeout_s.map_or(TIMEOUT_DEFAULT, Duration::from_secs);
        let environment = BTreeMap::from([
            ("DRYDOCK_PLAN".to_owned(), self.plan.id.to_string()),
            ("DRYDOCK_RUN".to_owned(), self.run.to_string()),
            ("DRYDOCK_PHASE".to_owned(), self.plan.stage.phase().to_string()),
        ]);
        let (command, dirs) = (&validation.command, self.dirs(tree));
        let runner = self.engine.runner_for(&self.plan);
        let answer = runner.shell(command, &dirs, &environment, timeout, self.stop.clone());
        let answer = answer.instrument(trace::validation(validation.name.as_str())).await;
        let (passed, how, output) = match answer {
            Err(error) => (false, error.to_string(), String::new()),
            Ok(result) => {
                let (passed, how) = judge(&result.ending)?;
                (passed, how, result.output)
            }
        };
        let output = tail(output.trim_end());
        let text = if output.is_empty() { how } else { format!("{how}\n{output}") };
        Some(ValidationRun { name: validation.name.clone(), required: validation.required, passed, text })
    }
}

/// Says whether an ending passes, and how it ended; none when it was we who stopped it.
fn judge(ending: &Ending) -> Option<(bool, String)> {
    match ending {
        Ending::Finished => Some((true, "exit 0".to_owned())),
        Ending::Failed { code, .. } => Some((false, format!("exit {code}"))),
        Ending::Unfinished { reason, .. } => Some((false, reason.clone())),
        Ending::Killed { signal, .. } => Some((false, format!("killed by signal {signal}"))),
        Ending::TimedOut { after, .. } => Some((false, format!("took longer than {} s", after.as_secs()))),
        Ending::OutputExceeded { limit } => Some((false, format!("wrote more than {limit} bytes"))),
        Ending::LimitExceeded { what, max, .. } => Some((false, format!("used more than {max} {what}"))),
        // A command has no conversation in which it could say so, and its silence is not watched.
        Ending::RateLimited { .. } | Ending::Stalled { .. } | Ending::Stopped => None,
    }
}

fn tail(output: &str) -> &str {
    let cut = output.len().saturating_sub(OUTPUT_KEPT_MAX);
    let at = (cut..output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
    &output[at..]
}
