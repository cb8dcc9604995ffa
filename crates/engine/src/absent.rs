//! Projects that this process cannot open, because the repository is not mounted on this machine or git is
//! missing. The cause is the machine, not the plan. So the worker skips the plans of such a project, leaves
//! them to other workers, and tries again after a minute.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drydock_domain::{Name, error_chain};
use drydock_store::EffectClaim;
use drydock_worktree::GitError;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;

/// How long a worker skips a project that it could not open.
const LEAVE_FOR: Duration = Duration::from_secs(60);

/// The projects that are skipped, and until when.
#[derive(Debug, Default)]
pub(crate) struct LeftAlone {
    until: Mutex<HashMap<Name, Instant>>,
}

impl LeftAlone {
    pub(crate) fn names(&self) -> Vec<Name> {
        let now = Instant::now();
        let mut until = self.lock();
        until.retain(|_, until| *until > now);
        until.keys().cloned().collect()
    }

    fn add(&self, project: Name) {
        self.lock().insert(project, Instant::now() + LEAVE_FOR);
    }

    /// Ignores poisoning: a panic under this lock cannot leave the map half changed.
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Returns a claim whose project cannot be opened here, without counting an attempt, and skips the
    /// project for a while.
    pub(crate) async fn leave_alone(
        &self,
        claim: &EffectClaim,
        met: &EngineError,
    ) -> Result<(), EngineError> {
        let project = self.load_plan(&claim.plan).await?.spec.project;
        tracing::warn!(%project, error = %error_chain(met), "this process cannot open the project; other workers may");
        self.left_alone().add(project);
        Ok(self.store().effect_give_back(claim).await?)
    }
}

/// Returns true if this process cannot open the repository for any plan.
pub(crate) fn cannot_open(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Repository(_) | EngineError::Git(GitError::Missing | GitError::TooOld { .. })
    )
}
