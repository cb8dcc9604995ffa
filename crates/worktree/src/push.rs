//! Sending a commit to a branch of a remote: never by force, never longer than a minute.

use std::time::Duration;

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::repository::Repository;

const LIMIT: Duration = Duration::from_secs(60);

/// What the remote did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// The branch of the remote is at the commit.
    Pushed,
    /// The remote refused: it has other commits, or its rules say no.
    Rejected {
        /// What it said.
        text: String,
    },
}

impl Repository {
    /// Sends a commit to a branch of a configured remote, which must contain none that the commit does not.
    pub fn push(&self, remote: &str, branch: &str, commit: &CommitId) -> Result<Push, GitError> {
        let attempt = format!("push {branch} to {remote}");
        let full = name::branch_ref(branch)?;
        // In the root, to which an address such as `../other` is relative.
        let call = self.place().call(attempt.as_str()).remote().settings(&self.place().guard()?).limit(LIMIT);
        let call = call.args(["push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-progress"]);
        // The program at the other end is not for this repository's configuration to choose.
        let call = call.args(["--recurse-submodules=no", "--receive-pack=git-receive-pack", "--"]);
        let call = call.arg(name::remote(remote)?).arg(format!("{commit}:{full}")).accept(&[0, 1]);
        // The remote may have taken it, which a second attempt would report as a refusal.
        let output = match call.once().run() {
            Ok(output) => output,
            Err(GitError::Failed { attempt, detail, .. }) => {
                return Err(GitError::Remote { attempt, detail });
            }
            Err(error) => return Err(error),
        };
        if output.code == 0 {
            return Ok(Push::Pushed);
        }
        let answer = String::from_utf8_lossy(&output.stdout);
        // Records such as `!<TAB>from:to<TAB>[rejected] (fetch first)`.
        match answer.lines().find(|line| line.starts_with("!\t")) {
            Some(line) => Ok(Push::Rejected { text: rejection(line, &output.stderr) }),
            None => Err(GitError::Remote { attempt, detail: output.stderr }),
        }
    }
}

fn rejection(record: &str, stderr: &str) -> String {
    let summary = record.rsplit('\t').next().unwrap_or(record);
    let said: Vec<&str> = stderr.lines().filter(|line| line.starts_with("remote: ")).collect();
    [&[summary], said.as_slice()].concat().join("\n")
}
