//! Capturing what is in a checkout: every file that is tracked, new, changed or deleted, as a commit.
//!
//! The work is done on a private copy of the index, so the agent's own stays byte for byte as it is,
//! and a lock that a killed agent left does not matter. Ignored files stay out. So does `.drydock/`,
//! which is for drydock and its agents to talk through: the capture has of it what the parent has.

use std::time::Duration;

use crate::checkout::Checkout;
use crate::diff::{RawChange, raw_changes};
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::index_file;
use crate::intake::Intake;
use crate::merge::{Signature, commit_tree};
use crate::private_index::{Copied, Entry, GITLINK, Mark, PrivateIndex};
use crate::repository::{Repository, tree_of};
use crate::run::{Call, Place, path_text};
use crate::submodule::{self, Found};

/// The directory that never enters a capture.
pub(crate) const OWN_FOLDER: &str = ".drydock";

/// A captured commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The commit, whose one parent is the one that was given.
    pub commit: CommitId,
    /// Its tree.
    pub tree: TreeId,
    /// Its parent.
    pub parent: CommitId,
    empty: bool,
}

impl Captured {
    /// Tells whether nothing differs from the parent.
    pub fn is_empty(&self) -> bool {
        self.empty
    }
}

/// Everything in a checkout, ready to become its branch's next commit.
#[derive(Debug)]
pub struct Staged {
    pub(crate) index: PrivateIndex,
    commit: CommitId,
    tree: TreeId,
    parent: CommitId,
}

impl Staged {
    /// Returns the commit that holds everything: the parent itself when nothing differs from it.
    pub fn commit(&self) -> &CommitId {
        &self.commit
    }

    /// Returns the commit that it was compared with.
    pub fn parent(&self) -> &CommitId {
        &self.parent
    }

    /// Returns what was captured; nothing when nothing differs from the parent.
    pub fn captured(&self) -> Option<Captured> {
        let Staged { commit, tree, parent, .. } = self;
        let captured =
            || Captured { commit: commit.clone(), tree: tree.clone(), parent: parent.clone(), empty: false };
        (commit != parent).then(captured)
    }
}

/// What a snapshot does with `.drydock/`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnFolder {
    AsInParent,
    AsFound,
}

/// Everything in a directory, as a tree and as an index that knows its files.
pub(crate) struct Snapshot {
    pub(crate) index: PrivateIndex,
    pub(crate) tree: TreeId,
    pub(crate) changes: Vec<RawChange>,
}

