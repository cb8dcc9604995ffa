//! Asking the remote where its branch is, and bringing its commits here.
//!
//! Exactly one branch is fetched, into a ref of ours. A branch that the remote does not have makes the fetch fail like
//! many other things do, so a failed fetch is followed by a question that has an answer of its own for it.
//!
//! A git that does not print where the branch is (before 2.41) has it read from the ref.
//!
//! The first attempt replaces nothing that the configuration names, and is therefore made only by protocols that start no
//! program. With a remote on this machine it is all that a branch in sync costs; with one that is reached by ssh or https it
//! ends at once, before anything is sent.

use std::fs;
use std::time::Duration;

use drydock_domain::told;

use crate::address::Source;
use crate::error::GitError;
use crate::guard::Replacements;
use crate::id::CommitId;
use crate::repository::commit_at;
use crate::run::{Call, Place};
use crate::sync::order::RemoteBranch;
use crate::worktrees::past_half_made;

const LIMIT: Duration = Duration::from_secs(60);

/// Where the remote's branch is.
pub(crate) enum Fetched {
    At(CommitId),
    Absent,
    Failed { reason: String },
}

/// Fetches the branch by protocols that start no program. Returns none if that fails.
pub(crate) fn fetch_at_once(place: &Place, remote: &str, names: &RemoteBranch<'_>) -> Option<CommitId> {
    // The attempt that follows meets an error of the configuration again, and reports it.
    let source = place.source(remote).ok().flatten()?;
    let attempt = format!("fetch {} from {remote}", names.branch);
    let call = place.call(attempt.as_str()).remote_without_programs().limit(LIMIT);
    try_fetch(place, call, &source, names, &attempt).ok()
}

/// Fetches the branch; whatever goes wrong is an answer too.
pub(crate) fn fetch(
    place: &Place,
    guard: &Replacements,
    remote: &str,
    source: &Source,
    names: &RemoteBranch<'_>,
) -> Fetched {
    let attempt = format!("fetch {} from {remote}", names.branch);
    let fetch = || try_fetch(place, ask(place, guard, &attempt), source, names, &attempt);
    match past_half_made(&place.common_dir, fetch) {
        Ok(tip) => Fetched::At(tip),
        // A remote that did not answer in a minute is not asked a second time, nor by a git that lacks the words.
        Err(error @ (GitError::TimedOut { .. } | GitError::UnknownOption { .. })) => {
            Fetched::Failed { reason: told(&error) }
        }
        Err(error) => match is_absent(place, guard, source, names) {
            Ok(true) => Fetched::Absent,
            Ok(false) | Err(_) => Fetched::Failed { reason: told(&error) },
        },
    }
}

fn try_fetch(
    place: &Place,
    call: Call,
    source: &Source,
    names: &RemoteBranch<'_>,
    attempt: &str,
) -> Result<CommitId, GitError> {
    let RemoteBranch { branch, tracking } = names;
    let prints = place.git.prints_fetched();
    let call = call.arg("fetch");
    let call = if prints { call.args(["--porcelain", "--verbose"]) } else { call.arg("--quiet") };
    let call = call.args(["--no-tags", "--no-recurse-submodules", "--no-prune", "--no-auto-maintenance"]);
    // An empty map keeps the refspecs of the configuration from updating the user's own refs on the way.
    let call = call.args(["--no-progress", "--no-write-fetch-head", "--refmap="]);
    let call = call.args(["--upload-pack=git-upload-pack", "--", &source.name]).settings(&source.settings);
    let output = call.arg(format!("+{branch}:{tracking}")).run()?;
    if !prints {
        let found = tracked(place, tracking)?;
        return found.ok_or_else(|| GitError::unexpected(attempt, format!("{tracking} is not there")));
    }
    let answer = output.text(attempt)?;
    // Records such as `* <before> <after> <ref>`; the flag may be a space.
    let found = answer.lines().find_map(|line| {
        let rest = line.get(1..)?.trim_start().strip_suffix(*tracking)?;
        rest.split(' ').nth(1)?.parse().ok()
    });
    found.ok_or_else(|| GitError::unexpected(attempt, answer))
}

/// Reads where a branch was fetched to. Another process may have fetched it again since, which is as good an answer.
fn tracked(place: &Place, tracking: &str) -> Result<Option<CommitId>, GitError> {
    // A ref in a file of its own needs no further process: a sync of a branch that is in sync is little more than a fetch.
    let file = fs::read_to_string(place.common_dir.join(tracking)).ok();
    match file.and_then(|text| text.trim_end().parse().ok()) {
        Some(commit) => Ok(Some(commit)),
        None => commit_at(place, tracking),
    }
}

fn is_absent(
    place: &Place,
    guard: &Replacements,
    source: &Source,
    names: &RemoteBranch<'_>,
) -> Result<bool, GitError> {
    let attempt = format!("look for {} in {}", names.branch, source.name);
    let call =
        ask(place, guard, &attempt).settings(&source.settings).args(["ls-remote", "--exit-code", "--refs"]);
    let call = call.args(["--upload-pack=git-upload-pack", "--", &source.name, names.branch]).accept(&[0, 2]);
    let output = call.run()?;
    // The name is compared from its end, so a longer one may have been found.
    let exact = |line: &str| line.split('\t').nth(1) == Some(names.branch);
    Ok(output.code == 2 || !String::from_utf8_lossy(&output.stdout).lines().any(exact))
}

/// In the root, to which an address such as `../other` is relative.
fn ask(place: &Place, guard: &Replacements, attempt: &str) -> Call {
    place.call(attempt).remote().settings(guard).limit(LIMIT)
}
