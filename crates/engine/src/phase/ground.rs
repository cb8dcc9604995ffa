//! Where a plan starts and where it lands: at the target branch of the project's remote, or at the local
//! branch if the project has no remote. A landing never publishes commits that only the local branch has.

use drydock_domain::{Event, Project, RemoteAway, SyncOutcome};
use drydock_worktree::{CommitId, GitError, RemoteTip, Repository};

use super::scope::commit_id;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::task;

/// Maximum number of commits named in a text.
const NAMED_MAX: usize = 5;

/// The commit from which a landing starts.
#[derive(Debug, Clone)]
pub(super) struct LandingBase {
    /// The tip of the target.
    pub(super) from: CommitId,
    /// True if the remote does not have the branch yet.
    pub(super) creates: bool,
}

/// The result of `look`.
pub(super) enum Looked {
    Found(LandingBase),
    /// The plan is based on commits that the remote does not have.
    Unpushed(String),
    Away(RemoteAway),
}

/// Determines where the landing of a plan based on `base` starts.
pub(super) fn look(
    repository: &Repository,
    remote: Option<&str>,
    target: &str,
    base: &CommitId,
    plan: &str,
) -> Result<Looked, EngineError> {
    let here = || match repository.branch_tip(target)? {
        Some(tip) => Ok(tip),
        None => Err(EngineError::absent_in("branch", target, repository.root())),
    };
    let Some(remote) = remote else {
        return Ok(Looked::Found(LandingBase { from: here()?, creates: false }));
    };
    match repository.remote_tip(remote, target)? {
        RemoteTip::Away { reason } => Ok(Looked::Away(away(remote, &reason))),
        RemoteTip::Absent => Ok(Looked::Found(LandingBase { from: here()?, creates: true })),
        RemoteTip::At(tip) if repository.descends(&tip, base)? => {
            Ok(Looked::Found(LandingBase { from: tip, creates: false }))
        }
        RemoteTip::At(tip) => {
            let commits = repository.commits_beyond(base, &tip, NAMED_MAX)?.join("; ");
            let local = repository.branch_tip(target)?;
            let pushable = match &local {
                Some(local) => repository.descends(local, &tip)? && repository.descends(local, base)?,
                None => false,
            };
            Ok(Looked::Unpushed(if pushable {
                format!(
                    "the plan builds on commits of {target} that {remote} does not have ({commits}); \
                     publish them with \
                     `git push {remote} {target}`, then `drydock plan retry {plan}`"
                )
            } else {
                format!(
                    "the plan builds on commits that {target} of {remote} does not have ({commits}); start again from the remote's commits with `drydock plan revert {plan}`"
                )
            }))
        }
    }
}

/// Describes a remote that did not answer.
pub(super) fn away(remote: &str, reason: &str) -> RemoteAway {
    RemoteAway { remote: remote.to_owned(), text: one_line(reason), contended: false }
}

/// Returns a text from git as one line.
pub(super) fn one_line(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines.join("; ")
}

/// Returns the remote that a sync could not fetch from, if that was the outcome.
pub(super) fn unreachable(project: &Project, outcome: &SyncOutcome) -> Option<RemoteAway> {
    match (outcome, &project.remote) {
        (SyncOutcome::FetchFailed { reason }, Some(remote)) => Some(away(remote, reason)),
        _ => None,
    }
}

impl Engine {
    /// Returns the base commit for a run that starts at `from`, or at the target if `None`. The target is the local
    /// branch if it contains the remote's tip, else the remote's tip. If `from` does not contain it, the base is the
    /// commit at which they fork: the changes of a run are what it adds to its base. Emits an alert that names the
    /// commits of the base which the remote does not have: the plan cannot land before they are pushed.
    pub(super) async fn base_for(
        &self,
        hold: &PlanLockGuard,
        project: &Project,
        target: &str,
        from: Option<&str>,
    ) -> Result<String, EngineError> {
        let (repository, branch) = (self.repository(project).await?, target.to_owned());
        let (root, name) = (repository.root().to_owned(), project.remote.clone());
        let from = from.map(commit_id).transpose()?;
        let looked =
            task::blocking(move || base(&repository, name.as_deref(), &branch, from.as_ref())).await?;
        let (base, unpushed) = match looked {
            Based::On(base, unpushed) => (base, unpushed),
            Based::Away(reason) => {
                let outcome = Box::new(SyncOutcome::FetchFailed { reason });
                return Err(EngineError::Unsynced { outcome });
            }
            Based::Nowhere => return Err(EngineError::absent_in("branch", target, &root)),
        };
        if let (false, Some(remote)) = (unpushed.is_empty(), &project.remote) {
            let commits = unpushed.join("; ");
            let text = format!(
                "{target} has commits that {remote} does not have, and the plan builds on them: {commits}; it cannot land \
                 before `git push {remote} {target}`"
            );
            self.emit(hold, vec![Event::Alert { priority: "low", text }]).await?;
        }
        Ok(base.to_string())
    }
}

enum Based {
    /// The base commit, and the commits in it that the remote does not have.
    On(CommitId, Vec<String>),
    Away(String),
    Nowhere,
}

fn base(
    repository: &Repository,
    remote: Option<&str>,
    target: &str,
    from: Option<&CommitId>,
) -> Result<Based, GitError> {
    let fork = |tip: CommitId| match from {
        None => Ok(tip),
        Some(from) => Ok(repository.merge_base(&tip, from)?.unwrap_or(tip)),
    };
    let local = repository.branch_tip(target)?;
    let tip = match remote {
        None => RemoteTip::Absent,
        Some(remote) => repository.remote_tip(remote, target)?,
    };
    match (tip, local) {
        (RemoteTip::Away { reason }, _) => Ok(Based::Away(reason)),
        (RemoteTip::Absent, Some(local)) => Ok(Based::On(fork(local)?, Vec::new())),
        (RemoteTip::Absent, None) => Ok(Based::Nowhere),
        (RemoteTip::At(tip), Some(local)) if repository.descends(&local, &tip)? => {
            let base = fork(local)?;
            let unpushed = repository.commits_beyond(&base, &tip, NAMED_MAX)?;
            Ok(Based::On(base, unpushed))
        }
        (RemoteTip::At(tip), Some(_) | None) => Ok(Based::On(fork(tip)?, Vec::new())),
    }
}
