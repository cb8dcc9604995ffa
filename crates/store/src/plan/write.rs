//! The statements that write a transition, grouped into steps between which a test can crash the process. All
//! steps are one commit.

use drydock_domain::{
    ChangesetId, Decision, DecisionChange, DecisionStatus, Effect, Event, Phase, Plan, State, StoredPlan,
    Transition, next_effect,
};

use super::claim::LeasedPlan;
use super::row::body;
use crate::StoreError;
use crate::crash::CrashPoint;
use crate::enforcement::record;
use crate::event::{EventSubject, append};
use crate::tx::CommitStep;
use crate::value::{Statement, Value};

/// Returns the steps that write a transition; `before.snapshot` is `None` for a new plan.
pub(super) fn steps(before: &LeasedPlan, transition: &Transition) -> Result<Vec<CommitStep>, StoreError> {
    let plan = transition.plan();
    let snapshot = before.snapshot.as_ref();
    check(snapshot, transition)?;
    let about = EventSubject::plan(plan);
    let step = |then, statements| CommitStep { statements, then };
    let row = match snapshot {
        None => insert(plan)?,
        Some(_) => update(plan)?,
    };
    let mut rows = vec![row];
    let mut events: Vec<_> = transition.events().iter().map(|event| append(&about, event)).collect();
    events.extend(record(plan, transition.events())?);
    for (child, told) in transition.children() {
        rows.push(insert(child)?);
        events.extend(told.iter().map(|event| append(&EventSubject::plan(child), event)));
    }
    let decisions = decisions(snapshot, transition)?;
    let sealed = match plan.stage.state() {
        State::Processing => Vec::new(),
        _ => seal(plan, &before.open, &about),
    };
    let mut rest = vec![outbox(transition)?];
    for (child, _) in transition.children() {
        rest.extend(next_effect(child).map(|effect| enqueue(child, effect, ENQUEUE)).transpose()?);
    }
    rest.extend(wake_parent(plan));
    rest.extend(requests(snapshot, plan));
    Ok(vec![
        step(CrashPoint::AfterPlan, rows),
        step(CrashPoint::AfterEvents, events),
        step(CrashPoint::AfterDecisions, decisions),
        step(CrashPoint::AfterChangesets, sealed),
        step(CrashPoint::AfterOutbox, rest),
    ])
}

/// Refuses to write a plan that could not be read back: a skipped revision, or a plan that waits for a
/// decision which is not open.
fn check(snapshot: Option<&StoredPlan>, transition: &Transition) -> Result<(), StoreError> {
    let plan = transition.plan();
    let wrong = |reason: String| Err(StoreError::damaged("plans", plan.id.as_str(), reason));
    let expected = snapshot.map_or(1, |snapshot| snapshot.plan.revision + 1);
    if plan.revision != expected {
        return wrong(format!("revision {} cannot be written, {expected} comes next", plan.revision));
    }
    if snapshot.is_some_and(|snapshot| snapshot.plan.id != plan.id || snapshot.plan.spec != plan.spec) {
        return wrong("a transition must not change the plan's identity".to_owned());
    }
    let mut open = snapshot.and_then(|snapshot| snapshot.pending.as_ref()).map(|decision| &decision.id);
    for change in closing_first(transition) {
        match change {
            DecisionChange::Open(decision) if open.is_none() => open = Some(&decision.id),
            DecisionChange::Resolve(id, _) | DecisionChange::Withdraw { id, .. } if open == Some(id) => {
                open = None
            }
            DecisionChange::Amend(decision) if open == Some(&decision.id) => {}
            DecisionChange::Open(_)
            | DecisionChange::Amend(_)
            | DecisionChange::Resolve(..)
            | DecisionChange::Withdraw { .. } => {
                return wrong(format!("{change:?} does not fit the open decision {open:?}"));
            }
        }
    }
    if open != plan.pending_decision() {
        return wrong(format!("it would wait for {:?} while {open:?} is open", plan.pending_decision()));
    }
    Ok(())
}

/// Sorts the decision changes: a plan has one open decision at a time, so the old one is closed before the
/// new one is opened.
fn closing_first(transition: &Transition) -> Vec<&DecisionChange> {
    let mut changes: Vec<_> = transition.decisions().iter().collect();
    changes.sort_by_key(|change| matches!(change, DecisionChange::Open(_)));
    changes
}

fn insert(plan: &Plan) -> Result<Statement, StoreError> {
    let sql = "INSERT INTO plans
        (id, phase, state, project, action, parent, root, revision, created_at, updated_at, body)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    let params: [Value; 11] = [
        plan.id.as_str().into(),
        plan.stage.phase().name().into(),
        plan.stage.state().name().into(),
        plan.spec.project.as_str().into(),
        plan.spec.action.as_str().into(),
        plan.parent.as_ref().map(|parent| parent.as_str()).into(),
        plan.root.as_str().into(),
        plan.revision.into(),
        plan.created_at.into(),
        plan.updated_at.into(),
        body("plans", plan.id.as_str(), plan)?.into(),
    ];
    Ok(Statement::new(sql, params))
}

fn update(plan: &Plan) -> Result<Statement, StoreError> {
    let sql =
        "UPDATE plans SET phase = $2, state = $3, revision = $4, updated_at = $5, body = $6 WHERE id = $1";
    let params: [Value; 6] = [
        plan.id.as_str().into(),
        plan.stage.phase().name().into(),
        plan.stage.state().name().into(),
        plan.revision.into(),
        plan.updated_at.into(),
        body("plans", plan.id.as_str(), plan)?.into(),
    ];
    Ok(Statement::new(sql, params))
}

