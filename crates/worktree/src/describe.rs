//! Reads the subject, time and run of a commit.

use drydock_domain::CHECKPOINT;

use crate::error::GitError;
use crate::id::CommitId;
use crate::repository::Repository;

/// Subject line of a commit, its time, and the run that wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitHead {
    /// First line of the message.
    pub subject: String,
    /// Commit time, in seconds since 1970.
    pub at_seconds: i64,
    /// The run whose work the commit keeps, if its trailer names one.
    pub run: Option<String>,
}

impl Repository {
    /// Reads the subject line, time and run of a commit.
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
