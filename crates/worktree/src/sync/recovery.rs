//! The marker of a recovery: written with the backup, compared by the reset, deleted once the decision is
//! stored.
//!
//! The marker makes a recovery a single operation across any number of crashes: the next sync finds it,
//! completes the remaining steps and reports the same outcome. It is also a fence: a process that resumes
//! late finds that the marker was deleted, and moves nothing.

use drydock_domain::{BackupRef, CommitLine, ReplayConflict};
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::objects::objects;
use crate::refs::{object_at, update};
use crate::repository::Repository;
use crate::sync::order::recovery_name;

/// Everything needed to complete and report a recovery.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct RecoveryMarker {
    /// The branch's commit before the reset.
    pub(crate) local: String,
    /// The commit to which the branch is reset.
    pub(crate) remote: String,
    /// The uncommitted work in the backup, if any: the content of the directory, and the staged content.
    pub(crate) tree: Option<String>,
    pub(crate) staged: Option<String>,
    pub(crate) pin: BackupRef,
    pub(crate) discarded: Vec<CommitLine>,
    pub(crate) arrived: Vec<CommitLine>,
    pub(crate) clash: ReplayConflict,
}

impl Repository {
    /// Returns the backup of an unfinished recovery.
    pub fn recovery_pin(&self, plan: &str) -> Result<Option<String>, GitError> {
        let Some(blob) = object_at(self.place(), &recovery_name(plan)?)? else { return Ok(None) };
        self.marker_read(&blob).map(|marker| Some(marker.pin.name))
    }

    /// Deletes the marker of a recovery, whose outcome is stored elsewhere by now. A missing marker is not an
    /// error.
    pub fn recovery_settle(&self, plan: &str) -> Result<(), GitError> {
        let name = recovery_name(plan)?;
        let attempt = format!("finish the recovery of {plan}");
        match object_at(self.place(), &name)? {
            None => Ok(()),
            Some(blob) => match update(self.place(), &attempt, format!("delete {name}\0{blob}\0")) {
                Err(error) if object_at(self.place(), &name)?.is_some() => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    pub(crate) fn marker_read(&self, blob: &str) -> Result<RecoveryMarker, GitError> {
        let attempt = "read the marker of a recovery";
        let found = objects(self.place(), &[blob], attempt)?;
        let text = found.get(blob).ok_or_else(|| GitError::unexpected(attempt, "it is missing"))?;
        serde_json::from_slice(text).map_err(|error| GitError::unexpected(attempt, error.to_string()))
    }
}

impl RecoveryMarker {
    pub(crate) fn text(&self) -> Result<Vec<u8>, GitError> {
        let attempt = "write the marker of a recovery";
        serde_json::to_vec(self).map_err(|error| GitError::unexpected(attempt, error.to_string()))
    }
}
