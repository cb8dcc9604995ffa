//! What the feed tells. Events are written typed and read back as kind and data: readers are other programs,
//! and what they rely on is the JSON.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    ChangesetId, Choice, CommitLine, Decision, DecisionId, Enforcement, Failure, Intent, Phase, PlanId,
    Postponed, Resolution, RestartPoint, ReviewOpinion, ReviewRun, RunId, SyncOutcome, TakeOverCause,
    Timestamp, ValidationRun,
};

/// Something that happened to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The plan was made.
    Created {
        /// Its task.
        task: String,
    },
    /// A run began.
    Started(Phase),
    /// A phase reached its end.
    Completed(Phase),
    /// The next phase is queued.
    Advanced(Phase),
    /// A phase failed.
    Errored(Failure, Option<DecisionId>),
    /// A phase waits for a person.
    Waiting(DecisionId),
    /// A waiting phase is queued again.
    Resumed,
    /// The plan was ended.
    Cancelled(String),
    /// The plan went back to Strategize.
    Reverted {
        /// Why.
        reason: String,
        /// How often by now.
        count: u32,
    },
    /// A failed phase is queued again.
    Retried,
    /// A failed Execute is queued again from where the plan's work began.
    StartedOver,
    /// A person accepted the work that a failed run left; it is judged next.
    Accepted {
        /// The commit that keeps it.
        commit: String,
    },
    /// A run without a live owner was ended; its phase is queued again.
    TakenOver(TakeOverCause, Option<RestartPoint>),
    /// The result landed.
    Applied {
        /// The landed commit.
        commit: String,
    },
    /// The merged result is not acceptable.
    Constrained(Vec<String>),
    /// The work went back to an earlier state.
    RolledBack {
        /// The commit that keeps it.
        commit: String,
    },
    /// Others put commits on the branch after its work was judged; it is judged again.
    Reexamined {
        /// The commit that was judged.
        from: Option<String>,
        /// The commit that is judged now.
        to: String,
        /// The commits of others, oldest first.
        commits: Vec<CommitLine>,
    },
    /// A run made a commit, and the branch is about to be moved to it.
    Committed {
        /// The commit.
        commit: String,
    },
    /// A person added guidance.
    Prompted(String),
    /// An agent recorded a choice.
    ChoiceRecorded(Choice),
    /// Invariants were enforced and let the transition pass.
    InvariantEnforced(Enforcement),
    /// Invariants blocked a transition.
    InvariantBlocked(Enforcement),
    /// A person is asked.
    DecisionOpened(Box<Decision>),
    /// A fact was added to the open question.
    DecisionAmended(Box<Decision>),
    /// A person answered.
    DecisionResolved(DecisionId, Resolution),
    /// The question's cause is gone.
    DecisionWithdrawn {
        /// Which one.
        id: DecisionId,
        /// Why.
        reason: String,
    },
    /// A writer opened its changeset.
    ChangesetOpened {
        /// Which one.
        id: ChangesetId,
        /// Who writes.
        writer: String,
    },
    /// A changeset is final.
    ChangesetSealed {
        /// Which one.
        id: ChangesetId,
        /// How many changes it holds.
        entries: i64,
    },
    /// A strategy draft became the strategy.
    StrategyAdopted {
        /// How many choices it has.
        choices: usize,
    },
    /// What a sync came to.
    Synced(SyncOutcome),
    /// The remote took the landed target. That it did not is an outcome of a sync like any other.
    TargetSent {
        /// The target branch.
        target: String,
        /// The remote.
        remote: String,
        /// The commit that it is at.
        commit: String,
    },
    /// A person removed a backup that was needed.
    BackupDiscarded {
        /// The ref.
        backup_ref: String,
        /// The commit that it kept.
        commit: String,
        /// The commits that nothing else had, oldest first.
        commits: Vec<CommitLine>,
        /// Whether it kept edits that were not committed.
        uncommitted: bool,
    },
    /// A landing is about to begin.
    ApplyIntended(Intent),
    /// A begun landing was seen not to have happened.
    ApplyForgone(Intent),
    /// An agent started, ended or said something.
    Agent {
        /// What, e.g. `started`.
        what: &'static str,
        /// The rest.
        details: Value,
    },
    /// An agent's rate limit cut a run short.
    RateLimited(Postponed),
    /// The remote of the target is away; the landing is tried again later.
    LandingPostponed(Postponed),
    /// Something about a subplan.
    Subplan {
        /// What, e.g. `joined`.
        what: &'static str,
        /// The rest.
        details: Value,
    },
    /// A validation gave its answer.
    Validated(ValidationRun),
    /// A proposal was made to the reviewers.
    Proposed {
        /// Its number within the run.
        number: usize,
        /// Its commit.
        commit: String,
    },
    /// A reviewer gave its answer to a proposal.
    Reviewed {
        /// The proposal's number.
        number: usize,
        /// What it said.
        review: ReviewRun,
    },
    /// A lock was broken by a person.
    LockBroken {
        /// Who held it.
        owner: String,
        /// Why.
        reason: String,
    },
    /// Somebody should look.
    Alert {
        /// How urgent: `low` or `high`.
        priority: &'static str,
        /// What it is about.
        text: String,
    },
}

