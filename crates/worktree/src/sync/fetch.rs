//! Reads the position of a remote's branch and fetches its commits.
//!
//! Exactly one branch is fetched, into a ref of drydock's own. A fetch of a branch that the remote does not
//! have fails like many other errors, so a failed fetch is followed by `ls-remote`, which has a distinct
//! result for that case. With a git that does not print the position of the branch (before 2.41), the
//! position is read from the ref.
//!
//! The first attempt does not replace settings of the configuration, so it only uses protocols that start no
//! program. With a remote on this machine, that attempt is the whole cost of a branch in sync. With a remote
//! over ssh or https it fails immediately, before anything is sent.

use std::fs;
use std::time::Duration;

use drydock_domain::error_chain;

use crate::address::FetchSource;
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::CommitId;
use crate::repository::commit_at;
use crate::run::{GitCall, GitContext};
use crate::sync::order::RemoteBranch;
use crate::worktrees::retry_past_partial_record;

const LIMIT: Duration = Duration::from_secs(60);

/// The position of the remote's branch.
pub(crate) enum Fetched {
    At(CommitId),
    Absent,
    Failed { reason: String },
}

/// Fetches the branch by protocols that start no program. Returns `None` if that fails.
pub(crate) fn fetch_at_once(place: &GitContext, remote: &str, names: &RemoteBranch<'_>) -> Option<CommitId> {
    // A configuration error occurs again in the next attempt, which reports it.
    let source = place.source(remote).ok().flatten()?;
    let attempt = format!("fetch {} from {remote}", names.branch);
    let call = place.call(attempt.as_str()).remote_without_programs().limit(LIMIT);
    try_fetch(place, call, &source, names, &attempt).ok()
}

/// Fetches the branch. A failure is part of the result, not an error.
pub(crate) fn fetch(
    place: &GitContext,
    guard: &Replacements,
    remote: &str,
    source: &FetchSource,
    names: &RemoteBranch<'_>,
) -> Fetched {
    let attempt = format!("fetch {} from {remote}", names.branch);
    let fetch = || try_fetch(place, ask(place, guard, &attempt), source, names, &attempt);
    match retry_past_partial_record(&place.common_dir, fetch) {
        Ok(tip) => Fetched::At(tip),
        // There is no second call after a timeout of one minute, nor with a git that does not know the
        // options.
        Err(error @ (GitError::TimedOut { .. } | GitError::UnknownOption { .. })) => {
            Fetched::Failed { reason: error_chain(&error) }
        }
        Err(error) => match is_absent(place, guard, source, names) {
            Ok(true) => Fetched::Absent,
            Ok(false) | Err(_) => Fetched::Failed { reason: error_chain(&error) },
        },
    }
}

fn try_fetch(
    place: &GitContext,
    call: GitCall,
    source: &FetchSource,
    names: &RemoteBranch<'_>,
    attempt: &str,
) -> Result<CommitId, GitError> {
    let RemoteBranch { branch, tracking } = names;
    let prints = place.git.prints_fetched();
    let call = call.arg("fetch");
    let call = if prints { call.args(["--porcelain", "--verbose"]) } else { call.arg("--quiet") };
    let call = call.args(["--no-tags", "--no-recurse-submodules", "--no-prune", "--no-auto-maintenance"]);
    // With an empty refmap, the configured refspecs do not update the user's own refs.
    let call = call.args(["--no-progress", "--no-write-fetch-head", "--refmap="]);
    let call = call.args(["--upload-pack=git-upload-pack", "--", &source.name]).settings(&source.settings);
    let output = call.arg(format!("+{branch}:{tracking}")).run()?;
    if !prints {
        let found = tracked(place, tracking)?;
        return found.ok_or_else(|| GitError::unexpected(attempt, format!("{tracking} is not there")));
    }
    let answer = output.text(attempt)?;
    // Lines such as `* <before> <after> <ref>`; the flag may be a space.
    let found = answer.lines().find_map(|line| {
        let rest = line.get(1..)?.trim_start().strip_suffix(*tracking)?;
        rest.split(' ').nth(1)?.parse().ok()
    });
    found.ok_or_else(|| GitError::unexpected(attempt, answer))
}

/// Reads the position of a fetched branch. Another process may have fetched it again since; that position is
/// as valid.
fn tracked(place: &GitContext, tracking: &str) -> Result<Option<CommitId>, GitError> {
    // A loose ref is read without a process: a sync of a branch in sync costs little more than a fetch.
    let file = fs::read_to_string(place.common_dir.join(tracking)).ok();
    match file.and_then(|text| text.trim_end().parse().ok()) {
        Some(commit) => Ok(Some(commit)),
        None => commit_at(place, tracking),
    }
}

fn is_absent(
    place: &GitContext,
    guard: &Replacements,
    source: &FetchSource,
    names: &RemoteBranch<'_>,
) -> Result<bool, GitError> {
    let attempt = format!("look for {} in {}", names.branch, source.name);
    let call =
        ask(place, guard, &attempt).settings(&source.settings).args(["ls-remote", "--exit-code", "--refs"]);
    let call = call.args(["--upload-pack=git-upload-pack", "--", &source.name, names.branch]).accept(&[0, 2]);
    let output = call.run()?;
    // `ls-remote` matches the end of the name, so it may return a longer name.
    let exact = |line: &str| line.split('\t').nth(1) == Some(names.branch);
    Ok(output.code == 2 || !String::from_utf8_lossy(&output.stdout).lines().any(exact))
}

/// Builds a call that contacts the remote. It runs in the root directory, because addresses such as
/// `../other` are relative to it.
fn ask(place: &GitContext, guard: &Replacements, attempt: &str) -> GitCall {
    place.call(attempt).remote().settings(guard).limit(LIMIT)
}
