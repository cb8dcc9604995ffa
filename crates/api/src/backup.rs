//! Backups: refs that keep commits and edits which left a branch.

use serde::{Deserialize, Serialize};

/// A backup ref and what it keeps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Backup {
    /// The ref.
    #[serde(rename = "ref")]
    pub reference: String,
    /// The commit it keeps.
    pub commit: String,
    /// The project whose repository has it.
    pub project: String,
    /// The plan whose branch it was made of.
    pub plan: String,
    /// The run, if one had started.
    pub run: Option<String>,
    /// Why it was made.
    pub reason: String,
    /// The commits that no ref has but those of plans, oldest first.
    pub commits: Vec<Commit>,
    /// Whether it keeps edits that were not committed.
    pub uncommitted: bool,
    /// When it was made.
    pub created_at: String,
    /// Why it must stay; absent when nothing would be lost with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<String>,
}

/// A commit, as a person recognises it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Commit {
    /// Its id.
    pub id: String,
    /// The first line of its message.
    pub subject: String,
    /// Who wrote it.
    #[serde(default)]
    pub author: String,
}

/// Which backups to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupQuery {
    /// Only those of this plan.
    pub plan: Option<String>,
}

/// Backups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Backups {
    /// The backups.
    pub backups: Vec<Backup>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
    /// The projects whose repositories could not be looked at, with the reason: there may be more backups.
    #[serde(default)]
    pub unseen: Vec<String>,
}

/// One backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneBackup {
    /// The backup.
    pub backup: Backup,
}

/// Brings a backup back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RestoreBackup {
    /// The new branch; without one, a name is made from the backup's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
}

/// A backup and the branch that has its commits now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct RestoredBackup {
    /// The backup.
    pub backup: Backup,
    /// The new branch.
    pub branch: String,
}

/// How to remove one backup.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DeleteBackup {
    /// Remove it though it is needed; only a person may.
    #[serde(default)]
    pub discard: bool,
}

/// Removes backups that nothing needs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PruneBackups {
    /// Only those of this plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    /// Tell what would be removed, and remove nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// What a prune removed and what it kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct PrunedBackups {
    /// Those that are gone, or would be.
    pub removed: Vec<Backup>,
    /// Those that stay, because they keep what nothing else does.
    pub kept: Vec<Backup>,
}
