//! Lists backups, restores them as a branch, and removes those that are safe to delete.

use drydock_domain::{CommitLine, PINS, Uncommitted};

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::objects::objects;
use crate::pin::about::{ABOUTS, BackupMetadata, about_of, parts};
use crate::pin::alone::Alone;
use crate::refs::{RefCreated, RefDeleted, object_at, update};
use crate::repository::Repository;

/// A backup and its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupDetails {
    /// Full name of the ref.
    pub name: String,
    /// The commit that the ref keeps.
    pub commit: CommitId,
    /// The commit of the branch.
    pub head: CommitId,
    /// Id of the plan.
    pub plan: String,
    /// Id of the run, if there was one.
    pub run: Option<String>,
    /// Why the backup was made.
    pub reason: String,
    /// The commits that are in no ref other than those of plans, oldest first.
    pub commits: Vec<CommitLine>,
    /// Whether it keeps uncommitted edits.
    pub uncommitted: Uncommitted,
    /// The remote's commit from which the branch had diverged.
    pub remote: Option<String>,
    /// Creation time, in seconds since 1970.
    pub created_at_seconds: i64,
    /// Why it must be kept, as far as the repository shows; `None` if its content also exists elsewhere.
    pub needed: Option<String>,
}

/// The outcome of restoring a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RestoreOutcome {
    /// The branch was created.
    Created {
        /// The backup's commit, to which the branch points.
        commit: CommitId,
    },
    /// The branch already existed and was not changed.
    BranchExists {
        /// The commit of the branch.
        at: CommitId,
    },
    /// The backup does not exist.
    NoSuchPin,
}

/// The outcome of removing a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinDropped {
    /// The backup was removed.
    Gone(Box<BackupDetails>),
    /// The backup is needed and was not removed.
    Needed(Box<BackupDetails>),
    /// The backup does not exist.
    Absent,
}

impl Repository {
    /// Lists the backups of a plan, or all backups, by plan and then oldest first.
    pub fn backup_list(&self, plan: Option<&str>) -> Result<Vec<BackupDetails>, GitError> {
        let below = plan.map_or_else(String::new, |plan| format!("{plan}/"));
        let attempt = "list the backups";
        let mut pins = self.refs(&format!("{PINS}{below}"))?;
        pins.retain(|(name, _)| parts(name).is_some());
        pins.sort_by(|(one, _), (other, _)| parts(one).cmp(&parts(other)));
        let beside = self.refs(&format!("{ABOUTS}{below}"))?;
        let blob = |pin: &str| {
            let name = about_of(pin)?;
            beside.iter().find(|(found, _)| *found == name).map(|(_, id)| id.as_str())
        };
        let blobs: Vec<&str> = pins.iter().filter_map(|(name, _)| blob(name)).collect();
        let texts = objects(self.place(), &blobs, attempt)?;
        let describe = |(name, commit): &(String, CommitId)| {
            let text = blob(name).and_then(|blob| texts.get(blob));
            let about = text.and_then(|text| serde_json::from_slice::<BackupMetadata>(text).ok());
            self.backup_of(name, commit, about)
        };
        pins.iter().map(describe).collect()
    }

    /// Finds a backup by its full name, or by plan and number such as `p/1`.
    pub fn backup_find(&self, name: &str) -> Result<Option<BackupDetails>, GitError> {
        let full = full_name(name)?;
        let Some(commit) = self.ref_read(&full)? else { return Ok(None) };
        let blob = match about_of(&full) {
            Some(beside) => object_at(self.place(), &beside)?,
            None => None,
        };
        let texts =
            objects(self.place(), &blob.iter().map(String::as_str).collect::<Vec<_>>(), "read a backup")?;
        let about = texts.values().next().and_then(|text| serde_json::from_slice(text).ok());
        self.backup_of(&full, &commit, about).map(Some)
    }

