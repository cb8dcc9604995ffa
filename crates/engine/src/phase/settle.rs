//! Determines how a started landing ended. The repository decides, at the remote if there is one: first all
//! intents of the plan are deleted, so that nothing can land under them any more, and then the target is
//! read.

use drydock_domain::{Intent, LandingProof, Plan, PlanId, Project, RemoteAway, RunId, error_chain};
use drydock_worktree::{CommitId, RefDeleted, RemoteTip, Repository, Revoked};

use super::ground::away;
use super::scope::commit_id;
use crate::error::EngineError;

/// How a landing ended.
pub(crate) enum IntentEnd {
    /// The target contains this commit.
    Landed(CommitId, LandingProof),
    /// The target does not contain the commit, and still contains the commit from which the landing started.
    NotLanded,
    /// The target was rewritten: only a person can decide.
    Rewritten,
    /// The remote did not answer.
    Unknown(RemoteAway),
}

/// Prefix of the intents of all plans.
pub(super) const INTENTS: &str = "refs/drydock/intent/";

/// Returns the name of the local ref that keeps the commit a run is about to land.
pub(super) fn intent_name(plan: &PlanId, run: &RunId) -> String {
    format!("{INTENTS}{plan}/{run}")
}

/// Deletes all intents of a plan, and determines how its landing ended.
pub(crate) fn intent_end(
    repository: &Repository,
    project: &Project,
    plan: &Plan,
    intent: &Intent,
) -> Result<IntentEnd, EngineError> {
    // An intent written by an earlier version does not name the remote, but the remote must have the commit
    // anyway.
    let remote = intent.remote.as_deref().or(project.remote.as_deref());
    let (revoked, tip) = match remote {
        None => {
            let revoked = revoke(repository, &plan.id);
            (revoked, repository.branch_tip(&intent.target)?)
        }
        Some(remote) => {
            match repository.intents_revoke(remote, plan.id.as_str())? {
                Revoked::Gone => {}
                Revoked::Away { reason } => return Ok(IntentEnd::Unknown(away(remote, &reason))),
                // The target still shows how the landing ended; only a push still in progress could change
                // that.
                Revoked::Refused { text } => {
                    tracing::warn!(plan = %plan.id, remote, text, "could not delete the intents of a landing at the remote");
                }
            }
            let tip = match repository.remote_tip(remote, &intent.target)? {
                RemoteTip::At(tip) => Some(tip),
                RemoteTip::Absent => None,
                RemoteTip::Away { reason } => return Ok(IntentEnd::Unknown(away(remote, &reason))),
            };
            (revoke(repository, &plan.id), tip)
        }
    };
    let end = end_at(repository, plan, intent, tip)?;
    match (revoked, &end) {
        // Nothing can land twice under a remaining intent. It is removed with the plan's other refs, except for
        // a subplan in another project, where it stays without effect.
        (Err(error), IntentEnd::Landed(..)) if !matches!(error, EngineError::LeaseLost { .. }) => {
            tracing::warn!(plan = %plan.id, error = %error_chain(&error), "the intent of a landing stays for now");
        }
        (revoked, _) => revoked?,
    }
    Ok(end)
}

/// Determines how a landing ended from the tip of its target.
fn end_at(
    repository: &Repository,
    plan: &Plan,
    intent: &Intent,
    tip: Option<CommitId>,
) -> Result<IntentEnd, EngineError> {
    let Some(tip) = tip else {
        return Ok(if intent.creates { IntentEnd::NotLanded } else { IntentEnd::Rewritten });
    };
    let to = commit_id(&intent.to)?;
    if repository.descends(&tip, &to)? {
        return Ok(IntentEnd::Landed(to, LandingProof::Intended));
    }
    let base = commit_id(&plan.base_commit)?;
    if repository.commit_exists(&base)?
        && let Some(found) = repository.landing_of(plan.id.as_str(), &base, &tip)?
    {
        return Ok(IntentEnd::Landed(found, LandingProof::Found));
    }
    let stands = intent.creates || repository.descends(&tip, &commit_id(&intent.from)?)?;
    Ok(if stands { IntentEnd::NotLanded } else { IntentEnd::Rewritten })
}

/// Deletes the local intents of a plan.
pub(super) fn revoke(repository: &Repository, plan: &PlanId) -> Result<(), EngineError> {
    for (name, commit) in repository.refs(&format!("{INTENTS}{plan}/"))? {
        match repository.ref_delete(&name, &commit)? {
            RefDeleted::Deleted | RefDeleted::Absent => {}
            RefDeleted::Moved { .. } => return Err(EngineError::LeaseLost { key: plan.to_string() }),
        }
    }
    Ok(())
}
