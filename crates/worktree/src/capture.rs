//! Captures the content of a checkout as a commit: every tracked, new, changed or deleted file.
//!
//! A capture works on a private copy of the index. The agent's own index stays byte for byte the same, and an
//! index lock left by a killed agent does not matter. Ignored files are left out. So is `.drydock/`, the
//! directory through which drydock and its agents communicate: the capture contains the parent's version of
//! it.

use std::time::Duration;

use crate::checkout::Checkout;
use crate::diff::{RawChange, raw_changes};
use crate::error::GitError;
use crate::id::{CommitId, TreeId};
use crate::index_file;
use crate::intake::Intake;
use crate::merge::{Signature, commit_tree};
use crate::private_index::{GITLINK, IndexCopy, IndexEntry, IndexFlag, PrivateIndex};
use crate::repository::{Repository, tree_of};
use crate::run::{GitCall, GitContext, path_text};
use crate::submodule::{self, SubmoduleState};

/// The directory that never enters a capture.
pub(crate) const OWN_FOLDER: &str = ".drydock";

/// A captured commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// The commit, whose only parent is `parent`.
    pub commit: CommitId,
    /// The tree of the commit.
    pub tree: TreeId,
    /// The parent of the commit.
    pub parent: CommitId,
    empty: bool,
}

impl Captured {
    /// Returns true if the tree equals the parent's tree.
    pub fn is_empty(&self) -> bool {
        self.empty
    }
}

/// The content of a checkout, ready to become the next commit of its branch.
#[derive(Debug)]
pub struct Staged {
    pub(crate) index: PrivateIndex,
    commit: CommitId,
    tree: TreeId,
    parent: CommitId,
}

impl Staged {
    /// Returns the commit that holds the content: the parent itself if nothing differs from it.
    pub fn commit(&self) -> &CommitId {
        &self.commit
    }

    /// Returns the commit that the content was compared with.
    pub fn parent(&self) -> &CommitId {
        &self.parent
    }

    /// Returns the captured commit, or `None` if nothing differs from the parent.
    pub fn captured(&self) -> Option<Captured> {
        let Staged { commit, tree, parent, .. } = self;
        let captured =
            || Captured { commit: commit.clone(), tree: tree.clone(), parent: parent.clone(), empty: false };
        (commit != parent).then(captured)
    }
}

/// How a capture treats `.drydock/`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnFolder {
    AsInParent,
    AsFound,
}

/// The content of a directory as a tree, and an index that matches its files.
pub(crate) struct CapturedTree {
    pub(crate) index: PrivateIndex,
    pub(crate) tree: TreeId,
    pub(crate) changes: Vec<RawChange>,
}

