//! What a commit says of itself.

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;

/// The first line of a commit and when it was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHead {
    /// The first line of its message.
    pub subject: String,
    /// When it was written, in seconds since 1970.
    pub at_seconds: i64,
}

impl Repository {
    /// Reads the first line of a commit and when it was written.
    pub fn commit_head(&self, commit: &CommitId) -> Result<CommitHead, GitError> {
        let attempt = format!("read {commit}");
        let call =
            self.call(attempt.as_str()).args(["show", "--no-patch", "--format=%ct %s", commit.as_str()]);
        let output = call.run()?;
        let answer = String::from_utf8_lossy(&output.stdout);
        let read = answer.trim_end_matches('\n').split_once(' ').and_then(|(at, subject)| {
            Some(CommitHead { subject: subject.to_owned(), at_seconds: at.parse().ok()? })
        });
        read.ok_or_else(|| GitError::unexpected(&attempt, answer.as_ref()))
    }
}
