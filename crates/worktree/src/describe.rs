//! What a commit says of itself.

use drydock_domain::CHECKPOINT;

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;

/// The first line of a commit, when it was written, and whose work it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHead {
    /// The first line of its message.
    pub subject: String,
    /// When it was written, in seconds since 1970.
    pub at_seconds: i64,
    /// The run whose work it keeps, where it names one.
    pub run: Option<String>,
}

impl Repository {
    /// Reads the first line of a commit and when it was written.
    pub fn commit_head(&self, commit: &CommitId) -> Result<CommitHead, GitError> {
        let attempt = format!("read {commit}");
        let format = format!("--format=%ct %(trailers:key={CHECKPOINT},valueonly,separator=%x2C) %s");
        let output =
            self.call(attempt.as_str()).args(["show", "--no-patch", &format, commit.as_str()]).run()?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let read = || {
            let (at, rest) = answer.trim_end_matches('\n').split_once(' ')?;
            let (run, subject) = rest.split_once(' ')?;
            let run = Some(run.to_owned()).filter(|run| !run.is_empty());
            Some(CommitHead { subject: subject.to_owned(), at_seconds: at.parse().ok()?, run })
        };
        read().ok_or_else(|| GitError::unexpected(&attempt, answer.as_ref()))
    }
}