impl Checkout {
    /// Returns the same checkout for captures that may be left out: one that takes longer fails, and so does one that is
    /// asked to stop. For an agent that lives and can make any capture last.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Checkout {
        Checkout { terms: self.terms.within(limit), ..self.clone() }
    }

    /// Captures everything in the directory as a commit on top of a parent.
    ///
    /// Commits that the agent made itself are part of the result as far as their files are.
    pub fn capture(
        &self,
        parent: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<Captured, GitError> {
        let attempt = format!("capture {}", self.path().display());
        let Snapshot { tree, changes, .. } = self.snapshot(parent, OwnFolder::AsInParent, &attempt)?;
        for change in &changes {
            path_text(&change.path)?;
        }
        let commit = commit_tree(&self.place, &tree, std::slice::from_ref(parent), message, author)?;
        Ok(Captured { commit, tree, parent: parent.clone(), empty: changes.is_empty() })
    }

    /// Captures everything in the directory like [`Checkout::capture`]; writes nothing when nothing differs from the parent.
    pub fn capture_change(
        &self,
        parent: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<Option<Captured>, GitError> {
        Ok(self.stage(parent, message, author)?.captured())
    }

    /// Captures everything like [`Checkout::capture_change`], and keeps the index that agrees with it for
    /// [`Checkout::branch_to`].
    pub fn stage(&self, parent: &CommitId, message: &str, author: &Signature) -> Result<Staged, GitError> {
        let attempt = format!("capture {}", self.path().display());
        let Snapshot { index, tree, changes } = self.snapshot(parent, OwnFolder::AsInParent, &attempt)?;
        for change in &changes {
            path_text(&change.path)?;
        }
        let commit = if changes.is_empty() {
            parent.clone()
        } else {
            commit_tree(&self.place, &tree, std::slice::from_ref(parent), message, author)?
        };
        Ok(Staged { index, commit, tree, parent: parent.clone() })
    }

    /// Returns the paths in the directory that differ from a commit, those in `.drydock/` included.
    pub fn changed_paths(&self, base: &CommitId) -> Result<Vec<String>, GitError> {
        let attempt = format!("look for changes in {}", self.path().display());
        let Snapshot { changes, .. } = self.snapshot(base, OwnFolder::AsFound, &attempt)?;
        changes.iter().map(|change| path_text(&change.path)).collect()
    }

    pub(crate) fn snapshot(
        &self,
        parent: &CommitId,
        own: OwnFolder,
        attempt: &str,
    ) -> Result<Snapshot, GitError> {
        let patience = self.terms.patience();
        let guard = self.place.guard()?;
        let index = match PrivateIndex::copy_of(&self.place, attempt)? {
            Copied::Index(index) => index,
            Copied::Nothing(index) => {
                let call = self.place.call(attempt).index(&index.path());
                call.args(["read-tree", parent.as_str()]).run()?;
                index
            }
        };
        // Object names of another length make an index of another shape.
        let plain = parent.as_str().len() == index_file::OBJECT_NAME && index.is_plain();
        let entries = if plain { Vec::new() } else { index.entries(&self.place, attempt)? };
        self.unhide(&index, &entries, attempt)?;
        let links = self.take_links_out(&index, &entries, attempt)?;
        let mut settings = guard;
        settings.push(("core.sparseCheckout".to_owned(), "false".to_owned()));
        let (patience, settings) = (&patience, &settings);
        let intake = Intake { checkout: self, index: &index, parent, own, links: &links, patience, settings };
        intake.admit(attempt)?;
        let call = self.place.call(attempt).index(&index.path()).settings(settings);
        let call = call.args(["add", "--all", "--pathspec-from-file=-", "--pathspec-file-nul"]);
        call.stdin(intake.pathspecs()).patience(patience).run().map_err(name_nested)?;
        links.put_back(&index, &self.place, attempt)?;
        let mut tree = index.write_tree(&self.place, attempt)?;
        let mut changes = self.changes_since(parent, &tree)?;
        if own == OwnFolder::AsInParent && changes.iter().any(is_own) {
            let own = changes.iter().filter(|change| is_own(change));
            let before: Vec<_> = own.map(|c| (c.mode_before, c.before.as_str(), c.path.as_slice())).collect();
            index.put(&self.place, &before, attempt)?;
            tree = index.write_tree(&self.place, attempt)?;
            changes = self.changes_since(parent, &tree)?;
        }
        // A link to a commit that is in no repository but the agent's would lose the agent's work.
        let linked = |change: &&RawChange| change.mode_after == GITLINK;
        if let Some(nested) = changes.iter().filter(linked).find(|change| change.mode_before != GITLINK) {
            return Err(GitError::NestedRepository { path: lossy(&nested.path) });
        }
        match changes.iter().find(linked).map(|change| &change.path).or(links.filled.as_ref()) {
            Some(path) => Err(GitError::SubmoduleChanged { path: lossy(path) }),
            None => Ok(Snapshot { index, tree, changes }),
        }
    }

    fn changes_since(&self, parent: &CommitId, tree: &TreeId) -> Result<Vec<RawChange>, GitError> {
        if tree_of(&self.place, parent)? == *tree {
            return Ok(Vec::new());
        }
        raw_changes(&self.place, parent, tree)
    }

    /// Clears flags that hide changes.
    fn unhide(&self, index: &PrivateIndex, entries: &[Entry], attempt: &str) -> Result<(), GitError> {
        for (mark, option) in
            [(Mark::AssumeUnchanged, "--no-assume-unchanged"), (Mark::SkipWorktree, "--no-skip-worktree")]
        {
            let marked = entries.iter().filter(|entry| entry.mark == mark);
            let paths: Vec<u8> = marked.flat_map(|entry| [entry.path.as_slice(), b"\0"].concat()).collect();
            if !paths.is_empty() {
                let arranged = |call: Call| call.args(["update-index", option, "-z", "--stdin"]).stdin(paths);
                index.entries_only(&self.place, attempt, arranged)?;
            }
        }
        Ok(())
    }

    /// Takes all links to other repositories out of the index, and checks the path of each in the worktree.
    ///
    /// For a link that is in the index, `add` runs `status` in the repository that it finds at the path, under the
    /// configuration of that repository. The agent can exchange that repository at any time (F1), so the index has no
    /// links meanwhile. A link stays as the agent has staged it, unless its path is not a directory any more.
    fn take_links_out(
        &self,
        index: &PrivateIndex,
        entries: &[Entry],
        attempt: &str,
    ) -> Result<Links, GitError> {
        let mut links = Links { stay: Vec::new(), filled: None };
        let mut gone = Vec::new();
        for link in entries.iter().filter(|entry| entry.mode == GITLINK) {
            gone.push((0, link.id.as_str(), link.path.as_slice()));
            let found = submodule::look(self.path(), link);
            match found.map_err(|source| GitError::file(attempt, self.path(), source))? {
                Found::Replaced => continue,
                Found::Untouched => {}
                Found::Files => links.filled = Some(link.path.clone()),
            }
            links.stay.push(link.clone());
        }
        if !gone.is_empty() {
            index.put(&self.place, &gone, attempt)?;
        }
        Ok(links)
    }
}

/// The links to other repositories that an index had.
pub(crate) struct Links {
    /// Those that stay. Nothing is added in their places.
    pub(crate) stay: Vec<Entry>,
    /// The place of one of them that has files of its own.
    filled: Option<Vec<u8>>,
}

impl Links {
    fn put_back(&self, index: &PrivateIndex, place: &Place, attempt: &str) -> Result<(), GitError> {
        if self.stay.is_empty() {
            return Ok(());
        }
        let sides: Vec<_> =
            self.stay.iter().map(|link| (link.mode, link.id.as_str(), link.path.as_slice())).collect();
        index.put(place, &sides, attempt)
    }
}

impl Repository {
    /// Returns the commit, or one on top of it that has of `.drydock/` what the base has, so that it never lands.
    pub fn without_own_folder(
        &self,
        base: &CommitId,
        commit: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<CommitId, GitError> {
        if base == commit {
            return Ok(commit.clone());
        }
        let attempt = format!("leave {OWN_FOLDER} out of {commit}");
        let changes = raw_changes(self.place(), base, &self.tree_of(commit)?)?;
        let own: Vec<_> = changes.iter().filter(|change| is_own(change)).collect();
        if own.is_empty() {
            return Ok(commit.clone());
        }
        let index = PrivateIndex::empty(self.place(), &attempt)?;
        let call = self.place().call(&attempt).index(&index.path());
        call.args(["read-tree", commit.as_str()]).run()?;
        let before: Vec<_> =
            own.iter().map(|c| (c.mode_before, c.before.as_str(), c.path.as_slice())).collect();
        index.put(self.place(), &before, &attempt)?;
        let tree = index.write_tree(self.place(), &attempt)?;
        self.commit(&tree, std::slice::from_ref(commit), message, author)
    }
}

pub(crate) fn is_own(change: &RawChange) -> bool {
    match change.path.strip_prefix(OWN_FOLDER.as_bytes()) {
        Some(rest) => rest.is_empty() || rest.starts_with(b"/"),
        None => false,
    }
}

/// A repository without commits is no link that git could record; it says so by failing.
fn name_nested(error: GitError) -> GitError {
    let GitError::Failed { detail, .. } = &error else { return error };
    let line = detail.lines().find(|line| line.ends_with("does not have a commit checked out"));
    let name = line.and_then(|line| line.split('\'').nth(1));
    match name {
        Some(name) => GitError::NestedRepository { path: name.trim_end_matches('/').to_owned() },
        None => error,
    }
}

fn lossy(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}
