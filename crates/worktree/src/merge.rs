//! Merges and commits in the object database only; files, index and branches stay unchanged.

use std::collections::BTreeSet;
use std::io::Write;

use tempfile::NamedTempFile;

use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::{CommitId, TreeId};
use crate::repository::Repository;
use crate::run::{GitCall, GitContext, Output, path_text};

/// Name of the operation in errors while writing a commit.
const WRITE: &str = "write a commit";

/// Prefix of the advice about submodules that git 2.39 prints after the conflicts.
const ADVICE: &[u8] = b"Recursive merging with submodules";

/// Author or committer of a commit, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The person's name.
    pub name: String,
    /// The email address.
    pub email: String,
    /// Seconds since 1970, written with offset +0000.
    pub at_seconds: i64,
}

/// The outcome of a merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The merged tree.
    Clean(TreeId),
    /// Both sides changed the same place.
    Conflict {
        /// The paths in conflict, sorted and unique.
        paths: Vec<String>,
        /// Git's messages about them, one per line.
        messages: String,
    },
}

impl Repository {
    /// Merges two commits with the given base.
    pub fn merge(
        &self,
        base: &CommitId,
        ours: &CommitId,
        theirs: &CommitId,
    ) -> Result<MergeOutcome, GitError> {
        // Run in the root directory, so that its attributes apply (such as `merge=union`).
        let guard = self.place().guard()?;
        match merge_trees(self.place(), &guard, base, ours, theirs)? {
            Ok(tree) => Ok(MergeOutcome::Clean(tree)),
            Err(conflict) => {
                let paths = conflict.paths().into_iter().map(path_text).collect::<Result<_, _>>()?;
                Ok(MergeOutcome::Conflict { paths, messages: conflict.messages() })
            }
        }
    }

    /// Writes a commit without a ref that points to it.
    pub fn commit(
        &self,
        tree: &TreeId,
        parents: &[CommitId],
        message: &str,
        author: &Signature,
    ) -> Result<CommitId, GitError> {
        commit_tree(self.place(), tree, parents, message, author)
    }

    /// Returns the user's configured identity, or drydock's own if there is none or it cannot be read.
    pub fn signature(&self, at_seconds: i64) -> Signature {
        let found = self.place().configuration().ok();
        // As in git, the last of several values wins.
        let last = |key: &str| -> Option<&str> {
            let text = found.as_ref()?.iter().rfind(|entry| entry.key == key)?.value.trim();
            // Git drops characters that are not allowed in an identity, and something must remain. A value
            // that was not UTF-8 contains replacement characters and is not used.
            let good = text.chars().any(char::is_alphanumeric) && !text.contains(char::REPLACEMENT_CHARACTER);
            good.then_some(text)
        };
        match (last("user.name"), last("user.email")) {
            (Some(name), Some(email)) => {
                Signature { name: name.to_owned(), email: email.to_owned(), at_seconds }
            }
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                Signature { name: "drydock".to_owned(), email: "drydock@localhost".to_owned(), at_seconds }
            }
        }
    }
}

pub(crate) fn commit_tree(
    place: &GitContext,
    tree: &TreeId,
    parents: &[CommitId],
    message: &str,
    author: &Signature,
) -> Result<CommitId, GitError> {
    commit_of(commit_call(place, tree, parents, message, author))
}

/// Builds the call that writes a commit.
pub(crate) fn commit_call(
    place: &GitContext,
    tree: &TreeId,
    parents: &[CommitId],
    message: &str,
    author: &Signature,
) -> GitCall {
    let date = format!("@{} +0000", author.at_seconds);
    let mut call = place.call_without_files(WRITE).args(["commit-tree", tree.as_str(), "-F", "-"]);
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        call = call
            .env(&format!("GIT_{role}_NAME"), &author.name)
            .env(&format!("GIT_{role}_EMAIL"), &author.email)
            .env(&format!("GIT_{role}_DATE"), &date);
    }
    // A task or an agent's text may contain escape sequences, which a terminal would interpret when it shows
    // the log.
    let mut text: String = message.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect();
    text.push('\n');
    call.stdin(text.into_bytes())
}

/// Runs the call that writes a commit.
pub(crate) fn commit_of(call: GitCall) -> Result<CommitId, GitError> {
    let answer = call.run()?.text(WRITE)?;
    answer.trim_end().parse().map_err(|_| GitError::unexpected(WRITE, answer))
}

/// The conflicts of a merge, with paths as git prints them.
pub(crate) struct MergeConflict {
    /// The tree that git wrote, with conflict markers in its files.
    pub(crate) tree: TreeId,
    pub(crate) stages: Vec<ConflictVersion>,
    pub(crate) said: Vec<ConflictMessage>,
}

/// One version of a path in conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConflictVersion {
    pub(crate) mode: u32,
    pub(crate) id: String,
    /// 1 is the base, 2 ours, 3 theirs.
    pub(crate) stage: u8,
    pub(crate) path: Vec<u8>,
}

/// Git's message about a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConflictMessage {
    /// The fixed text that identifies the kind, such as `CONFLICT (contents)`.
    pub(crate) kind: String,
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) text: String,
}

impl MergeConflict {
    /// Returns the paths in conflict, sorted and unique.
    pub(crate) fn paths(&self) -> BTreeSet<&[u8]> {
        let said = self.said.iter().flat_map(|said| &said.paths);
        self.stages.iter().map(|stage| &stage.path).chain(said).map(Vec::as_slice).collect()
    }

