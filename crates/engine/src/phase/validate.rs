//! Validations: commands that check a result. Each outcome is emitted as an event; required validations must
//! pass.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use drydock_agent::Ending;
use drydock_domain::{Event, Validation, ValidationResult, error_chain};
use tokio::sync::mpsc;
use tracing::Instrument;

use super::scope::RunContext;
use crate::error::EngineError;
use crate::trace;

/// Time limit of a validation that sets none.
const TIMEOUT_DEFAULT: Duration = Duration::from_secs(20 * 60);
/// Maximum number of lines that wait for the log. Beyond that the validation is slowed down.
const LINES_MAX: usize = 256;
/// Maximum size of the output stored with the result. The log has all of it.
const OUTPUT_KEPT_MAX: usize = 8 * 1024;

/// The outcome of all validations.
pub(super) enum ValidationOutcome {
    /// All of them ran to their end.
    Ran(Vec<ValidationResult>),
    /// The run was asked to stop.
    Stopped,
    /// The plan's time is used up. An interrupted validation does not count.
    OutOfTime,
}

/// The outcome of one validation.
enum SingleValidation {
    Ran(ValidationResult),
    Stopped,
    OutOfTime,
}

impl RunContext<'_> {
    /// Runs the plan's validations at the root of a result, within the remaining time of the plan.
    pub(super) async fn validate(&self, tree: &Path) -> Result<ValidationOutcome, EngineError> {
        let mut runs = Vec::new();
        for validation in &self.plan.spec.validations {
            let run = match self.validate_one(validation, tree).await? {
                SingleValidation::Ran(run) => run,
                SingleValidation::Stopped => return Ok(ValidationOutcome::Stopped),
                SingleValidation::OutOfTime => return Ok(ValidationOutcome::OutOfTime),
            };
            self.emit(Event::Validated(run.clone())).await?;
            runs.push(run);
        }
        Ok(ValidationOutcome::Ran(runs))
    }

    async fn validate_one(
        &self,
        validation: &Validation,
        tree: &Path,
    ) -> Result<SingleValidation, EngineError> {
        let own = validation.timeout_s.map_or(TIMEOUT_DEFAULT, Duration::from_secs);
        let left = self.time_left().filter(|left| *left < own);
        if left.is_some_and(|left| left.is_zero()) {
            return Ok(SingleValidation::OutOfTime);
        }
        let timeout = left.unwrap_or(own);
        let environment = BTreeMap::from([
            ("DRYDOCK_PLAN".to_owned(), self.plan.id.to_string()),
            ("DRYDOCK_RUN".to_owned(), self.run.to_string()),
            ("DRYDOCK_PHASE".to_owned(), self.plan.stage.phase().to_string()),
        ]);
        let (command, dirs) = (&validation.command, self.dirs(tree));
        let runner = self.engine.runner_for(&self.plan);
        let (signals, lines) = mpsc::channel(LINES_MAX);
        // A validation may print files into which an agent wrote its secrets, so the secrets of all agents
        // are hidden.
        let hidden = self.engine.settings().agents.values().cloned().collect();
        let heard = Some((signals, hidden));
        let answer = runner.shell_heard(command, &dirs, &environment, timeout, self.stop.clone(), heard);
        let answer = answer.instrument(trace::validation(validation.name.as_str()));
        let stream = format!("validation:{}", validation.name);
        let (answer, printed) = tokio::join!(answer, self.print(&stream, lines));
        printed?;
        let (passed, how, output) = match answer {
            Err(error) => (false, error_chain(&error), String::new()),
            Ok(result) if left.is_some() && matches!(result.ending, Ending::TimedOut { .. }) => {
                return Ok(SingleValidation::OutOfTime);
            }
            Ok(result) => match judge(&result.ending) {
                Some((passed, how)) => (passed, how, result.output),
                None => return Ok(SingleValidation::Stopped),
            },
        };
        let output = tail(output.trim_end());
        let text = if output.is_empty() { how } else { format!("{how}\n{output}") };
        let (name, required) = (validation.name.clone(), validation.required);
        Ok(SingleValidation::Ran(ValidationResult { name, required, passed, text }))
    }
}

/// Returns whether an ending passes, and describes it; `None` if drydock stopped the command.
fn judge(ending: &Ending) -> Option<(bool, String)> {
    match ending {
        Ending::Finished => Some((true, "exit 0".to_owned())),
        Ending::Failed { code, .. } => Some((false, format!("exit {code}"))),
        Ending::Unfinished { reason, .. } | Ending::ModelFailed { reason, .. } => {
            Some((false, reason.clone()))
        }
        Ending::Killed { signal, .. } => Some((false, format!("killed by signal {signal}"))),
        Ending::TimedOut { after, .. } => Some((false, format!("took longer than {} s", after.as_secs()))),
        Ending::OutputExceeded { limit } => Some((false, format!("wrote more than {limit} bytes"))),
        Ending::LimitExceeded { what, max, .. } => Some((false, format!("used more than {max} {what}"))),
        // A command cannot report a rate limit, and is not watched for inactivity.
        Ending::RateLimited { .. } | Ending::Stalled { .. } | Ending::Stopped => None,
    }
}

fn tail(output: &str) -> &str {
    let cut = output.len().saturating_sub(OUTPUT_KEPT_MAX);
    let at = (cut..output.len()).find(|at| output.is_char_boundary(*at)).unwrap_or(output.len());
    &output[at..]
}
