//! Replays commits on top of other commits in the object database; files, index and refs stay unchanged.
//!
//! The replay follows first parents and treats each commit as its change to the first parent. A merge made on
//! the branch is therefore replayed as one change that keeps its other parents, and the commits it merged are
//! not replayed as the branch's own. Author, committer, dates, encoding and message stay byte for byte;
//! signatures are removed, because they would no longer be valid.
//!
//! First, one process merges all commits of the branch with the remote's, because these merges do not depend
//! on each other. Only if one of them conflicts, the commits are replayed one by one, which can still
//! succeed.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use drydock_domain::{ClashCause, CommitLine, ReplayConflict};
use tempfile::TempDir;

use crate::child::Conversation;
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::{CommitId, TreeId};
use crate::merge::{MergeConflict, merge_trees};
use crate::objects::objects;
use crate::private_index::PrivateIndex;
use crate::repository::tree_of;
use crate::run::{GitContext, LIMIT_FILES, judge};
use crate::sync::walk::{DivergedCommits, WalkedCommit};

/// The outcome of a replay.
pub(crate) enum Replayed {
    Clean {
        to: CommitId,
        commits: Vec<CommitLine>,
        /// Commits whose changes the other side already had.
        absorbed: Vec<CommitLine>,
    },
    Clash(ReplayConflict),
}

/// Replays the local commits on the remote's tip.
pub(crate) fn replay(
    place: &GitContext,
    guard: &Replacements,
    sides: &DivergedCommits,
    local: &CommitId,
    onto: &CommitId,
) -> Result<Replayed, GitError> {
    let attempt = format!("replay {local} on {onto}");
    let chain = first_parents(sides, local);
    let ids: Vec<&str> = chain.iter().map(|walked| walked.id.as_str()).collect();
    let texts = objects(place, &ids, &attempt)?;
    let base = match chain.first().and_then(|walked| walked.parents.first()) {
        Some(parent) => parent.clone(),
        None => nothing(place, &attempt)?,
    };
    let at_once = merge_at_once(place, guard, &base, onto, &chain, &attempt)?;
    let ours: HashSet<&CommitId> = sides.local.iter().map(|walked| &walked.id).collect();
    let all = sides.local.iter().chain(&sides.shared);
    let trees: HashMap<&CommitId, &TreeId> = all.map(|walked| (&walked.id, &walked.tree)).collect();
    let mut writer = CommitWriter::start(place, &attempt)?;
    let (mut tip, mut tip_tree) = (onto.clone(), tree_of(place, onto)?);
    let (mut commits, mut absorbed) = (Vec::new(), Vec::new());
    for (nth, walked) in chain.into_iter().enumerate() {
        let parent = walked.parents.first().unwrap_or(&base);
        let tree = match &at_once {
            Some(trees) => trees[nth].clone(),
            None => match merge_trees(place, guard, parent, &tip, &walked.id)? {
                Ok(tree) => tree,
                Err(conflict) => return Ok(Replayed::Clash(clash_of(&conflict, Some(walked.line.clone())))),
            },
        };
        let kept: Vec<&CommitId> = walked.parents.iter().skip(1).filter(|id| ours.contains(id)).collect();
        let was_empty = trees.get(parent).is_some_and(|before| **before == walked.tree);
        if tree == tip_tree && kept.is_empty() && !was_empty {
            absorbed.push(walked.line.clone());
            continue;
        }
        let text = texts.get(walked.id.as_str());
        let text = text.ok_or_else(|| GitError::unexpected(&attempt, format!("{} is missing", walked.id)))?;
        tip = writer.write(&rewritten(text, &tree, &tip, &kept))?;
        tip_tree = tree;
        commits.push(CommitLine { id: tip.to_string(), ..walked.line.clone() });
    }
    Ok(Replayed::Clean { to: tip, commits, absorbed })
}

/// Builds the conflict report of a merge.
pub(crate) fn clash_of(conflict: &MergeConflict, commit: Option<CommitLine>) -> ReplayConflict {
    let paths = conflict.paths().into_iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    ReplayConflict { cause: ClashCause::Content, commit, paths, text: conflict.messages() }
}

/// Merges each commit with `onto` using one base. Returns `None` if one of them conflicts, or if this git
/// cannot do all merges in one process.
fn merge_at_once(
    place: &GitContext,
    guard: &Replacements,
    base: &CommitId,
    onto: &CommitId,
    chain: &[&WalkedCommit],
    attempt: &str,
) -> Result<Option<Vec<TreeId>>, GitError> {
    // Without the option, git finds the same base if the chain starts at a commit that the remote has.
    let names_base = place.git.takes_merge_base();
    if !names_base && chain.first().is_some_and(|walked| walked.parents.is_empty()) {
        return Ok(None);
    }
    let mut asked = String::new();
    let mut merged = false;
    for walked in chain {
        merged |= walked.parents.len() > 1;
        // A merge may have included commits of the remote: from there on git finds a closer base.
        let base = if merged || !names_base { String::new() } else { format!("{base} -- ") };
        asked.push_str(&format!("{base}{onto} {}\n", walked.id));
    }
    let call = place.call(attempt).settings(guard).limit(LIMIT_FILES);
    let call = call.args(["merge-tree", "--write-tree", "--stdin", "--name-only", "--no-messages"]);
    let output = call.stdin(asked.into_bytes()).run()?;
    let mut fields = output.fields();
    let mut trees = Vec::new();
    for _ in chain {
        // A clean merge is `1`, a tree, and an empty list of conflicts.
        match (fields.next(), fields.next(), fields.next()) {
            (Some(b"0"), _, _) => return Ok(None),
            (Some(b"1"), Some(tree), None | Some(b"")) => {
                let tree = String::from_utf8_lossy(tree);
                trees.push(tree.parse().map_err(|_| GitError::unexpected(attempt, tree))?);
            }
            (first, _, _) => {
                let first = String::from_utf8_lossy(first.unwrap_or_default()).into_owned();
                return Err(GitError::unexpected(attempt, first));
            }
        }
    }
    Ok(Some(trees))
}

