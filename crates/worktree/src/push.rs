//! Pushes a commit to a branch of a remote. A push never forces and takes at most a minute.

use std::time::Duration;

use crate::error::GitError;
use crate::id::CommitId;
use crate::name;
use crate::remote_land::SentBranch;
use crate::repository::Repository;
use crate::run::GitCall;

const LIMIT: Duration = Duration::from_secs(60);

/// The remote's response to a push.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Push {
    /// The remote's branch is at the commit.
    Pushed,
    /// The remote rejected the push: it has other commits, or its rules do not allow it.
    Rejected {
        /// The remote's message.
        text: String,
    },
}

impl Repository {
    /// Pushes a commit to a branch of a configured remote. The remote's branch must not contain commits that
    /// this one does not.
    pub fn push(&self, remote: &str, branch: &str, commit: &CommitId) -> Result<Push, GitError> {
        let attempt = format!("push {branch} to {remote}");
        let refspec = format!("{commit}:{}", name::branch_ref(branch)?);
        let call = self.push_call(&attempt, remote)?.args(["--", remote]).arg(refspec);
        pushed(call, attempt)
    }

    /// Removes a branch from a configured remote if it is still at the commit where it was last seen.
    pub(crate) fn push_removal(&self, remote: &str, sent: &SentBranch) -> Result<Push, GitError> {
        let SentBranch { full, seen, .. } = sent;
        let attempt = format!("remove {full} from {remote}");
        let call = self.push_call(&attempt, remote)?.arg(format!("--force-with-lease={full}:{seen}"));
        pushed(call.args(["--", remote]).arg(format!(":{full}")), attempt)
    }
}

/// Runs a push of one ref.
fn pushed(call: GitCall, attempt: String) -> Result<Push, GitError> {
    let output = match call.accept(&[0, 1]).run() {
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
    // Lines such as `!<TAB>from:to<TAB>[rejected] (fetch first)`.
    match answer.lines().find(|line| line.starts_with("!\t")) {
        Some(line) => Ok(Push::Rejected { text: rejection(line, &output.stderr) }),
        None => Err(GitError::Remote { attempt, detail: output.stderr }),
    }
}

impl Repository {
    /// Builds a call that contacts remotes. It runs in the root directory, because addresses such as
    /// `../other` are relative to it.
    pub(crate) fn remote_call(&self, attempt: &str) -> Result<GitCall, GitError> {
        Ok(self.place().call(attempt).remote().settings(&self.place().guard()?).limit(LIMIT))
    }

    /// Builds a push; the caller adds the remote's name, refspecs and leases.
    pub(crate) fn push_call(&self, attempt: &str, remote: &str) -> Result<GitCall, GitError> {
        // Fails if the remote has several push addresses, because only one of them would be checked.
        self.place().source(name::remote(remote)?)?;
        let call = self.remote_call(attempt)?;
        let call = call.args(["push", "--porcelain", "--no-verify", "--no-follow-tags", "--no-progress"]);
        // The repository's configuration must not choose the program that runs at the remote.
        let call = call.args(["--recurse-submodules=no", "--receive-pack=git-receive-pack"]);
        // Not retried: the remote may have accepted the push, and a second attempt would report that as a
        // rejection.
        Ok(call.accept(&[0, 1, 128]).once())
    }
}

/// The result of a push for one ref.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RefPushResult {
    /// The remote accepted the update.
    Taken,
    /// Another update happened at the same time; a retry may succeed.
    Again { text: String },
    /// The remote rejects the update.
    Refused { text: String },
}

/// Texts with which git reports that a ref was not at the expected commit, or that a concurrent push won.
const AGAIN: [&str; 9] = [
    "stale info",
    "fetch first",
    "non-fast-forward",
    "cannot lock ref",
    "failed to update ref",
    "atomic transaction failed",
    // Since git 2.50.
    "incorrect old value provided",
    "reference already exists",
    "reference does not exist",
];

/// Finds the line about a ref in the output of `push --porcelain`, or returns `None` if there is none.
pub(crate) fn verdict_of(answer: &str, stderr: &str, full: &str) -> Option<RefPushResult> {
    // Lines such as `!<TAB>from:to<TAB>[rejected] (fetch first)`.
    let line = answer.lines().find(|line| {
        let names = line.split('\t').nth(1).and_then(|names| names.rsplit_once(':'));
        names.is_some_and(|(_, to)| to == full)
    })?;
    if !line.starts_with("!\t") {
        return Some(RefPushResult::Taken);
    }
    let summary = line.rsplit('\t').next().unwrap_or(line);
    if AGAIN.iter().any(|words| summary.contains(words)) {
        return Some(RefPushResult::Again { text: summary.to_owned() });
    }
    Some(RefPushResult::Refused { text: rejection(line, stderr) })
}

fn rejection(record: &str, stderr: &str) -> String {
    let summary = record.rsplit('\t').next().unwrap_or(record);
    let said = stderr.lines().filter(|line| line.starts_with("remote: "));
    let said: Vec<&str> = said.map(str::trim_end).collect();
    [&[summary], said.as_slice()].concat().join("\n")
}
