//! Creates backups: create-only, with metadata in the same transaction, and read back before they are relied
//! on.
//!
//! A backup of a clean branch is its head commit. A backup of a branch with uncommitted work is a commit on
//! top of the head with the content of the directory; its second parent has the staged content, if that
//! exists nowhere else. A repeated attempt finds the backup of the first.

use std::thread;
use std::time::Duration;

use drydock_domain::{BackupRef, PINS, SNAPSHOTS, Uncommitted};

use crate::capture::OwnFolder;
use crate::checkout::Checkout;
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::merge::{Signature, commit_tree};
use crate::name;
use crate::objects::objects;
use crate::pin::about::{ABOUTS, BackupMetadata, about_of, blob_write, parts};
use crate::private_index::{IndexCopy, PrivateIndex};
use crate::refs::{object_at, update};
use crate::repository::{Repository, commit_at, head_branch, tree_of};
use crate::run::GitContext;
use crate::sync::staged_only;

/// Maximum number of attempts when a concurrent process takes the next free name.
const TRIES_MAX: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// The plan, run and reason of a backup.
#[derive(Debug, Clone, Copy)]
pub struct BackupRequest<'a> {
    /// Id of the plan.
    pub plan: &'a str,
    /// Id of the run, if there is one.
    pub run: Option<&'a str>,
    /// Why the backup is made, shown to the user.
    pub reason: &'a str,
    /// Author and time of the backup.
    pub signature: &'a Signature,
}

/// The content to keep.
pub(crate) struct BackupContent<'a> {
    pub(crate) head: &'a CommitId,
    pub(crate) held: Option<UncommittedWork>,
    pub(crate) remote: Option<&'a CommitId>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UncommittedWork {
    /// The content of the directory.
    pub(crate) tree: TreeId,
    /// The staged content, if it exists nowhere else.
    pub(crate) staged: Option<TreeId>,
}

/// Another ref to write in the same transaction as the backup.
pub(crate) struct MarkerWrite<'a> {
    pub(crate) name: &'a str,
    /// The expected object before the write, or `None` if the ref must not exist.
    pub(crate) before: Option<&'a str>,
    pub(crate) text: &'a dyn Fn(&BackupRef) -> Result<Vec<u8>, GitError>,
}

/// A backup that was read back, and the object of the marker.
pub(crate) struct WrittenBackup {
    pub(crate) line: BackupRef,
    pub(crate) marker: Option<String>,
}

impl Repository {
    /// Backs up a commit, such as the tip of a branch that is about to be moved.
    pub fn backup_branch(&self, order: &BackupRequest<'_>, head: &CommitId) -> Result<BackupRef, GitError> {
        let content = BackupContent { head, held: None, remote: None };
        self.backup_write(order, &content, None).map(|pinned| pinned.line)
    }

    /// Backs up content of a directory that is not in its files: commits that are in no ref, and staged
    /// content that neither its commit nor its files contain. Returns `None` if there is none.
    pub fn backup_checkout(
        &self,
        order: &BackupRequest<'_>,
        checkout: &Checkout,
    ) -> Result<Option<BackupRef>, GitError> {
        let Some(head) = commit_at(&checkout.place, "HEAD")? else { return Ok(None) };
        let staged = staged_alone(checkout, &head)?;
        let branch = checkout.branch().map(name::branch_ref).transpose()?;
        if staged.is_none() && self.is_referred_to(&head, order.plan, branch.as_deref())? {
            return Ok(None);
        }
        let held = match staged {
            Some(staged) => Some(UncommittedWork { tree: self.tree_of(&head)?, staged: Some(staged) }),
            None => None,
        };
        self.backup_write(order, &BackupContent { head: &head, held, remote: None }, None)
            .map(|pinned| Some(pinned.line))
    }