impl Event {
    /// The kind of the events that keep which commits are a plan's own.
    pub const COMMITTED: &'static str = "plan.committed";

    /// Returns the kind, as in `plan.started`.
    pub fn kind(&self) -> String {
        match self {
            Event::Created { .. } => "plan.created",
            Event::Started(_) => "plan.started",
            Event::Completed(_) => "plan.completed",
            Event::Advanced(_) => "plan.advanced",
            Event::Errored(..) => "plan.errored",
            Event::Waiting(_) => "plan.waiting",
            Event::Resumed => "plan.resumed",
            Event::Cancelled(_) => "plan.cancelled",
            Event::Reverted { .. } => "plan.reverted",
            Event::Retried | Event::StartedOver => "plan.retried",
            Event::Accepted { .. } => "plan.accepted",
            Event::TakenOver(..) => "plan.taken_over",
            Event::Applied { .. } => "plan.applied",
            Event::Constrained(_) => "plan.constrained",
            Event::RolledBack { .. } => "plan.rolled_back",
            Event::Reexamined { .. } => "plan.reexamined",
            Event::Committed { .. } => Event::COMMITTED,
            Event::Prompted(_) => "plan.prompted",
            Event::ChoiceRecorded(_) => "agent.choice",
            Event::InvariantEnforced(_) => "invariant.enforced",
            Event::InvariantBlocked(_) => "invariant.blocked",
            Event::DecisionOpened(_) => "decision.opened",
            Event::DecisionAmended(_) => "decision.amended",
            Event::DecisionResolved(..) => "decision.resolved",
            Event::DecisionWithdrawn { .. } => "decision.withdrawn",
            Event::ChangesetOpened { .. } => "changeset.opened",
            Event::ChangesetSealed { .. } => "changeset.sealed",
            Event::StrategyAdopted { .. } => "plan.strategy_adopted",
            Event::Synced(outcome) => return format!("sync.{}", outcome.name()),
            Event::TargetSent { .. } => "sync.pushed",
            Event::BackupDiscarded { .. } => "backup.discarded",
            Event::ApplyIntended(_) => "apply.intended",
            Event::ApplyForgone(_) => "apply.forgone",
            Event::Agent { what, .. } => return format!("agent.{what}"),
            Event::RateLimited(_) => "agent.rate_limited",
            Event::LandingPostponed(_) => "apply.postponed",
            Event::Subplan { what, .. } => return format!("subplan.{what}"),
            Event::Validated(run) if run.passed => "validation.passed",
            Event::Validated(_) => "validation.failed",
            Event::Proposed { .. } => "review.proposed",
            Event::Reviewed { review, .. } => match review.opinion {
                ReviewOpinion::Acknowledged => "review.acknowledged",
                ReviewOpinion::Refused { .. } => "review.refused",
                ReviewOpinion::Silent { .. } => "review.silent",
            },
            Event::LockBroken { .. } => "lock.broken",
            Event::Alert { .. } => "alert",
        }
        .to_owned()
    }

