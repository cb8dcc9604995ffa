//! Events: the facts stored in the feed. They are written as typed values and read back as kind and JSON,
//! because the readers are other programs and the JSON is the contract.

use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    ChangesetId, Choice, CommitLine, Decision, DecisionId, Enforcement, Failure, Intent, Phase, PlanId,
    Postponed, Remains, Resolution, RestartPoint, ReviewOpinion, ReviewResult, RunId, SyncOutcome,
    TakeOverCause, Timestamp, ValidationResult,
};

/// A fact about a plan, stored in the feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The plan was created.
    Created {
        /// The plan's task.
        task: String,
    },
    /// A run started.
    Started(Phase),
    /// A phase completed.
    Completed(Phase),
    /// The next phase is queued.
    Advanced(Phase),
    /// A phase failed.
    Errored(Failure, Option<DecisionId>),
    /// A phase waits for a person.
    Waiting(DecisionId),
    /// A waiting phase is queued again.
    Resumed,
    /// The plan was cancelled.
    Cancelled(String),
    /// The plan went back to Strategize.
    Reverted {
        /// Reason for going back.
        reason: String,
        /// How often the plan has gone back, including this time.
        count: u32,
    },
    /// A failed phase is queued again.
    Retried,
    /// A failed Execute is queued again, from the commit at which the plan's work began.
    StartedOver,
    /// A person accepted the work of a failed run; it is validated and reviewed next.
    Accepted {
        /// The commit with the work.
        commit: String,
    },
    /// A run without a live holder was ended; its phase is queued again.
    TakenOver(TakeOverCause, Remains),
    /// The result landed.
    Applied {
        /// The landed commit.
        commit: String,
    },
    /// The merged result is not acceptable.
    Constrained(Vec<String>),
    /// The work went back to an earlier state.
    RolledBack {
        /// The commit of that state.
        commit: String,
    },
    /// Commits from outside were added to the branch after its work was checked; it is checked again.
    Reexamined {
        /// The commit that was checked.
        from: Option<String>,
        /// The commit that is checked now.
        to: String,
        /// The commits from outside, oldest first.
        commits: Vec<CommitLine>,
    },
    /// A run created a commit, and the branch is about to move to it.
    Committed {
        /// The commit.
        commit: String,
    },
    /// A person added guidance.
    Prompted(String),
    /// An agent recorded a choice.
    ChoiceRecorded(Choice),
    /// The invariants were enforced and did not block the transition.
    InvariantEnforced(Enforcement),
    /// Invariants blocked a transition.
    InvariantBlocked(Enforcement),
    /// A question was asked.
    DecisionOpened(Box<Decision>),
    /// A fact was added to the open question.
    DecisionAmended(Box<Decision>),
    /// A person answered.
    DecisionResolved(DecisionId, Resolution),
    /// The question no longer applies.
    DecisionWithdrawn {
        /// The decision.
        id: DecisionId,
        /// Why the question was withdrawn.
        reason: String,
    },
    /// A writer opened its changeset.
    ChangesetOpened {
        /// The changeset.
        id: ChangesetId,
        /// The name of the writer.
        writer: String,
    },
    /// A changeset is final.
    ChangesetSealed {
        /// The changeset.
        id: ChangesetId,
        /// Number of changes in it.
        entries: i64,
    },
    /// A strategy draft became the strategy.
    StrategyAdopted {
        /// Number of choices in it.
        choices: usize,
    },
    /// The outcome of a sync.
    Synced(SyncOutcome),
    /// The remote accepted the landed target. A failed push is reported as an outcome of a sync instead.
    TargetSent {
        /// The target branch.
        target: String,
        /// The remote.
        remote: String,
        /// The pushed commit.
        commit: String,
    },
    /// A person deleted a backup that was still needed.
    BackupDiscarded {
        /// The ref of the backup.
        backup_ref: String,
        /// The commit that it kept.
        commit: String,
        /// The commits that no other ref kept, oldest first.
        commits: Vec<CommitLine>,
        /// Whether it kept uncommitted edits.
        uncommitted: bool,
    },
    /// A landing is about to start.
    ApplyIntended(Intent),
    /// A started landing did not happen.
    ApplyForgone(Intent),
    /// An agent started, ended, or sent a message.
    Agent {
        /// Second part of the kind, e.g. `started`.
        what: &'static str,
        /// Remaining data of the event.
        details: Value,
    },
    /// An agent's rate limit interrupted a run.
    RateLimited(Postponed),
    /// The target's remote is unavailable; the landing is retried later.
    LandingPostponed(Postponed),
    /// An event about a subplan.
    Subplan {
        /// Second part of the kind, e.g. `joined`.
        what: &'static str,
        /// Remaining data of the event.
        details: Value,
    },
    /// A validation finished.
    Validated(ValidationResult),
    /// A proposal was sent to the reviewers.
    Proposed {
        /// Number of the proposal within the run.
        number: usize,
        /// The proposed commit.
        commit: String,
    },
    /// A reviewer gave its verdict on a proposal.
    Reviewed {
        /// Number of the proposal within the run.
        number: usize,
        /// The verdict.
        review: ReviewResult,
    },
    /// A person broke a lock.
    LockBroken {
        /// The holder of the broken lock.
        owner: String,
        /// The person's reason.
        reason: String,
    },
    /// Something that a person should check.
    Alert {
        /// Urgency: `low` or `high`.
        priority: &'static str,
        /// Text of the alert.
        text: String,
    },
}

impl Event {
    /// The kind of the events that record the commits made by a plan's runs.
    pub const COMMITTED: &'static str = "plan.committed";
    /// The kind of the event at the start of each run.
    pub const STARTED: &'static str = "plan.started";
    /// The kind of the events that record guidance of a person.
    pub const PROMPTED: &'static str = "plan.prompted";

    /// Returns the kind, e.g. `plan.started`.
    pub fn kind(&self) -> String {
        match self {
            Event::Created { .. } => "plan.created",
            Event::Started(_) => Event::STARTED,
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
            Event::Prompted(_) => Event::PROMPTED,
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

    /// Returns the event's data, without its kind.
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
            Event::TakenOver(cause, remains) => taken_over(*cause, remains),
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
            Event::Synced(outcome) => outcome.to_json(),
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

fn taken_over(cause: TakeOverCause, remains: &Remains) -> Value {
    let mut told = json!({ "cause": cause.name() });
    if let Some(RestartPoint { commit, checkpoint }) = remains.restart() {
        told["checkpoint"] = json!(checkpoint);
        told["commit"] = json!(commit);
    }
    if remains.is_result() {
        told["judges"] = json!(true);
    }
    told
}

fn reviewed(number: usize, review: &ReviewResult) -> Value {
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

/// An event as stored in the feed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StoredEvent {
    /// Sequence number in the feed.
    pub seq: i64,
    /// When the event was committed.
    pub at: Timestamp,
    /// The kind, e.g. `plan.started`.
    pub kind: String,
    /// The plan that the event is about.
    pub plan: Option<PlanId>,
    /// The run that the event is about.
    pub run: Option<RunId>,
    /// The plan's revision after the event.
    pub revision: Option<i64>,
    /// The event's data.
    pub details: Value,
}
