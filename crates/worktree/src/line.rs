//! Commit history: authorship, merge bases, and moving a branch to another commit.

use std::collections::{BTreeMap, BTreeSet};

use drydock_domain::CommitLine;

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::repository::Repository;
use crate::sync::commits;
use crate::worktrees::Worktree;

/// How to recognise a plan's own commits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Own {
    /// By their ids.
    Ids(BTreeSet<String>),
    /// By a line in their message; used for older runs.
    Mark(String),
}

impl Repository {
    /// Lists the commits up to `tip` that are not in `known` and not the plan's own, oldest first. A commit
    /// with the same tree as its first parent is skipped, because it adds no changes; an example is a commit
    /// that puts a branch on top of another.
    pub fn foreign(
        &self,
        known: &[CommitId],
        tip: &CommitId,
        own: &Own,
    ) -> Result<Vec<CommitLine>, GitError> {
        let mut revisions = match own {
            Own::Ids(_) => Vec::new(),
            Own::Mark(mark) => {
                vec!["--invert-grep".to_owned(), "--fixed-strings".to_owned(), format!("--grep={mark}")]
            }
        };
        revisions.push(tip.to_string());
        revisions.extend(known.iter().map(|commit| format!("^{commit}")));
        let mut foreign = Vec::new();
        for walked in commits(self.place(), &revisions)? {
            let is_own = match own {
                Own::Ids(ids) => ids.contains(walked.id.as_str()),
                Own::Mark(_) => false,
            };
            let adds_nothing = || match walked.parents.first() {
                Some(parent) => Ok::<_, GitError>(self.tree_of(parent)? == walked.tree),
                None => Ok(false),
            };
            if !is_own && !adds_nothing()? {
                foreign.push(walked.line);
            }
        }
        Ok(foreign)
    }

    /// Returns the author of the last change of each path between two commits, for paths whose last change is
    /// not the plan's.
    pub fn authors(
        &self,
        from: &CommitId,
        to: &CommitId,
        own: &Own,
    ) -> Result<BTreeMap<String, String>, GitError> {
        let foreign = self.foreign(std::slice::from_ref(from), to, own)?;
        let mut authors = BTreeMap::new();
        if foreign.is_empty() {
            return Ok(authors);
        }
        let authors_of: BTreeMap<_, _> = foreign.into_iter().map(|line| (line.id, line.author)).collect();
        for walked in commits(self.place(), &[format!("{from}..{to}")])? {
            let Some(parent) = walked.parents.first() else { continue };
            for change in self.changes(parent, &walked.id)? {
                match authors_of.get(walked.id.as_str()) {
                    Some(author) => drop(authors.insert(change.path, author.clone())),
                    None => drop(authors.remove(&change.path)),
                }
            }
        }
        Ok(authors)
    }

    /// Returns true if `tip` or one of its ancestors is not in `known` and does not have this line in its
    /// message.
    pub fn has_foreign_commits(
        &self,
        known: &[CommitId],
        tip: &CommitId,
        mark: &str,
    ) -> Result<bool, GitError> {
        let attempt = format!("find the authors of the commits of {tip}");
        let call = self.call(attempt.as_str()).args(["rev-list", "--max-count=1"]);
        let call = call.args(["--invert-grep", "--fixed-strings"]).arg(format!("--grep={mark}"));
        let call = call.arg(tip.as_str());
        let call = known.iter().fold(call, |call, commit| call.arg(format!("^{commit}")));
        Ok(!call.run()?.stdout.is_empty())
    }

    /// Returns the first parent of a commit, or `None` for a root commit.
    pub fn first_parent(&self, commit: &CommitId) -> Result<Option<CommitId>, GitError> {
        self.ref_read(&format!("{commit}^1"))
    }

    /// Returns a best common ancestor of two commits, or `None` if they have none.
    pub fn merge_base(&self, one: &CommitId, other: &CommitId) -> Result<Option<CommitId>, GitError> {
        let attempt = format!("find where {one} and {other} fork");
        let call = self.call(attempt.as_str()).args(["merge-base", one.as_str(), other.as_str()]);
        let output = call.accept(&[0, 1]).run()?;
        if output.code == 1 {
            return Ok(None);
        }
        let text = output.text(&attempt)?;
        text.trim_end().parse().map(Some).map_err(|_| GitError::unexpected(&attempt, text))
    }