    /// Returns what the kind does not say.
    pub fn details(&self) -> Value {
        match self {
            Event::Created { task } => json!({ "task": task }),
            Event::Started(phase) | Event::Completed(phase) => json!({ "phase": phase }),
            Event::Advanced(phase) => json!({ "to": phase }),
            Event::Errored(failure, decision) => json!({ "error": failure, "decision": decision }),
            Event::Waiting(decision) => json!({ "decision": decision }),
            Event::Resumed | Event::Retried => json!({}),
            Event::StartedOver => json!({ "from": "base" }),
            Event::Accepted { commit } => json!({ "commit": commit }),
            Event::Cancelled(reason) => json!({ "reason": reason }),
            Event::Reverted { reason, count } => json!({ "reason": reason, "count": count }),
            Event::TakenOver(cause, None) => json!({ "cause": cause.name() }),
            Event::TakenOver(cause, Some(RestartPoint { commit, checkpoint })) => {
                json!({ "cause": cause.name(), "checkpoint": checkpoint, "commit": commit })
            }
            Event::Applied { commit } => json!({ "commit": commit }),
            Event::Constrained(reasons) => json!({ "reasons": reasons }),
            Event::RolledBack { commit } => json!({ "commit": commit }),
            Event::Reexamined { from, to, commits } => json!({ "from": from, "to": to, "commits": commits }),
            Event::Committed { commit } => json!({ "commit": commit }),
            Event::Prompted(text) => json!({ "text": text }),
            Event::ChoiceRecorded(choice) => json!(choice),
            Event::InvariantEnforced(enforcement) | Event::InvariantBlocked(enforcement) => {
                json!(enforcement)
            }
            Event::DecisionOpened(decision) | Event::DecisionAmended(decision) => json!({
                "id": decision.id,
                "kind": decision.question.kind,
                "question": decision.question.text,
                "options": decision.question.options.iter().map(|option| &option.id).collect::<Vec<_>>(),
            }),
            Event::DecisionResolved(id, resolution) => {
                json!({ "id": id, "option": resolution.option, "note": resolution.note, "by": resolution.by, "via": resolution.via })
            }
            Event::DecisionWithdrawn { id, reason } => json!({ "id": id, "reason": reason }),
            Event::ChangesetOpened { id, writer } => json!({ "id": id, "writer": writer }),
            Event::ChangesetSealed { id, entries } => json!({ "id": id, "entries": entries }),
            Event::StrategyAdopted { choices } => json!({ "choices": choices }),
            Event::Synced(outcome) => outcome.told(),
            Event::TargetSent { target, remote, commit } => {
                json!({ "target": target, "remote": remote, "commit": commit })
            }
            Event::Agent { details, .. } | Event::Subplan { details, .. } => details.clone(),
            Event::BackupDiscarded { backup_ref, commit, commits, uncommitted } => json!({
                "backup_ref": backup_ref,
                "commit": commit,
                "commits": commits,
                "uncommitted": uncommitted,
            }),
            Event::ApplyIntended(intent) | Event::ApplyForgone(intent) => json!(intent),
            Event::RateLimited(Postponed { until, agent, times, .. }) => {
                json!({ "agent": agent, "until": until.to_string(), "times": times })
            }
            Event::LandingPostponed(postponed) => postponed.details(),
            Event::Validated(run) => json!(run),
            Event::Proposed { number, commit } => json!({ "proposal": number, "commit": commit }),
            Event::Reviewed { number, review } => reviewed(*number, review),
            Event::LockBroken { owner, reason } => json!({ "owner": owner, "reason": reason }),
            Event::Alert { priority, text } => json!({ "priority": priority, "text": text }),
        }
    }
}

fn reviewed(number: usize, review: &ReviewRun) -> Value {
    let reason = match &review.opinion {
        ReviewOpinion::Acknowledged => None,
        ReviewOpinion::Refused { reason } | ReviewOpinion::Silent { reason } => Some(reason),
    };
    json!({
        "proposal": number,
        "commit": review.commit,
        "agent": review.agent,
        "critical": review.critical,
        "reason": reason,
    })
}

/// An event as it stands in the feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Recorded {
    /// Its place in the feed.
    pub seq: i64,
    /// When it was committed.
    pub at: Timestamp,
    /// What happened.
    pub kind: String,
    /// To which plan.
    pub plan: Option<PlanId>,
    /// In which run.
    pub run: Option<RunId>,
    /// The plan's revision after it.
    pub revision: Option<i64>,
    /// The rest.
    pub details: Value,
}
