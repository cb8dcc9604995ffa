//! How a landing that was begun ended. The repository says it, at the remote where there is one: all intents of the plan
//! are deleted first, so nothing can land under them any more, and then the target is looked at.

use drydock_domain::{Intent, LandingProof, Plan, PlanId, Project, RemoteAway, RunId};
use drydock_worktree::{CommitId, RefDeleted, RemoteTip, Repository, Revoked};

use super::ground::away;
use super::scope::commit_id;
use crate::error::EngineError;

/// How it ended.
pub(crate) enum IntentEnd {
    /// The target contains this commit.
    Landed(CommitId, LandingProof),
    /// It does not, and still has the commit that the landing began from.
    NotLanded,
    /// The target was rewritten: only a person can say.
    Rewritten,
    /// The remote did not answer.
    Unknown(RemoteAway),
}

/// Below this are the intents of all plans.
pub(super) const INTENTS: &str = "refs/drydock/intent/";

/// The local ref that names the commit that a run is about to land, and keeps it.
pub(super) fn intent_name(plan: &PlanId, run: &RunId) -> String {
    format!("{INTENTS}{plan}/{run}")
}

/// Deletes every intent of a plan, and finds out how its landing ended.
pub(crate) fn intent_end(
    repository: &Repository,
    project: &Project,
    plan: &Plan,
    intent: &Intent,
) -> Result<IntentEnd, EngineError> {
    // An intent of an earlier version does not name the remote, which has to have the commit all the same.
    let remote = intent.remote.as_deref().or(project.remote.as_deref());
    let tip = match remote {
        None => repository.branch_tip(&intent.target)?,
        Some(remote) => {
            match repository.intents_revoke(remote, plan.id.as_str())? {
                Revoked::Gone => {}
                Revoked::Away { reason } => return Ok(IntentEnd::Unknown(away(remote, &reason))),
                // The target still says how it stands; only a push that is still under way could change that.
                Revoked::Refused { text } => {
                    tracing::warn!(plan = %plan.id, remote, text, "the remote keeps the intents of a landing");
                }
            }
            match repository.remote_tip(remote, &intent.target)? {
                RemoteTip::At(tip) => Some(tip),
                RemoteTip::Absent => None,
                RemoteTip::Away { reason } => return Ok(IntentEnd::Unknown(away(remote, &reason))),
            }
        }
    };
    revoke(repository, &plan.id)?;
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