fn decisions(snapshot: Option<&StoredPlan>, transition: &Transition) -> Result<Vec<Statement>, StoreError> {
    let pending = snapshot.and_then(|snapshot| snapshot.pending.as_ref());
    let mut statements = Vec::new();
    for change in closing_first(transition) {
        let status = match change {
            DecisionChange::Open(decision) => {
                statements.push(open(decision)?);
                continue;
            }
            // The same row, still open.
            DecisionChange::Amend(decision) => {
                statements.push(replace(decision)?);
                continue;
            }
            DecisionChange::Resolve(_, resolution) => DecisionStatus::Resolved(resolution.clone()),
            DecisionChange::Withdraw { reason, at, .. } => {
                DecisionStatus::Withdrawn { reason: reason.clone(), at: *at }
            }
        };
        // `check` has verified that the closed decision is the open one.
        if let Some(pending) = pending {
            statements.push(replace(&Decision { status, ..pending.clone() })?);
        }
    }
    Ok(statements)
}

fn open(decision: &Decision) -> Result<Statement, StoreError> {
    let sql =
        "INSERT INTO decisions (id, plan, kind, status, created_at, body) VALUES ($1, $2, $3, $4, $5, $6)";
    let params: [Value; 6] = [
        decision.id.as_str().into(),
        decision.plan.as_str().into(),
        decision.question.kind.name().into(),
        decision.status.name().into(),
        decision.created_at.into(),
        body("decisions", decision.id.as_str(), decision)?.into(),
    ];
    Ok(Statement::new(sql, params))
}

fn replace(decision: &Decision) -> Result<Statement, StoreError> {
    let sql = "UPDATE decisions SET status = $2, body = $3 WHERE id = $1 AND status = 'open'";
    let (id, status) = (decision.id.as_str(), decision.status.name());
    Ok(Statement::new(sql, [id.into(), status.into(), body("decisions", id, decision)?.into()]))
}

fn seal(plan: &Plan, open: &[(ChangesetId, i64)], about: &EventSubject) -> Vec<Statement> {
    if open.is_empty() {
        return Vec::new();
    }
    let sql = "UPDATE changesets SET state = 'sealed' WHERE plan = $1 AND state = 'open'";
    let mut statements = vec![Statement::new(sql, [plan.id.as_str().into()])];
    statements.extend(
        open.iter().map(|(id, entries)| {
            append(about, &Event::ChangesetSealed { id: id.clone(), entries: *entries })
        }),
    );
    statements
}

const ENQUEUE: &str = "INSERT INTO outbox (plan, effect, attempts, ready_at, claimed_by, rank)
    VALUES ($1, $2, 0, drydock_now() + $3, NULL, $4)
    ON CONFLICT (plan) DO UPDATE SET effect = excluded.effect, attempts = 0, ready_at = drydock_now() + $3,
        claimed_by = NULL, process = NULL, rank = excluded.rank";
/// If the effect is unchanged, the worker that claimed it started the phase, and keeps its claim while it
/// works.
const ENQUEUE_UNLESS_SAME: &str = "INSERT INTO outbox (plan, effect, attempts, ready_at, claimed_by, rank)
    VALUES ($1, $2, 0, drydock_now() + $3, NULL, $4)
    ON CONFLICT (plan) DO UPDATE SET effect = excluded.effect, attempts = 0, ready_at = drydock_now() + $3,
        claimed_by = NULL, process = NULL, rank = excluded.rank
    WHERE outbox.effect <> excluded.effect";

fn outbox(transition: &Transition) -> Result<Statement, StoreError> {
    let plan = transition.plan();
    let Some(effect) = transition.effect() else {
        return Ok(Statement::new("DELETE FROM outbox WHERE plan = $1", [plan.id.as_str().into()]));
    };
    let sql = match plan.stage.state() {
        State::Processing => ENQUEUE_UNLESS_SAME,
        _ => ENQUEUE,
    };
    enqueue(plan, effect, sql)
}

fn enqueue(plan: &Plan, effect: Effect, sql: &'static str) -> Result<Statement, StoreError> {
    let id = plan.id.as_str();
    let params =
        [id.into(), body("outbox", id, &effect)?.into(), delay(plan).into(), rank(effect.phase()).into()];
    Ok(Statement::new(sql, params))
}

/// Returns the priority of a phase in the outbox; lower is first.
fn rank(phase: Phase) -> i64 {
    match phase {
        Phase::Apply => 0,
        Phase::Execute => 1,
        Phase::Strategize => 2,
    }
}

/// Returns the microseconds until the phase is due. A duration instead of a time, because the wait was
/// computed with another clock than the database's.
fn delay(plan: &Plan) -> i64 {
    let until = plan.waits().map_or(plan.updated_at, |postponed| postponed.until);
    until.as_micros().saturating_sub(plan.updated_at.as_micros()).max(0)
}

/// Makes the parent's schedule effect due when one of its subplans is idle or queued again.
fn wake_parent(plan: &Plan) -> Option<Statement> {
    let sql = "UPDATE outbox SET ready_at = drydock_now(), claimed_by = NULL, process = NULL, attempts = 0
        WHERE plan = $1 AND effect = '\"tend\"'";
    let parent = plan.parent.as_ref().filter(|_| plan.stage.state() != State::Processing)?;
    Some(Statement::new(sql, [parent.as_str().into()]))
}

/// Deletes requests to the holder when a run starts or ends: a request belongs to one run and must not stop a
/// later one.
fn requests(snapshot: Option<&StoredPlan>, plan: &Plan) -> Option<Statement> {
    let before = &snapshot?.plan;
    let goes_on = [before, plan].iter().all(|plan| plan.stage.state() == State::Processing);
    let same_run = goes_on && before.run == plan.run;
    (!same_run).then(|| Statement::new("DELETE FROM requests WHERE plan = $1", [plan.id.as_str().into()]))
}