    /// Returns git's messages, one per line.
    pub(crate) fn messages(&self) -> String {
        self.said.iter().map(|said| said.text.as_str()).collect::<Vec<_>>().join("\n")
    }
}

/// Merges two commits with the given base.
pub(crate) fn merge_trees(
    place: &GitContext,
    guard: &Replacements,
    base: &CommitId,
    ours: &CommitId,
    theirs: &CommitId,
) -> Result<Result<TreeId, MergeConflict>, GitError> {
    let attempt = format!("merge {theirs} into {ours}");
    let mut call = place.call(attempt.as_str()).settings(guard);
    call = call.args(["merge-tree", "--write-tree", "-z", "--messages"]);
    // Deleted on drop, after the call.
    let _grafts = if place.git.takes_merge_base() {
        call = call.arg(format!("--merge-base={base}"));
        None
    } else {
        let file = grafts(base, [ours, theirs], &attempt)?;
        // Conflict markers show the full id of the base, as they do with `--merge-base`.
        let named = [("core.abbrev".to_owned(), "no".to_owned())];
        call = call.env("GIT_GRAFT_FILE", file.path()).settings(&named);
        Some(file)
    };
    let output = call.args([ours.as_str(), theirs.as_str()]).accept(&[0, 1]).run().map_err(without_hints)?;
    let mut fields = output.fields();
    let tree = fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let tree = tree.and_then(|tree| tree.parse::<TreeId>().ok());
    let tree = tree.ok_or_else(|| wrong(&attempt, &output))?;
    if output.code == 0 {
        return Ok(Ok(tree));
    }
    read_conflict(tree, fields, &attempt).map(Err)
}

/// Sets the merge base for a git version without `--merge-base`. In a graft file for one call, the base has
/// no parents and is the only parent of both sides. Nothing is written to the repository, and each side keeps
/// the id that appears in conflict markers. The file is in the system's temporary directory, where the system
/// removes it if this process is killed.
fn grafts(base: &CommitId, sides: [&CommitId; 2], attempt: &str) -> Result<NamedTempFile, GitError> {
    let failed = |source| GitError::file(attempt, &std::env::temp_dir(), source);
    let mut file = tempfile::Builder::new().prefix("drydock-merge-").tempfile().map_err(failed)?;
    // A base that descends from a side, as in a revert, would create a cycle if it kept its parents.
    let mut lines = format!("{base}\n");
    for side in sides.into_iter().filter(|side| *side != base) {
        lines.push_str(&format!("{side} {base}\n"));
    }
    file.write_all(lines.as_bytes()).map_err(failed)?;
    Ok(file)
}

/// Reads the conflicting versions up to an empty field, then the messages: count, that many paths, kind,
/// text.
fn read_conflict<'a>(
    tree: TreeId,
    mut fields: impl Iterator<Item = &'a [u8]>,
    attempt: &str,
) -> Result<MergeConflict, GitError> {
    let cut = || GitError::unexpected(attempt, "the list of conflicts is cut short");
    let listed = fields.by_ref().take_while(|field| !field.is_empty());
    let stages = listed.map(|field| read_stage(field).ok_or_else(cut)).collect::<Result<_, _>>()?;
    let mut said = Vec::new();
    while let Some(count) = fields.next() {
        if count.starts_with(ADVICE) {
            break;
        }
        let count: usize = std::str::from_utf8(count).ok().and_then(|n| n.parse().ok()).ok_or_else(cut)?;
        let mut paths = Vec::new();
        for _ in 0..count {
            paths.push(fields.next().ok_or_else(cut)?.to_vec());
        }
        let kind = String::from_utf8_lossy(fields.next().ok_or_else(cut)?).into_owned();
        let text = String::from_utf8_lossy(fields.next().ok_or_else(cut)?).trim_end().to_owned();
        if kind.starts_with("CONFLICT") {
            said.push(ConflictMessage { kind, paths, text });
        }
    }
    Ok(MergeConflict { tree, stages, said })
}

/// Reads a record such as `100644 <id> 2<TAB>path`.
fn read_stage(record: &[u8]) -> Option<ConflictVersion> {
    let tab = record.iter().position(|b| *b == b'\t')?;
    let head = std::str::from_utf8(&record[..tab]).ok()?;
    let [mode, id, stage]: [&str; 3] = head.split(' ').collect::<Vec<_>>().try_into().ok()?;
    let mode = u32::from_str_radix(mode, 8).ok()?;
    Some(ConflictVersion {
        mode,
        id: id.to_owned(),
        stage: stage.parse().ok()?,
        path: record[tab + 1..].to_vec(),
    })
}

/// Removes git's hints from an error: they are about our graft file.
fn without_hints(error: GitError) -> GitError {
    match error {
        GitError::Failed { attempt, code, detail } => {
            GitError::Failed { attempt, code, detail: unadvised(&detail) }
        }
        error => error,
    }
}

fn unadvised(said: &str) -> String {
    said.lines().filter(|line| !line.starts_with("hint:")).collect::<Vec<_>>().join("\n")
}

fn wrong(attempt: &str, output: &Output) -> GitError {
    let said = unadvised(&output.stderr);
    GitError::unexpected(attempt, if said.is_empty() { "no tree was named".to_owned() } else { said })
}
