//! The health check of the hooks: how many events were delivered or failed, and the current error. Shows only
//! the host of an address, and never a secret.

use drydock_domain::counted;
use drydock_store::Delivery;

use super::spec::Hook;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::upkeep::{Checkup, Grade};

const NAME: &str = "hooks";

impl Engine {
    /// Checks the deliveries of the configured hooks.
    pub(crate) async fn hooks_checkup(&self) -> Result<Checkup, EngineError> {
        let hooks = &self.settings().hooks.list;
        if hooks.is_empty() {
            let text = "none is configured".to_owned();
            return Ok(Checkup { name: NAME, grade: Grade::Good, text, hint: None });
        }
        let told = self.store().delivery_list().await?;
        let lines = hooks.iter().map(|hook| line(hook, told.iter().find(|one| one.hook == hook.name)));
        let (grades, lines): (Vec<_>, Vec<_>) = lines.unzip();
        let doubtful = grades.contains(&Grade::Doubtful);
        let grade = if doubtful { Grade::Doubtful } else { Grade::Good };
        let hint = "fix the cause above to restore delivery; plans continue without it".to_owned();
        Ok(Checkup { name: NAME, grade, text: lines.join("; "), hint: doubtful.then_some(hint) })
    }
}

/// Returns the grade and the text of one hook.
fn line(hook: &Hook, told: Option<&Delivery>) -> (Grade, String) {
    let counts = match told {
        Some(told) => format!("{}: {} delivered, {} failed", hook.name, told.delivered, told.failed),
        None => format!("{}: nothing delivered yet", hook.name),
    };
    let error = told.and_then(|told| told.last_error.as_deref().map(|error| (told.attempts, error)));
    match (hook.missing_secret(), error) {
        (Some(variable), _) => {
            (Grade::Doubtful, format!("{counts}; its secret {variable} is not in this environment"))
        }
        (None, Some((0, error))) => (Grade::Doubtful, format!("{counts}, last error: {error}")),
        (None, Some((attempts, error))) => {
            (Grade::Doubtful, format!("{counts}, next event failed {}: {error}", counted(attempts, "time")))
        }
        (None, None) => (Grade::Good, counts),
    }
}
