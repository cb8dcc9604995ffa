//! Delivery to a program. The program gets the event as one line of JSON on its standard input. The delivery
//! succeeds if the program exits with 0.

use std::collections::BTreeMap;
use std::path::PathBuf;

use drydock_agent::Ending;
use drydock_domain::{StoredEvent, error_chain};
use tokio_util::sync::CancellationToken;

use super::deliver::DeliveryError;
use super::spec::Hook;
use crate::engine::Engine;

/// The directory of the hook programs, below the worktrees; each hook has its own subdirectory.
const PLACE: &str = "hooks";
const HIDDEN: &str = "…";

impl Engine {
    /// Starts the program of a hook and waits for its end.
    pub(super) async fn tell_program(
        &self,
        hook: &Hook,
        argv: &[String],
        pass_env: &[String],
        event: StoredEvent,
    ) -> Result<(), DeliveryError> {
        let passed =
            pass_env.iter().filter_map(|name| std::env::var(name).ok().map(|value| (name.clone(), value)));
        let passed: BTreeMap<String, String> = passed.collect();
        let mut env = passed.clone();
        env.extend([
            ("DRYDOCK_HOOK".to_owned(), hook.name.to_string()),
            ("DRYDOCK_EVENT_KIND".to_owned(), event.kind.clone()),
            ("DRYDOCK_EVENT_SEQ".to_owned(), event.seq.to_string()),
        ]);
        let line = format!("{}\n", (self.settings().hooks.shape)(event));
        let directory = self.hook_directory(hook);
        // Only the timeout stops the program through the runner. A caller that cuts a delivery short drops
        // this future, which kills all processes that the program started.
        let stop = CancellationToken::new();
        let run = self.runner().hook(argv, line.into_bytes(), &env, &directory, hook.timeout, stop);
        let ended = run.await.map_err(|error| DeliveryError(error_chain(&error)))?;
        let how = match ended.ending {
            Ending::Finished => return Ok(()),
            ending => crate::phase::wording(&ending),
        };
        let said = ended
            .output
            .lines()
            .map(str::trim)
            .rfind(|line| !line.is_empty())
            .map(|line| masked(line, &passed));
        Err(DeliveryError(match said {
            Some(said) => format!("it {how}: {said}"),
            None => format!("it {how}"),
        }))
    }

    /// A name may contain slashes; replacing them keeps the directory below the worktrees.
    fn hook_directory(&self, hook: &Hook) -> PathBuf {
        self.settings().worktrees.join(PLACE).join(hook.name.as_str().replace('/', "_"))
    }
}

/// Returns a line without the values of the environment variables that the program got.
fn masked(line: &str, passed: &BTreeMap<String, String>) -> String {
    let values = passed.values().filter(|value| !value.is_empty());
    values.fold(line.to_owned(), |line, value| line.replace(value.as_str(), HIDDEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_program_was_trusted_with_is_not_repeated() {
        let passed =
            BTreeMap::from([("TOKEN".to_owned(), "s3cret".to_owned()), ("EMPTY".to_owned(), String::new())]);
        assert_eq!(masked("401 for s3cret at /s3cret", &passed), "401 for … at /…");
    }
}