/// Returns the first-parent history of the branch, oldest first.
fn first_parents<'a>(sides: &'a DivergedCommits, local: &CommitId) -> Vec<&'a WalkedCommit> {
    let by_id: HashMap<&CommitId, &WalkedCommit> =
        sides.local.iter().map(|walked| (&walked.id, walked)).collect();
    let mut chain = Vec::new();
    let mut next = by_id.get(local);
    while let Some(walked) = next {
        chain.push(*walked);
        next = walked.parents.first().and_then(|parent| by_id.get(parent));
    }
    chain.reverse();
    chain
}

/// Writes a commit without files, used as the base of a root commit.
fn nothing(place: &GitContext, attempt: &str) -> Result<CommitId, GitError> {
    let tree = PrivateIndex::empty(place, attempt)?.write_tree(place, attempt)?;
    let text = format!("tree {tree}\nauthor drydock <> 0 +0000\ncommitter drydock <> 0 +0000\n\nnothing\n");
    let call = place.call_without_files(attempt).args(["hash-object", "-t", "commit", "-w", "--stdin"]);
    let answer = call.stdin(text.into_bytes()).run()?.text(attempt)?;
    answer.trim_end().parse().map_err(|_| GitError::unexpected(attempt, answer))
}

/// Returns the text of a commit with another tree and other parents, without signatures.
fn rewritten(text: &[u8], tree: &TreeId, parent: &CommitId, others: &[&CommitId]) -> Vec<u8> {
    let end = text.windows(2).position(|pair| pair == b"\n\n").map_or(text.len(), |at| at + 1);
    let (head, message) = text.split_at(end);
    let mut result = format!("tree {tree}\nparent {parent}\n").into_bytes();
    for other in others {
        result.extend_from_slice(format!("parent {other}\n").as_bytes());
    }
    let mut dropping = false;
    for line in head.split_inclusive(|b| *b == b'\n') {
        let gone: [&[u8]; 5] = [b"tree ", b"parent ", b"gpgsig ", b"gpgsig-sha256 ", b"mergetag "];
        // Continuation lines of a signature begin with a space.
        dropping =
            if line.starts_with(b" ") { dropping } else { gone.iter().any(|word| line.starts_with(word)) };
        if !dropping {
            result.extend_from_slice(line);
        }
    }
    result.extend_from_slice(message);
    result
}

/// A process that writes commits, so that a thousand commits do not need a thousand processes.
struct CommitWriter {
    conversation: Option<Conversation>,
    folder: TempDir,
    attempt: String,
    limit: Duration,
}

impl CommitWriter {
    fn start(place: &GitContext, attempt: &str) -> Result<CommitWriter, GitError> {
        let call = place.call_without_files(attempt).limit(LIMIT_FILES);
        let call = call.args(["hash-object", "-t", "commit", "-w", "--no-filters", "--stdin-paths"]);
        let (conversation, limit) = call.converse(b'\n')?;
        let folder = tempfile::Builder::new().prefix("drydock-replay-").tempdir_in(&place.git_dir);
        let folder = folder.map_err(|source| GitError::file(attempt, &place.git_dir, source))?;
        Ok(CommitWriter { conversation: Some(conversation), folder, attempt: attempt.to_owned(), limit })
    }

    fn write(&mut self, text: &[u8]) -> Result<CommitId, GitError> {
        let attempt = self.attempt.as_str();
        let path = self.folder.path().join("commit");
        fs::write(&path, text).map_err(|source| GitError::file(attempt, &path, source))?;
        let mut conversation =
            self.conversation.take().expect("only an error leaves none, and it ends the replay");
        let mut line = path.into_os_string().into_encoded_bytes();
        line.push(b'\n');
        conversation.send(&line);
        match conversation.part() {
            Ok(Some(id)) => {
                self.conversation = Some(conversation);
                id.parse().map_err(|_| GitError::unexpected(attempt, id))
            }
            Ok(None) => match conversation.finish().map(|ended| judge(attempt, ended, &[])) {
                Ok(Err(error)) => Err(error),
                Ok(Ok(_)) => Err(GitError::unexpected(attempt, "git ended early")),
                Err(broken) => Err(broken.named(attempt, self.limit)),
            },
            Err(broken) => Err(broken.named(attempt, self.limit)),
        }
    }
}
