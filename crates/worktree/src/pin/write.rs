//! Making pins: create-only, described in the same transaction, and read back before anybody relies on them.
//!
//! A pin of a clean branch is its head commit itself. One of a branch with uncommitted work is a commit on
//! top of the head that has everything in the directory; its second parent has what was staged, if that was
//! nowhere else. A second attempt at the same finds the pin of the first.

use std::thread;
use std::time::Duration;

use drydock_domain::{PINS, PinLine, SNAPSHOTS, Uncommitted};

use crate::capture::OwnFolder;
use crate::checkout::Checkout;
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::merge::{Signature, commit_tree};
use crate::name;
use crate::objects::objects;
use crate::pin::about::{ABOUTS, About, about_of, blob_write, parts};
use crate::private_index::{Copied, PrivateIndex};
use crate::refs::{object_at, update};
use crate::repository::{Repository, commit_at, head_branch, tree_of};
use crate::run::Place;
use crate::sync::staged_only;

/// How often a name that somebody else was quicker to take is followed by the next.
const TRIES_MAX: u32 = 500;
const PAUSE: Duration = Duration::from_millis(2);

/// For whom and why something is pinned.
#[derive(Debug, Clone, Copy)]
pub struct PinOrder<'a> {
    /// The plan.
    pub plan: &'a str,
    /// The run, if there is one.
    pub run: Option<&'a str>,
    /// Why, for a person to read.
    pub reason: &'a str,
    /// Who makes it, and when.
    pub signature: &'a Signature,
}

/// What is to be kept.
pub(crate) struct Content<'a> {
    pub(crate) head: &'a CommitId,
    pub(crate) held: Option<Held>,
    pub(crate) remote: Option<&'a CommitId>,
}

/// Uncommitted work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Everything in the directory.
    pub(crate) tree: TreeId,
    /// What is staged, if it is nowhere else.
    pub(crate) staged: Option<TreeId>,
}

/// Another ref to write in the transaction of the pin.
pub(crate) struct MarkerWrite<'a> {
    pub(crate) name: &'a str,
    /// What it must point to before; none when it must not exist.
    pub(crate) before: Option<&'a str>,
    pub(crate) text: &'a dyn Fn(&PinLine) -> Result<Vec<u8>, GitError>,
}

/// A pin that was read back, and the object of the marker.
pub(crate) struct Pinned {
    pub(crate) line: PinLine,
    pub(crate) marker: Option<String>,
}

impl Repository {
    /// Pins a commit, such as the tip of a branch that is about to be moved elsewhere.
    pub fn pin_branch(&self, order: &PinOrder<'_>, head: &CommitId) -> Result<PinLine, GitError> {
        let content = Content { head, held: None, remote: None };
        self.pin_write(order, &content, None).map(|pinned| pinned.line)
    }

    /// Pins what a directory holds beside its files: commits that no ref has, and staged content that neither its
    /// commit nor its files have. None when there is no such thing.
    pub fn pin_checkout(
        &self,
        order: &PinOrder<'_>,
        checkout: &Checkout,
    ) -> Result<Option<PinLine>, GitError> {
        let Some(head) = commit_at(&checkout.place, "HEAD")? else { return Ok(None) };
        let staged = staged_alone(checkout, &head)?;
        let branch = checkout.branch().map(name::branch_ref).transpose()?;
        if staged.is_none() && self.is_referred_to(&head, order.plan, branch.as_deref())? {
            return Ok(None);
        }
        let held = match staged {
            Some(staged) => Some(Held { tree: self.tree_of(&head)?, staged: Some(staged) }),
            None => None,
        };
        self.pin_write(order, &Content { head: &head, held, remote: None }, None)
            .map(|pinned| Some(pinned.line))
    }

