//! Backups: refs that keep commits and edits removed from a branch.

use serde::{Deserialize, Serialize};

/// A backup ref and its content.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Backup {
    /// The backup's ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit that the ref points to.
    pub commit: String,
    /// The project whose repository contains it.
    pub project: String,
    /// The plan whose branch it was made from.
    pub plan: String,
    /// The run, if one had started.
    pub run: Option<String>,
    /// The reason for the backup.
    pub reason: String,
    /// The commits that are reachable only from refs of plans, oldest first.
    pub commits: Vec<Commit>,
    /// Whether it keeps uncommitted edits.
    pub uncommitted: bool,
    /// When it was made.
    pub created_at: String,
    /// Why it is still needed; absent if deleting it loses nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<String>,
}

/// A commit with its subject and author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Commit {
    /// The commit id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// The author's name.
    #[serde(default)]
    pub author: String,
}

/// Filters the list of backups.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupQuery {
    /// Only backups of this plan.
    pub plan: Option<String>,
}

/// Backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Backups {
    /// The backups.
    pub backups: Vec<Backup>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
    /// The projects whose repositories could not be read, with the reason. They may have more backups.
    #[serde(default)]
    pub unseen: Vec<String>,
}

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneBackup {
    /// The backup.
    pub backup: Backup,
}

/// Restores a backup as a new branch.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreBackup {
    /// The new branch; default: a name derived from the backup's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A backup and the branch it was restored to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RestoredBackup {
    /// The backup.
    pub backup: Backup,
    /// The new branch.
    pub branch: String,
}

/// Options for the removal of one backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteBackup {
    /// Delete it even if it is still needed; only for the role human.
    #[serde(default)]
    pub discard: bool,
}

/// Removes backups that are no longer needed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneBackups {
    /// Only backups of this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Report what would be removed, and remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// The backups that a prune removed and kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PrunedBackups {
    /// The removed backups, or those that would be removed.
    pub removed: Vec<Backup>,
    /// The backups that are still needed.
    pub kept: Vec<Backup>,
}
