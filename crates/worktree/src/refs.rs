//! Ref updates, always by compare-and-swap. Refs that guarantees depend on are read back.

use std::time::Duration;

use crate::child::Conversation;
use crate::error::GitError;
use crate::id::{CommitId, TreeId, is_object_name};
use crate::name;
use crate::repository::{Repository, commit_at};
use crate::run::{GitContext, LIMIT_FILES, judge};

/// The outcome of creating a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefCreated {
    /// The ref now exists at the requested commit.
    Created,
    /// The ref already existed at this commit and was not changed.
    Exists(CommitId),
}

/// The outcome of deleting a ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefDeleted {
    /// The ref was deleted.
    Deleted,
    /// The ref did not exist.
    Absent,
    /// The ref is not at the expected commit and was not deleted.
    Moved {
        /// The current commit.
        found: CommitId,
    },
}

impl Repository {
    /// Creates a ref that must not exist, and reads it back.
    pub fn ref_create(&self, name: &str, commit: &CommitId) -> Result<RefCreated, GitError> {
        let attempt = format!("create {name}");
        let record = format!("create {}\0{commit}\0", name::full_ref(name)?);
        let written = update(self.place(), &attempt, record);
        match (self.ref_read(name)?, written) {
            (Some(found), Ok(())) if found == *commit => Ok(RefCreated::Created),
            (found, Ok(())) => {
                let found = found.map_or_else(|| "nothing".to_owned(), |id| id.to_string());
                Err(GitError::unexpected(&attempt, format!("it was written, but reads back as {found}")))
            }
            (Some(found), Err(_)) => Ok(RefCreated::Exists(found)),
            (None, Err(error)) => Err(error),
        }
    }

    /// Deletes a ref that is at an expected commit.
    pub fn ref_delete(&self, name: &str, expected: &CommitId) -> Result<RefDeleted, GitError> {
        let attempt = format!("delete {name}");
        let record = format!("delete {}\0{expected}\0", name::full_ref(name)?);
        match self.ref_read(name)? {
            None => return Ok(RefDeleted::Absent),
            Some(found) if found != *expected => return Ok(RefDeleted::Moved { found }),
            Some(_) => {}
        }
        let Err(error) = update(self.place(), &attempt, record) else { return Ok(RefDeleted::Deleted) };
        // Another process may have changed the ref first.
        match self.ref_read(name)? {
            None => Ok(RefDeleted::Absent),
            Some(found) if found != *expected => Ok(RefDeleted::Moved { found }),
            Some(_) => Err(error),
        }
    }

    /// Lists the refs below a prefix of whole path components, such as `refs/drydock/pin/`, sorted by name.
    pub fn refs(&self, prefix: &str) -> Result<Vec<(String, CommitId)>, GitError> {
        let attempt = format!("list {prefix}");
        name::full_ref(prefix.strip_suffix('/').unwrap_or(prefix))?;
        let call = self.call(attempt.as_str()).args(["for-each-ref", "--format=%(objectname) %(refname)"]);
        let text = call.arg(prefix).run()?.text(&attempt)?;
        let read = |line: &str| {
            let (id, name) = line.split_once(' ')?;
            Some((name.to_owned(), id.parse().ok()?))
        };
        text.lines().map(|line| read(line).ok_or_else(|| GitError::unexpected(&attempt, line))).collect()
    }

    /// Lists refs below a prefix with the trees of their commits, and with the parent if there is exactly
    /// one.
    pub fn ref_trees(&self, prefix: &str) -> Result<Vec<(String, TreeId, Option<CommitId>)>, GitError> {
        let attempt = format!("list the trees of {prefix}");
        name::full_ref(prefix.strip_suffix('/').unwrap_or(prefix))?;
        let format = "--format=%(tree)%09%(parent)%09%(refname)";
        let call = self.call(attempt.as_str()).args(["for-each-ref", format]);
        let text = call.arg(prefix).run()?.text(&attempt)?;
        let read = |line: &str| {
            let (id, rest) = line.split_once('\t')?;
            let (parent, name) = rest.split_once('\t')?;
            Some((name.to_owned(), id.parse().ok()?, parent.parse().ok()))
        };
        text.lines().map(|line| read(line).ok_or_else(|| GitError::unexpected(&attempt, line))).collect()
    }

    /// Moves a branch that is not checked out in any worktree.
    pub(crate) fn branch_move(
        &self,
        full: &str,
        from: &CommitId,
        to: &CommitId,
        permit: &RefCondition<'_>,
    ) -> Result<Moved, GitError> {
        let attempt = format!("move {full} to {to}");
        match update(self.place(), &attempt, permitted(full, from, to, permit)) {
            Ok(()) => Ok(Moved::Done),
            Err(_) if !permit.holds(self.place())? => Ok(Moved::Revoked),
            Err(error) => match found_elsewhere(self.place(), full, from, error)? {
                // Git moved the branch, but a signal ended it before it could report success.
                Some(found) if found == *to => Ok(Moved::Done),
                found => Ok(Moved::Elsewhere(found)),
            },
        }
    }
}

/// The outcome of moving a ref from an expected commit.
pub(crate) enum Moved {
    Done,
    Revoked,
    Elsewhere(Option<CommitId>),
}