    /// Tells whether a ref has a commit. Those that mostly do are asked first: there may be very many.
    fn is_referred_to(&self, commit: &CommitId, plan: &str, branch: Option<&str>) -> Result<bool, GitError> {
        let (snapshots, pins) = (format!("{SNAPSHOTS}{plan}/"), format!("{PINS}{plan}/"));
        let root = head_branch(self.place())?.map(|branch| name::branch_ref(&branch)).transpose()?;
        let likely = [branch, Some(&snapshots), Some(&pins), root.as_deref()];
        let likely: Vec<&str> = likely.into_iter().flatten().collect();
        if self.is_kept_by(commit, &likely)? {
            return Ok(true);
        }
        // HEADs of worktrees are not refs that stay.
        let call = self.call(format!("look for {commit} in the refs"));
        let call = call.args(["rev-list", "--max-count=1", commit.as_str(), "--not", "--glob=refs/*"]);
        Ok(call.run()?.stdout.is_empty())
    }

    /// Pins what is given, or finds the newest pin of the same.
    pub(crate) fn pin_write(
        &self,
        order: &PinOrder<'_>,
        content: &Content<'_>,
        marker: Option<&MarkerWrite<'_>>,
    ) -> Result<Pinned, GitError> {
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
            let line = PinLine {
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
                    return Ok(Pinned { line, marker: marked });
                }
                Err(error) if self.was_outrun(&error, &line, marker)? => thread::sleep(PAUSE),
                Err(error) => return Err(error),
            }
        }
        Err(GitError::unexpected(&attempt, format!("{TRIES_MAX} names in a row were taken")))
    }

    /// Tells whether somebody else took the name, or is about to: then the next may do. A marker that somebody else
    /// has changed means that we are not the one to go on.
    fn was_outrun(
        &self,
        error: &GitError,
        line: &PinLine,
        marker: Option<&MarkerWrite<'_>>,
    ) -> Result<bool, GitError> {
        if let Some(marker) = marker
            && object_at(self.place(), marker.name)?.as_deref() != marker.before
        {
            return Ok(false);
        }
        Ok(error.is_transient() || object_at(self.place(), &line.name)?.is_some())
    }

    /// Writes the commit to pin, unless it is the head itself, and what is said about it.
    fn write_objects(
        &self,
        order: &PinOrder<'_>,
        content: &Content<'_>,
        about: &About,
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

    fn keeps(&self, pin: &str, about: &About, attempt: &str) -> Result<bool, GitError> {
        let Some(beside) = about_of(pin) else { return Ok(false) };
        let Some(blob) = object_at(self.place(), &beside)? else { return Ok(false) };
        let found = objects(self.place(), &[&blob], attempt)?;
        let read = found.get(&blob).and_then(|bytes| serde_json::from_slice::<About>(bytes).ok());
        Ok(read.is_some_and(|read| read.keeps_the_same(about)))
    }

    /// Writes uncommitted work as a commit on top of a head.
    pub(crate) fn commit_held(
        &self,
        signature: &Signature,
        head: &CommitId,
        held: &Held,
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
        line: &PinLine,
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

    /// A pin counts from here on: its name leads to its commit, and all that the commit adds can be read.
    fn read_back(&self, line: &PinLine, attempt: &str) -> Result<(), GitError> {
        if object_at(self.place(), &line.name)?.as_deref() != Some(line.commit.as_str()) {
            return Err(GitError::unexpected(
                attempt,
                format!("{} was written, but reads otherwise", line.name),
            ));
        }
        let call = self.call(attempt).args(["rev-list", "--objects", "--quiet", &line.commit, "--not"]);
        call.arg(format!("{}^@", line.head)).run().map(drop)
    }
}

fn describe(order: &PinOrder<'_>, content: &Content<'_>) -> About {
    let held = content.held.as_ref();
    About {
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

/// Returns the tree of an index that holds what neither the commit nor the files have.
fn staged_alone(checkout: &Checkout, head: &CommitId) -> Result<Option<TreeId>, GitError> {
    let attempt = "look at what is staged";
    let is_there = checkout.path().is_dir();
    // Where the directory is gone, git needs another one to be started in; the index is in the record.
    let elsewhere = Place { work_tree: checkout.place.common_dir.clone(), ..checkout.place.clone() };
    let place = if is_there { &checkout.place } else { &elsewhere };
    let Copied::Index(copy) = PrivateIndex::copy_of(place, attempt)? else { return Ok(None) };
    // What is not merged has no tree; its sides are commits, and kept as such.
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