impl Checkout {
    /// Returns this checkout for optional captures, which fail after `limit` or when a stop is requested.
    /// Used while an agent is running, because the agent can make any capture take arbitrarily long.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Checkout {
        Checkout { terms: self.terms.within(limit), ..self.clone() }
    }

    /// Captures the content of the directory as a commit on top of `parent`.
    ///
    /// Commits that the agent made are not part of the history; only their files are included.
    pub fn capture(
        &self,
        parent: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<Captured, GitError> {
        let attempt = format!("capture {}", self.path().display());
        let CapturedTree { tree, changes, .. } = self.snapshot(parent, OwnFolder::AsInParent, &attempt)?;
        for change in &changes {
            path_text(&change.path)?;
        }
        let commit = commit_tree(&self.place, &tree, std::slice::from_ref(parent), message, author)?;
        Ok(Captured { commit, tree, parent: parent.clone(), empty: changes.is_empty() })
    }

    /// Captures the content like [`Checkout::capture`], but writes no commit if nothing differs from the
    /// parent.
    pub fn capture_change(
        &self,
        parent: &CommitId,
        message: &str,
        author: &Signature,
    ) -> Result<Option<Captured>, GitError> {
        Ok(self.stage(parent, message, author)?.captured())
    }

    /// Captures the content like [`Checkout::capture_change`], and returns the matching index for
    /// [`Checkout::branch_to`].
    pub fn stage(&self, parent: &CommitId, message: &str, author: &Signature) -> Result<Staged, GitError> {
        let attempt = format!("capture {}", self.path().display());
        let CapturedTree { index, tree, changes } = self.snapshot(parent, OwnFolder::AsInParent, &attempt)?;
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

    /// Returns the paths in the directory that differ from a commit, including those in `.drydock/`.
    pub fn changed_paths(&self, base: &CommitId) -> Result<Vec<String>, GitError> {
        let attempt = format!("find the changes in {}", self.path().display());
        let CapturedTree { changes, .. } = self.snapshot(base, OwnFolder::AsFound, &attempt)?;
        changes.iter().map(|change| path_text(&change.path)).collect()
    }

    pub(crate) fn snapshot(
        &self,
        parent: &CommitId,
        own: OwnFolder,
        attempt: &str,
    ) -> Result<CapturedTree, GitError> {
        let patience = self.terms.patience();
        let guard = self.place.guard()?;
        let index = match PrivateIndex::copy_of(&self.place, attempt)? {
            IndexCopy::Index(index) => index,
            IndexCopy::Nothing(index) => {
                let call = self.place.call(attempt).index(&index.path());
                call.args(["read-tree", parent.as_str()]).run()?;
                index
            }
        };
        // The index format differs for object names of another length.
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
        // A gitlink to a commit that exists only in the agent's repository would lose the agent's work.
        let linked = |change: &&RawChange| change.mode_after == GITLINK;
        if let Some(nested) = changes.iter().filter(linked).find(|change| change.mode_before != GITLINK) {
            return Err(GitError::NestedRepository { path: lossy(&nested.path) });
        }
        match changes.iter().find(linked).map(|change| &change.path).or(links.filled.as_ref()) {
            Some(path) => Err(GitError::SubmoduleChanged { path: lossy(path) }),
            None => Ok(CapturedTree { index, tree, changes }),
        }
    }

    fn changes_since(&self, parent: &CommitId, tree: &TreeId) -> Result<Vec<RawChange>, GitError> {
        if tree_of(&self.place, parent)? == *tree {
            return Ok(Vec::new());
        }
        raw_changes(&self.place, parent, tree)
    }

    /// Clears the index flags that hide changes.
    fn unhide(&self, index: &PrivateIndex, entries: &[IndexEntry], attempt: &str) -> Result<(), GitError> {
        for (mark, option) in [
            (IndexFlag::AssumeUnchanged, "--no-assume-unchanged"),
            (IndexFlag::SkipWorktree, "--no-skip-worktree"),
        ] {
            let marked = entries.iter().filter(|entry| entry.mark == mark);
            let paths: Vec<u8> = marked.flat_map(|entry| [entry.path.as_slice(), b"\0"].concat()).collect();
            if !paths.is_empty() {
                let arranged =
                    |call: GitCall| call.args(["update-index", option, "-z", "--stdin"]).stdin(paths);
                index.entries_only(&self.place, attempt, arranged)?;
            }
        }
        Ok(())
    }

    /// Removes all gitlinks from the index and checks the path of each in the worktree.
    ///
    /// For a gitlink in the index, `git add` runs `git status` in the repository at that path, under that
    /// repository's configuration. The agent can replace that repository at any time (F1), so the index has
    /// no gitlinks during the call. Afterwards a gitlink is restored as the agent staged it, unless its path
    /// is no longer a directory.
    fn take_links_out(
        &self,
        index: &PrivateIndex,
        entries: &[IndexEntry],
        attempt: &str,
    ) -> Result<Links, GitError> {
        let mut links = Links { stay: Vec::new(), filled: None };
        let mut gone = Vec::new();
        for link in entries.iter().filter(|entry| entry.mode == GITLINK) {
            gone.push((0, link.id.as_str(), link.path.as_slice()));
            let found = submodule::look(self.path(), link);
            match found.map_err(|source| GitError::file(attempt, self.path(), source))? {
                SubmoduleState::Replaced => continue,
                SubmoduleState::Untouched => {}
                SubmoduleState::Files => links.filled = Some(link.path.clone()),
            }
            links.stay.push(link.clone());
        }
        if !gone.is_empty() {
            index.put(&self.place, &gone, attempt)?;
        }
        Ok(links)
    }
}

/// The gitlinks that an index had.
pub(crate) struct Links {
    /// Gitlinks to restore. Nothing is added at their paths.
    pub(crate) stay: Vec<IndexEntry>,
    /// The path of a gitlink whose directory contains files.
    filled: Option<Vec<u8>>,
}

impl Links {
    fn put_back(&self, index: &PrivateIndex, place: &GitContext, attempt: &str) -> Result<(), GitError> {
        if self.stay.is_empty() {
            return Ok(());
        }
        let sides: Vec<_> =
            self.stay.iter().map(|link| (link.mode, link.id.as_str(), link.path.as_slice())).collect();
        index.put(place, &sides, attempt)
    }
}

impl Repository {
    /// Returns the commit, or a new commit on top of it in which `.drydock/` is the same as in `base`, so
    /// that agents' changes to `.drydock/` never land.
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

/// Converts git's error for a nested repository without commits, which git cannot record as a gitlink.
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
