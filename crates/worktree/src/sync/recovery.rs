//! The marker of a recovery: written with the pin, verified by the reset, deleted once a person was asked.
//!
//! It makes a recovery one thing over any number of crashes: whoever syncs next finds it, completes what is not
//! complete, and reports the same again. And it fences: a process that wakes up late finds the marker gone and
//! moves nothing.

use drydock_domain::{Clash, CommitLine, PinLine};
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::objects::objects;
use crate::refs::{object_at, update};
use crate::repository::Repository;
use crate::sync::order::recovery_name;

/// All that is needed to complete a recovery and to report it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Marker {
    /// Where the branch was.
    pub(crate) local: String,
    /// Where it is to go.
    pub(crate) remote: String,
    /// The uncommitted work that the pin has, if any: all files, and what was staged.
    pub(crate) tree: Option<String>,
    pub(crate) staged: Option<String>,
    pub(crate) pin: PinLine,
    pub(crate) discarded: Vec<CommitLine>,
    pub(crate) arrived: Vec<CommitLine>,
    pub(crate) clash: Clash,
}

impl Repository {
    /// Returns the pin of a recovery that is not settled yet.
    pub fn recovery_pin(&self, plan: &str) -> Result<Option<String>, GitError> {
        let Some(blob) = object_at(self.place(), &recovery_name(plan)?)? else { return Ok(None) };
        self.marker_read(&blob).map(|marker| Some(marker.pin.name))
    }

    /// Forgets a recovery: its outcome is recorded elsewhere by now. One that is not there is fine.
    pub fn recovery_settle(&self, plan: &str) -> Result<(), GitError> {
        let name = recovery_name(plan)?;
        let attempt = format!("settle the recovery of {plan}");
        match object_at(self.place(), &name)? {
            None => Ok(()),
            Some(blob) => match update(self.place(), &attempt, format!("delete {name}\0{blob}\0")) {
                Err(error) if object_at(self.place(), &name)?.is_some() => Err(error),
                Ok(()) | Err(_) => Ok(()),
            },
        }
    }

    pub(crate) fn marker_read(&self, blob: &str) -> Result<Marker, GitError> {
        let attempt = "read the marker of a recovery";
        let found = objects(self.place(), &[blob], attempt)?;
        let text = found.get(blob).ok_or_else(|| GitError::unexpected(attempt, "it is missing"))?;
        serde_json::from_slice(text).map_err(|error| GitError::unexpected(attempt, error.to_string()))
    }
}

impl Marker {
    pub(crate) fn text(&self) -> Result<Vec<u8>, GitError> {
        let attempt = "write the marker of a recovery";
        serde_json::to_vec(self).map_err(|error| GitError::unexpected(attempt, error.to_string()))
    }
}