    /// Returns the first-parent history from one commit to another, each commit with its parent, oldest
    /// first.
    pub fn line(&self, from: &CommitId, to: &CommitId) -> Result<Vec<(CommitId, CommitId)>, GitError> {
        let attempt = format!("list the commits from {from} to {to}");
        let call =
            self.call(attempt.as_str()).args(["rev-list", "--reverse", "--first-parent", "--end-of-options"]);
        let text = call.arg(to.as_str()).arg(format!("^{from}")).run()?.text(&attempt)?;
        let mut parent = from.clone();
        let mut line = Vec::new();
        for id in text.lines() {
            let commit: CommitId = id.parse().map_err(|_| GitError::unexpected(&attempt, id))?;
            line.push((parent, commit.clone()));
            parent = commit;
        }
        Ok(line)
    }

    /// Moves a branch that is not checked out in any worktree to another commit, if it is at the expected
    /// commit.
    pub fn branch_put(&self, branch: &str, expected: &CommitId, to: &CommitId) -> Result<(), GitError> {
        let full = name::branch_ref(branch)?;
        let attempt = format!("move {branch} to {to}");
        let _lock = self.lock(&attempt)?;
        let has_branch = |one: &Worktree| !one.absent && one.branch.as_deref() == Some(full.as_str());
        if let Some(holder) = self.worktrees()?.into_iter().find(has_branch) {
            return Err(GitError::BranchInUse { branch: branch.to_owned(), worktree: holder.path });
        }
        let call = self.call(attempt).args(["update-ref", "--no-deref", "--end-of-options"]);
        call.arg(full).args([to.as_str(), expected.as_str()]).run()?;
        Ok(())
    }

    /// Returns true if something other than this branch keeps its commits: another ref, or the remote branch
    /// as last seen. The refs in `likely`, full names or prefixes of whole path components, are checked
    /// first, because checking all refs is slow in a repository with many.
    pub fn branch_is_kept_elsewhere(&self, branch: &str, likely: &[String]) -> Result<bool, GitError> {
        let full = name::branch_ref(branch)?;
        let attempt = format!("find other refs with the commits of {branch}");
        let Some(tip) = self.ref_read(&full)? else { return Ok(true) };
        let likely: Vec<&str> = likely.iter().map(String::as_str).filter(|name| *name != full).collect();
        if self.is_kept_by(&tip, &likely)? {
            return Ok(true);
        }
        // The HEADs of other worktrees are not checked: they do not keep commits for long, and reading them
        // can hit incomplete worktree records.
        let call = self.call(attempt.as_str()).args(["rev-list", "--single-worktree", "--max-count=1"]);
        let call = call.args([tip.as_str(), "--not"]);
        let call = call.arg(format!("--exclude={full}"));
        let call = call.args(["--exclude=refs/drydock/gone/*", "--all"]);
        Ok(call.run()?.stdout.is_empty())
    }

    /// Returns true if a commit is reachable from one of these refs, or from a ref below one of these
    /// prefixes.
    pub(crate) fn is_kept_by(&self, commit: &CommitId, refs: &[&str]) -> Result<bool, GitError> {
        if refs.is_empty() {
            return Ok(false);
        }
        let attempt = format!("look for {commit} in {}", refs.join(", "));
        // `rev-list` patterns scan every ref; `for-each-ref` patterns do not.
        let call = self.call(attempt.as_str()).args(["for-each-ref", "--format=%(objectname)"]);
        let found = refs.iter().fold(call, |call, name| call.arg(name)).run()?.text(&attempt)?;
        if found.is_empty() || found.lines().any(|id| id == commit.as_str()) {
            return Ok(!found.is_empty());
        }
        let call = self.call(attempt).args(["rev-list", "--max-count=1", "--stdin", commit.as_str()]);
        let known = found.lines().map(|id| format!("^{id}\n")).collect::<String>();
        Ok(call.stdin(known.into_bytes()).run()?.stdout.is_empty())
    }
}
