//! Metadata of a backup: a JSON blob under a ref next to the backup's own.

use drydock_domain::{PINS, Uncommitted};
use serde::{Deserialize, Serialize};

use crate::error::GitError;
use crate::run::GitContext;

/// Prefix of the refs of metadata blobs.
pub(crate) const ABOUTS: &str = "refs/drydock/pin-about/";

/// The facts about a backup that its commit does not contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupMetadata {
    pub(crate) plan: String,
    pub(crate) run: Option<String>,
    pub(crate) reason: String,
    /// Seconds since 1970.
    pub(crate) created_at: i64,
    pub(crate) uncommitted: Uncommitted,
    /// The commit of the branch.
    pub(crate) head: String,
    /// The content of the directory, if it differed from the head.
    pub(crate) tree: Option<String>,
    /// The staged content, if it exists nowhere else.
    pub(crate) staged: Option<String>,
    /// The remote's commit from which the branch had diverged.
    pub(crate) remote: Option<String>,
}

impl BackupMetadata {
    /// Returns true if both backups keep the same content, regardless of time and reason.
    pub(crate) fn keeps_the_same(&self, other: &BackupMetadata) -> bool {
        let kept = |about: &BackupMetadata| {
            let BackupMetadata { head, tree, staged, remote, .. } = about.clone();
            (head, tree, staged, remote)
        };
        kept(self) == kept(other)
    }
}

/// Returns the name of the metadata ref of a backup.
pub(crate) fn about_of(pin: &str) -> Option<String> {
    Some(format!("{ABOUTS}{}", pin.strip_prefix(PINS)?))
}

/// Returns plan and number of a backup.
pub(crate) fn parts(pin: &str) -> Option<(&str, u64)> {
    let (plan, number) = pin.strip_prefix(PINS)?.rsplit_once('/')?;
    Some((plan, number.parse().ok()?))
}

pub(crate) fn blob_write(place: &GitContext, bytes: Vec<u8>, attempt: &str) -> Result<String, GitError> {
    let call = place.call_without_files(attempt).args(["hash-object", "-w", "--no-filters", "--stdin"]);
    Ok(call.stdin(bytes).run()?.text(attempt)?.trim_end().to_owned())
}