    /// Creates a branch at a backup; an existing branch stays unchanged.
    pub fn backup_restore(&self, name: &str, branch: &str) -> Result<RestoreOutcome, GitError> {
        let Some(commit) = self.ref_read(&full_name(name)?)? else { return Ok(RestoreOutcome::NoSuchPin) };
        match self.ref_create(&name::branch_ref(branch)?, &commit)? {
            RefCreated::Created => Ok(RestoreOutcome::Created { commit }),
            RefCreated::Exists(at) => Ok(RestoreOutcome::BranchExists { at }),
        }
    }

    /// Removes a backup that is safe to delete. With `anyway`, removes a needed one too.
    pub fn backup_drop(&self, name: &str, anyway: bool) -> Result<PinDropped, GitError> {
        // Serialised with callers that create a backup and then move a branch.
        let _lock = self.lock("remove a backup")?;
        let Some(pin) = self.backup_find(name)? else { return Ok(PinDropped::Absent) };
        if pin.needed.is_some() && !anyway {
            return Ok(PinDropped::Needed(Box::new(pin)));
        }
        Ok(match self.backup_remove(&pin.name, &pin.commit)? {
            RefDeleted::Deleted => PinDropped::Gone(Box::new(pin)),
            RefDeleted::Absent => PinDropped::Absent,
            RefDeleted::Moved { .. } => PinDropped::Needed(Box::new(BackupDetails {
                needed: Some("it was changed concurrently".to_owned()),
                ..pin
            })),
        })
    }

    /// Returns why a backup must be kept: only it keeps commits or edits, or a recovery needs it.
    fn reason_to_keep(&self, name: &str, plan: &str, alone: &Alone) -> Result<Option<String>, GitError> {
        if let Some(reason) = alone.reason() {
            return Ok(Some(reason));
        }
        let named = self.recovery_pin(plan)?.as_deref() == Some(name);
        Ok(named.then(|| "an unfinished recovery needs it".to_owned()))
    }

    /// Removes a backup and its metadata in one transaction.
    fn backup_remove(&self, full: &str, commit: &CommitId) -> Result<RefDeleted, GitError> {
        let attempt = format!("remove {full}");
        let mut records = format!("delete {full}\0{commit}\0");
        if let Some(beside) = about_of(full)
            && let Some(blob) = object_at(self.place(), &beside)?
        {
            records.push_str(&format!("delete {beside}\0{blob}\0"));
        }
        let Err(error) = update(self.place(), &attempt, records) else { return Ok(RefDeleted::Deleted) };
        match self.ref_read(full)? {
            None => Ok(RefDeleted::Absent),
            Some(found) if found != *commit => Ok(RefDeleted::Moved { found }),
            Some(_) => Err(error),
        }
    }

    fn backup_of(
        &self,
        name: &str,
        commit: &CommitId,
        about: Option<BackupMetadata>,
    ) -> Result<BackupDetails, GitError> {
        let (head, uncommitted) = match &about {
            Some(about) => (about.head.parse().unwrap_or_else(|_| commit.clone()), about.uncommitted),
            // Only the commit is known; everything it keeps counts as its own.
            None => (commit.clone(), Uncommitted::Nothing),
        };
        let alone = self.alone(commit, &head)?;
        let plan = parts(name).map_or("", |(plan, _)| plan).to_owned();
        let (run, reason, remote, created_at_seconds) = match about {
            Some(about) => (about.run, about.reason, about.remote, about.created_at),
            None => {
                let made = self.commit_head(commit)?.at_seconds;
                (None, "its metadata is missing".to_owned(), None, made)
            }
        };
        let needed = self.reason_to_keep(name, &plan, &alone)?;
        let commit = commit.clone();
        Ok(BackupDetails {
            name: name.to_owned(),
            commit,
            head,
            plan,
            run,
            reason,
            commits: alone.commits,
            uncommitted,
            remote,
            created_at_seconds,
            needed,
        })
    }
}

/// Returns the full name of a backup, and an error for any other ref.
fn full_name(name: &str) -> Result<String, GitError> {
    let full = if name.starts_with("refs/") { name.to_owned() } else { format!("{PINS}{name}") };
    name::full_ref(&full)?;
    match parts(&full) {
        Some(_) => Ok(full),
        None => Err(GitError::BadName { name: name.to_owned(), reason: "it is not the name of a backup" }),
    }
}