/// Returns the position of a ref that could not be moved. Returns the error if the ref is at the expected
/// commit.
fn found_elsewhere(
    place: &GitContext,
    full: &str,
    from: &CommitId,
    error: GitError,
) -> Result<Option<CommitId>, GitError> {
    match commit_at(place, full)? {
        Some(found) if found == *from => Err(error),
        found => Ok(found),
    }
}

/// A ref that must point to an object for a move to be allowed.
pub(crate) struct RefCondition<'a> {
    pub(crate) name: &'a str,
    pub(crate) object: &'a str,
    /// Reflog message for the move.
    pub(crate) note: &'static str,
}

impl RefCondition<'_> {
    fn holds(&self, place: &GitContext) -> Result<bool, GitError> {
        Ok(object_at(place, self.name)?.as_deref() == Some(self.object))
    }
}

/// Builds the records that move a ref only while the permit ref is unchanged.
fn permitted(full: &str, from: &CommitId, to: &CommitId, permit: &RefCondition<'_>) -> String {
    let RefCondition { name, object, .. } = permit;
    format!("verify {name}\0{object}\0update {full}\0{to}\0{from}\0")
}

/// Reads the object id of a full ref, of any object type.
pub(crate) fn object_at(place: &GitContext, name: &str) -> Result<Option<String>, GitError> {
    let attempt = format!("read {name}");
    let call = place.call_without_files(attempt.as_str()).args(["rev-parse", "--quiet", "--verify", name]);
    let output = call.accept(&[0, 1]).run()?;
    if output.code == 1 {
        return Ok(None);
    }
    let text = output.text(&attempt)?.trim_end().to_owned();
    if is_object_name(&text) { Ok(Some(text)) } else { Err(GitError::unexpected(&attempt, text)) }
}

/// Updates refs in one transaction, given as records of `update-ref --stdin -z`.
pub(crate) fn update(place: &GitContext, attempt: &str, record: String) -> Result<(), GitError> {
    let call = place.call_without_files(attempt).args(["update-ref", "-m", "drydock", "--stdin", "-z"]);
    call.stdin(record.into_bytes()).run().map(drop)
}

/// A prepared ref update: git has locked the ref and compared its old value, so the commit can no longer be
/// refused. If the value is dropped or the process dies, the lock is released and the ref is unchanged.
pub(crate) struct PreparedMove {
    conversation: Conversation,
    attempt: String,
    limit: Duration,
}

/// Whether the ref was at the expected commit.
pub(crate) enum Prepared {
    Ready(PreparedMove),
    Revoked,
    Elsewhere(Option<CommitId>),
}

impl PreparedMove {
    pub(crate) fn prepare(
        place: &GitContext,
        full: &str,
        from: &CommitId,
        to: &CommitId,
        permit: &RefCondition<'_>,
    ) -> Result<Prepared, GitError> {
        let attempt = format!("move {full} to {to}");
        let call = place.call_without_files(attempt.as_str()).limit(2 * LIMIT_FILES);
        // The reflog message names drydock as the cause; HEAD of this worktree gets an entry as well.
        let call = call.args(["update-ref", "-m", permit.note, "--stdin", "-z"]);
        let (mut conversation, limit) = call.converse(b'\n')?;
        conversation.send(format!("start\0{}prepare\0", permitted(full, from, to, permit)).as_bytes());
        let mut prepared = PreparedMove { conversation, attempt, limit };
        let answer = prepared.answers("start: ok").and_then(|()| prepared.answers("prepare: ok"));
        match answer {
            Ok(()) => Ok(Prepared::Ready(prepared)),
            Err(Unanswered::Broken(error)) => Err(error),
            Err(Unanswered::Ended) if !permit.holds(place)? => Ok(Prepared::Revoked),
            Err(Unanswered::Ended) => {
                Ok(Prepared::Elsewhere(found_elsewhere(place, full, from, prepared.explain())?))
            }
        }
    }

    /// Commits the update.
    pub(crate) fn commit(mut self) -> Result<(), GitError> {
        self.conversation.send(b"commit\0");
        match self.answers("commit: ok") {
            Ok(()) => Ok(()),
            Err(Unanswered::Broken(error)) => Err(error),
            Err(Unanswered::Ended) => Err(self.explain()),
        }
    }

    fn answers(&mut self, expected: &str) -> Result<(), Unanswered> {
        match self.conversation.part() {
            Ok(Some(line)) if line == expected => Ok(()),
            Ok(Some(line)) => Err(Unanswered::Broken(GitError::unexpected(&self.attempt, line))),
            Ok(None) => Err(Unanswered::Ended),
            Err(broken) => Err(Unanswered::Broken(broken.named(&self.attempt, self.limit))),
        }
    }

    /// Returns why git ended without a response.
    fn explain(self) -> GitError {
        let PreparedMove { conversation, attempt, limit } = self;
        match conversation.finish().map(|ended| judge(&attempt, ended, &[])) {
            Ok(Err(error)) => error,
            Ok(Ok(_)) => GitError::unexpected(&attempt, "git ended early"),
            Err(broken) => broken.named(&attempt, limit),
        }
    }
}

enum Unanswered {
    Ended,
    Broken(GitError),
}