    /// Returns true if a commit is reachable from a ref. The most likely refs are checked first, because
    /// there may be very many.
    fn is_referred_to(&self, commit: &CommitId, plan: &str, branch: Option<&str>) -> Result<bool, GitError> {
        let (snapshots, pins) = (format!("{SNAPSHOTS}{plan}/"), format!("{PINS}{plan}/"));
        let root = head_branch(self.place())?.map(|branch| name::branch_ref(&branch)).transpose()?;
        let likely = [branch, Some(&snapshots), Some(&pins), root.as_deref()];
        let likely: Vec<&str> = likely.into_iter().flatten().collect();
        if self.is_kept_by(commit, &likely)? {
            return Ok(true);
        }
        // HEADs of worktrees are not permanent refs.
        let call = self.call(format!("look for {commit} in the refs"));
        let call = call.args(["rev-list", "--max-count=1", commit.as_str(), "--not", "--glob=refs/*"]);
        Ok(call.run()?.stdout.is_empty())
    }

    /// Writes a backup, or finds the newest backup if it has the same content.
    pub(crate) fn backup_write(
        &self,
        order: &BackupRequest<'_>,
        content: &BackupContent<'_>,
        marker: Option<&MarkerWrite<'_>>,
    ) -> Result<WrittenBackup, GitError> {
        let attempt = format!("pin {}", content.head);
        let prefix = format!("{PINS}{}/", order.plan);
        name::full_ref(&format!("{prefix}1"))?;
        let about = describe(order, content);
        let mut written: Option<(CommitId, String)> = None;
        for _ in 0..TRIES_MAX {
            let pins = self.refs(&prefix)?;
            let numbered = pins.iter().filter_map(|(name, at)| Some((parts(name)?.1, name, at)));
            let newest = numbered.max_by_key(|(number, _, _)| *number);
            let (name, commit, mut records) = match newest {
                Some((_, name, at)) if marker.is_none() && self.keeps(name, &about, &attempt)? => {
                    (name.clone(), at.clone(), format!("verify {name}\0{at}\0"))
                }
                Some(_) | None => {
                    let objects = match written.take() {
                        Some(objects) => objects,
                        None => self.write_objects(order, content, &about, &attempt)?,
                    };
                    let (commit, blob) = written.insert(objects).clone();
                    let number = newest.map_or(0, |(number, _, _)| number) + 1;
                    let (name, beside) =
                        (format!("{prefix}{number}"), format!("{ABOUTS}{}/{number}", order.plan));
                    let records = format!("create {name}\0{commit}\0create {beside}\0{blob}\0");
                    (name, commit, records)
                }
            };
            let line = BackupRef {
                name,
                commit: commit.to_string(),
                head: content.head.to_string(),
                uncommitted: about.uncommitted,
            };
            let marked = match marker {
                Some(marker) => Some(self.marker_record(marker, &line, &mut records, &attempt)?),
                None => None,
            };
            match update(self.place(), &attempt, records) {
                Ok(()) => {
                    self.read_back(&line, &attempt)?;
                    return Ok(WrittenBackup { line, marker: marked });
                }
                Err(error) if self.was_outrun(&error, &line, marker)? => thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        Err(GitError::unexpected(&attempt, format!("{TRIES_MAX} names in a row were taken")))
    }

    /// Returns true if another process took the name or is about to: then the next name is tried. If another
    /// process changed the marker, this attempt must not continue.
    fn was_outrun(
        &self,
        error: &GitError,
        line: &BackupRef,
        marker: Option<&MarkerWrite<'_>>,
    ) -> Result<bool, GitError> {
        if let Some(marker) = marker
            && object_at(self.place(), marker.name)?.as_deref() != marker.before
        {
            return Ok(false);
        }
        Ok(error.is_transient() || object_at(self.place(), &line.name)?.is_some())
    }

    /// Writes the backup commit, unless it is the head itself, and the metadata.
    fn write_objects(
        &self,
        order: &BackupRequest<'_>,
        content: &BackupContent<'_>,
        about: &BackupMetadata,
        attempt: &str,
    ) -> Result<(CommitId, String), GitError> {
        let commit = match &content.held {
            None => content.head.clone(),
            Some(held) => self.commit_held(order.signature, content.head, held)?,
        };
        let text =
            serde_json::to_vec(about).map_err(|error| GitError::unexpected(attempt, error.to_string()))?;
        Ok((commit, blob_write(self.place(), text, attempt)?))
    }

    fn keeps(&self, pin: &str, about: &BackupMetadata, attempt: &str) -> Result<bool, GitError> {
        let Some(beside) = about_of(pin) else { return Ok(false) };
        let Some(blob) = object_at(self.place(), &beside)? else { return Ok(false) };
        let found = objects(self.place(), &[&blob], attempt)?;
        let read = found.get(&blob).and_then(|bytes| serde_json::from_slice::<BackupMetadata>(bytes).ok());
        Ok(read.is_some_and(|read| read.keeps_the_same(about)))
    }

    /// Writes uncommitted work as a commit on top of a head.
    pub(crate) fn commit_held(
        &self,
        signature: &Signature,
        head: &CommitId,
        held: &UncommittedWork,
    ) -> Result<CommitId, GitError> {
        let commit = |tree: &TreeId, parents: &[CommitId], message: &str| {
            commit_tree(self.place(), tree, parents, message, signature)
        };
        let mut parents = vec![head.clone()];
        if let Some(staged) = &held.staged {
            parents.push(commit(staged, std::slice::from_ref(head), "staged, not committed")?);
        }
        commit(&held.tree, &parents, "not committed")
    }

    fn marker_record(
        &self,
        marker: &MarkerWrite<'_>,
        line: &BackupRef,
        records: &mut String,
        attempt: &str,
    ) -> Result<String, GitError> {
        let blob = blob_write(self.place(), (marker.text)(line)?, attempt)?;
        let name = marker.name;
        records.push_str(&match marker.before {
            Some(before) => format!("update {name}\0{blob}\0{before}\0"),
            None => format!("create {name}\0{blob}\0"),
        });
        Ok(blob)
    }

    /// Checks that the backup's name leads to its commit and that all objects the commit adds can be read.
    /// Only then may callers rely on it.
    fn read_back(&self, line: &BackupRef, attempt: &str) -> Result<(), GitError> {
        if object_at(self.place(), &line.name)?.as_deref() != Some(line.commit.as_str()) {
            return Err(GitError::unexpected(
                attempt,
                format!("{} was written, but reads back differently", line.name),
            ));
        }
        let call = self.call(attempt).args(["rev-list", "--objects", "--quiet", &line.commit, "--not"]);
        call.arg(format!("{}^@", line.head)).run().map(drop)
    }
}

fn describe(order: &BackupRequest<'_>, content: &BackupContent<'_>) -> BackupMetadata {
    let held = content.held.as_ref();
    BackupMetadata {
        plan: order.plan.to_owned(),
        run: order.run.map(str::to_owned),
        reason: order.reason.to_owned(),
        created_at: order.signature.at_seconds,
        uncommitted: if held.is_some() { Uncommitted::Kept } else { Uncommitted::Nothing },
        head: content.head.to_string(),
        tree: held.map(|held| held.tree.to_string()),
        staged: held.and_then(|held| held.staged.as_ref()).map(TreeId::to_string),
        remote: content.remote.map(CommitId::to_string),
    }
}

/// Returns the tree of the index if it has content that neither the commit nor the files contain.
fn staged_alone(checkout: &Checkout, head: &CommitId) -> Result<Option<TreeId>, GitError> {
    let attempt = "read the staged changes";
    let is_there = checkout.path().is_dir();
    // If the directory is missing, git needs another one to start in; the index is in the record.
    let elsewhere = GitContext { work_tree: checkout.place.common_dir.clone(), ..checkout.place.clone() };
    let place = if is_there { &checkout.place } else { &elsewhere };
    let IndexCopy::Index(copy) = PrivateIndex::copy_of(place, attempt)? else { return Ok(None) };
    // An unmerged index has no tree; its sides are commits and are kept as such.
    if copy.entries(place, attempt)?.iter().any(|entry| entry.stage != 0) {
        return Ok(None);
    }
    let staged = copy.write_tree(place, attempt)?;
    let head_tree = tree_of(place, head)?;
    if !is_there {
        return Ok((staged != head_tree).then_some(staged));
    }
    let found = checkout.snapshot(head, OwnFolder::AsInParent, attempt)?.tree;
    Ok(staged_only(place, &head_tree, &staged, &found)?.then_some(staged))
}
