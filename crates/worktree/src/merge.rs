//! Merging and committing on objects alone: no file, index or branch is touched.

use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::{CommitId, TreeId};
use crate::repository::Repository;
use crate::run::{Output, Place, path_text};

/// Who made a commit, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// Seconds since 1970, written with offset +0000.
    pub at_seconds: i64,
}

/// What a merge came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Merge {
    /// The merged tree.
    Clean(TreeId),
    /// Both sides changed the same places.
    Conflict {
        /// The paths in conflict, sorted, each once.
        paths: Vec<String>,
        /// What git says about them, one per line.
        messages: String,
    },
}

impl Repository {
    /// Merges two commits by a given base.
    pub fn merge(&self, base: &CommitId, ours: &CommitId, theirs: &CommitId) -> Result<Merge, GitError> {
        // In the root, for the sake of its attributes (`merge=union` and the like).
        let guard = self.place().guard()?;
        match merge_trees(self.place(), &guard, base.as_str(), ours.as_str(), theirs.as_str())? {
            Ok(tree) => Ok(Merge::Clean(tree)),
            Err(Conflict { paths, messages }) => {
                let paths = paths.iter().map(|path| path_text(path)).collect::<Result<_, _>>()?;
                Ok(Merge::Conflict { paths, messages })
            }
        }
    }

    /// Writes a commit; nothing points at it yet.
    pub fn commit(
        &self,
        tree: &TreeId,
        parents: &[CommitId],
        message: &str,
        author: &Signature,
    ) -> Result<CommitId, GitError> {
        commit_tree(self.place(), tree, parents, message, author)
    }

    /// Returns the user's configured identity, or drydock's own where there is none or it cannot be read.
    pub fn signature(&self, at_seconds: i64) -> Signature {
        let read = |key: &str| -> Option<String> {
            let output =
                self.call("read the identity").args(["config", "--get", key]).accept(&[0, 1]).run().ok()?;
            let text = output.text("read the identity").ok()?.trim().to_owned();
            // Characters that cannot stand in an identity are dropped by git; nothing must be left of it.
            Some(text).filter(|text| text.chars().any(char::is_alphanumeric))
        };
        match (read("user.name"), read("user.email")) {
            (Some(name), Some(email)) => Signature { name, email, at_seconds },
            (Some(_), None) | (None, Some(_)) | (None, None) => {
                Signature { name: "drydock".to_owned(), email: "drydock@localhost".to_owned(), at_seconds }
            }
        }
    }
}

pub(crate) fn commit_tree(
    place: &Place,
    tree: &TreeId,
    parents: &[CommitId],
    message: &str,
    author: &Signature,
) -> Result<CommitId, GitError> {
    let attempt = "write a commit";
    let date = format!("@{} +0000", author.at_seconds);
    let mut call = place.call_without_files(attempt).args(["commit-tree", tree.as_str(), "-F", "-"]);
    for parent in parents {
        call = call.args(["-p", parent.as_str()]);
    }
    for role in ["AUTHOR", "COMMITTER"] {
        call = call
            .env(&format!("GIT_{role}_NAME"), &author.name)
            .env(&format!("GIT_{role}_EMAIL"), &author.email)
            .env(&format!("GIT_{role}_DATE"), &date);
    }
    let mut text = message.as_bytes().to_vec();
    text.push(b'\n');
    let answer = call.stdin(text).run()?.text(attempt)?;
    answer.trim_end().parse().map_err(|_| GitError::unexpected(attempt, answer))
}

/// Places that both sides of a merge changed; the names are as git has them.
pub(crate) struct Conflict {
    /// Sorted, each once.
    pub(crate) paths: Vec<Vec<u8>>,
    pub(crate) messages: String,
}

/// Merges two commits by a base, all of which may also be named by trees where git takes them.
pub(crate) fn merge_trees(
    place: &Place,
    guard: &Replacements,
    base: &str,
    ours: &str,
    theirs: &str,
) -> Result<Result<TreeId, Conflict>, GitError> {
    let attempt = format!("merge {theirs} into {ours}");
    let call = place.call(attempt.as_str()).settings(guard);
    let call = call.args(["merge-tree", "--write-tree", "-z", "--name-only", "--messages"]);
    let call = call.arg(format!("--merge-base={base}")).args([ours, theirs]);
    let output = call.accept(&[0, 1]).run()?;
    let mut fields = output.fields();
    let tree = fields.next().and_then(|field| std::str::from_utf8(field).ok());
    let tree = tree.and_then(|tree| tree.parse::<TreeId>().ok());
    let tree = tree.ok_or_else(|| wrong(&attempt, &output))?;
    if output.code == 0 {
        return Ok(Ok(tree));
    }
    read_conflict(fields, &attempt).map(Err)
}

/// Reads the paths up to an empty field, then messages: count, that many paths, kind, text.
fn read_conflict<'a>(
    mut fields: impl Iterator<Item = &'a [u8]>,
    attempt: &str,
) -> Result<Conflict, GitError> {
    let cut = || GitError::unexpected(attempt, "the list of conflicts is cut short");
    let mut paths: Vec<Vec<u8>> =
        fields.by_ref().take_while(|field| !field.is_empty()).map(<[u8]>::to_vec).collect();
    let mut messages = String::new();
    while let Some(count) = fields.next() {
        let count: usize = std::str::from_utf8(count).ok().and_then(|n| n.parse().ok()).ok_or_else(cut)?;
        let mut about = Vec::new();
        for _ in 0..count {
            about.push(fields.next().ok_or_else(cut)?.to_vec());
        }
        let kind = fields.next().ok_or_else(cut)?;
        let text = String::from_utf8_lossy(fields.next().ok_or_else(cut)?);
        if kind.starts_with(b"CONFLICT") {
            paths.extend(about);
            messages.push_str(text.trim_end());
            messages.push('\n');
        }
    }
    paths.sort();
    paths.dedup();
    Ok(Conflict { paths, messages: messages.trim_end().to_owned() })
}

fn wrong(attempt: &str, output: &Output) -> GitError {
    let said = if output.stderr.is_empty() { "no tree was named" } else { output.stderr.as_str() };
    GitError::unexpected(attempt, said)
}
