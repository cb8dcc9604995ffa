//! Projects that this process cannot open: a repository that is not mounted here, or no git. That is the machine's fault
//! and not the plan's, so their plans are left to others, and looked at again after a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use drydock_domain::{Name, told};
use drydock_store::Claim;
use drydock_worktree::GitError;
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;

/// For how long a project that could not be opened is left alone.
const LEAVE_FOR: Duration = Duration::from_secs(60);

/// The projects that are left alone, and until when.
#[derive(Debug, Default)]
pub(crate) struct LeftAlone {
    until: Mutex<HashMap<Name, Instant>>,
}

impl LeftAlone {
    /// Returns the projects that are left alone now.
    pub(crate) fn names(&self) -> Vec<Name> {
        let now = Instant::now();
        let mut until = self.lock();
        until.retain(|_, until| *until > now);
        until.keys().cloned().collect()
    }

    fn add(&self, project: Name) {
        self.lock().insert(project, Instant::now() + LEAVE_FOR);
    }

    /// A panic while it was held left nothing half done.
    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Instant>> {
        self.until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Engine {
    /// Gives a claim back whose project cannot be opened here, uncounted, and leaves the project alone for a while.
    pub(crate) async fn leave_alone(&self, claim: &Claim, met: &EngineError) -> Result<(), EngineError> {
        let project = self.plan_stored(&claim.plan).await?.spec.project;
        tracing::warn!(%project, error = %told(met), "this project cannot be opened here; others may work on it");
        self.left_alone().add(project);
        Ok(self.store().effect_give_back(claim).await?)
    }
}

/// Says whether this process cannot open the repository, for any plan.
pub(crate) fn cannot_open(error: &EngineError) -> bool {
    matches!(
        error,
        EngineError::Repository(_) | EngineError::Git(GitError::Missing | GitError::TooOld { .. })
    )
}
