//! The health check of the hooks: how many events were delivered or failed, and the current error. Shows only
//! the host of an address, and never a secret.

use drydock_domain::counted;
use drydock_store::Delivery;

use super::spec::Hook;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::upkeep::{CheckGrade, HealthCheck};

const NAME: &str = "hooks";

impl Engine {
    /// Checks the deliveries of the configured hooks.
    pub(crate) async fn hooks_checkup(&self) -> Result<HealthCheck, EngineError> {
        let hooks = &self.settings().hooks.list;
        if hooks.is_empty() {
            let text = "none is configured".to_owned();
            return Ok(HealthCheck { name: NAME, grade: CheckGrade::Good, text, hint: None });
        }
        let told = self.store().delivery_list().await?;
        let lines = hooks.iter().map(|hook| line(hook, told.iter().find(|one| one.hook == hook.name)));
        let (grades, lines): (Vec<_>, Vec<_>) = lines.unzip();
        let doubtful = grades.contains(&CheckGrade::Doubtful);
        let grade = if doubtful { CheckGrade::Doubtful } else { CheckGrade::Good };
        let hint = "fix the cause above to restore delivery; plans continue without it".to_owned();
        Ok(HealthCheck { name: NAME, grade, text: lines.join("; "), hint: doubtful.then_some(hint) })
    }
}

/// Returns the grade and the text of one hook.
fn line(hook: &Hook, told: Option<&Delivery>) -> (CheckGrade, String) {
    let counts = match told {
        Some(told) => format!("{}: {} delivered, {} failed", hook.name, told.delivered, told.failed),
        None => format!("{}: nothing delivered yet", hook.name),
    };
    let error = told.and_then(|told| told.last_error.as_deref().map(|error| (told.attempts, error)));
    match (hook.missing_secret(), error) {
        (Some(variable), _) => {
            (CheckGrade::Doubtful, format!("{counts}; its secret {variable} is not in this environment"))
        }
        (None, Some((0, error))) => (CheckGrade::Doubtful, format!("{counts}, last error: {error}")),
        (None, Some((attempts, error))) => (
            CheckGrade::Doubtful,
            format!("{counts}, next event failed {}: {error}", counted(attempts, "time")),
        ),
        (None, None) => (CheckGrade::Good, counts),
    }
}
