//! Subplans: how a parent records their progress, and the effect on the parent's own stage. The parent's end
//! is a function of its subplans' ends. A child plan changes only by its own transitions.

use serde_json::json;

use super::finish::{errored, waiting};
use super::route::wrong_stage;
use crate::outcome::{Decided, TransitionBuilder};
use crate::subplan::{handed_on, new_child};
use crate::{
    CallSubplan, Complete, ConflictResolution, Context, ErrorClass, Event, Failure, FailureRecord, Fanout,
    OnFailure, OptionEffect, Phase, PlanId, Progress, Question, Refusal, ResourceUsage, RestartReason,
    Settled, SpawnChild, Stage, State, StoredPlan, Subplan, SubplanStatus, SubplanUpdate, Turn,
};

/// Creates the child plans of subplans that have none, all in one commit.
pub(super) fn spawn(
    snapshot: &StoredPlan,
    births: Vec<SpawnChild>,
    context: &Context,
) -> Result<Decided, Refusal> {
    tended(snapshot, "spawn subplans of")?;
    let mut draft = TransitionBuilder::after(snapshot, context);
    for SpawnChild { piece: index, child } in births {
        let piece = piece_mut(&mut draft, index);
        let Some(piece) = piece.filter(|piece| piece.child.is_none() && piece.fate == SubplanStatus::Open)
        else {
            return Err(wrong_stage(snapshot, "spawn subplans of"));
        };
        piece.child = Some(child.id.clone());
        let piece = piece.clone();
        let details = json!({ "name": piece.name, "plan": child.id, "after": piece.after });
        let child = new_child(&snapshot.plan, &piece, child, context);
        let handed = handed_on(snapshot.plan.budget, &child.0);
        if !snapshot.plan.budget.is_unlimited() {
            draft.plan.spent = draft.plan.spent.plus(handed);
            draft.plan.handed.insert(child.0.id.clone(), handed);
        }
        draft = draft.add_child(child).event(Event::Subplan { what: "spawned", details });
    }
    Ok(draft.done())
}

/// Records updates of subplans and their effect: a question, a failure, or that the joined work can be
/// checked.
pub(super) fn record_subplans(
    snapshot: &StoredPlan,
    news: Vec<SubplanUpdate>,
    context: &Context,
) -> Result<Decided, Refusal> {
    tended(snapshot, "tend")?;
    let mut draft = TransitionBuilder::after(snapshot, context);
    for one in news {
        draft = match one {
            SubplanUpdate::Failed { piece, run, failure } => {
                failed(draft, piece, FailureRecord { run, failure, at: context.now })
            }
            SubplanUpdate::Cancelled { piece, reason } => {
                let fate = SubplanStatus::Cancelled { reason: reason.clone() };
                let text = format!("subplan {} was cancelled: {reason}", name(&draft, piece));
                fail_subplan(draft, piece, fate, &text)
            }
            SubplanUpdate::Ready { piece } => settle_piece(draft, piece, SubplanStatus::Ready, json!({})),
            SubplanUpdate::Joined { piece, commit } => joined(draft, piece, commit),
            SubplanUpdate::Over { child, used } => give_back(draft, &child, used),
            SubplanUpdate::Conflict { piece, question } => {
                let details = json!({ "name": name(&draft, piece), "files": question.details["files"] });
                let draft = draft.event(Event::Subplan { what: "conflict", details });
                return Ok(waiting(draft, *question, context).done());
            }
        };
    }
    Ok(conclude(draft, context).done())
}

/// Removes child plans from the list of plans to cancel, once they have ended.
pub(super) fn wound_up(
    snapshot: &StoredPlan,
    ended: &[(PlanId, ResourceUsage)],
    context: &Context,
) -> Result<Decided, Refusal> {
    let has_ended = |child: &PlanId| ended.iter().any(|(one, _)| one == child);
    if !snapshot.plan.winding.iter().any(has_ended) {
        return Ok(Decided::Already);
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.winding.retain(|child| !has_ended(child));
    draft.plan.ended_by_person.retain(|child| !has_ended(child));
    for (child, used) in ended {
        draft = give_back(draft, child, *used);
    }
    Ok(conclude(draft, context).done())
}

/// Returns the budget share of an ended subplan to its parent and counts its actual usage instead, which may
/// be less or more. Does so once per child, and only for resources that the parent limits.
fn give_back<'a>(
    mut draft: TransitionBuilder<'a>,
    child: &PlanId,
    used: ResourceUsage,
) -> TransitionBuilder<'a> {
    if let Some(handed) = draft.plan.handed.remove(child) {
        let counted = draft.plan.budget.counts(handed, used);
        draft.plan.spent = draft.plan.spent.minus(handed).plus(counted);
    }
    draft
}

/// A waiting subplan → has its turn. Before its first run, the commit at which it starts is set.
pub(super) fn call(snapshot: &StoredPlan, call: CallSubplan, context: &Context) -> Result<Decided, Refusal> {
    let plan = &snapshot.plan;
    let Some(place) = plan.place.as_ref().filter(|_| plan.awaits_turn() && plan.gate.is_none()) else {
        return Err(wrong_stage(snapshot, "call"));
    };
    if place.turn == Turn::Called {
        return Ok(Decided::Already);
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    if plan.stage.phase() == Phase::Strategize && plan.phase_started_at.is_none() {
        draft.plan.base_commit = call.base;
        draft.plan.work_from = None;
        draft.plan.take_up = None;
        draft.plan.called_from = call.from.clone();
        if let Some(marked) = call.from {
            draft.plan.restart_from(marked, RestartReason::Conflict);
        }
    }
    let details = json!({ "base": draft.plan.base_commit });
    if let Some(place) = &mut draft.plan.place {
        place.turn = Turn::Called;
    }
    Ok(draft.event(Event::Subplan { what: "called", details }).done())
}

/// A subplan's `execute/complete` → `apply/applied`: its target is its parent's branch, which now contains
/// the result.
pub(super) fn join(snapshot: &StoredPlan, commit: String, context: &Context) -> Result<Decided, Refusal> {
    match &snapshot.plan.stage {
        Stage::Execute(Progress::Reached(Complete)) if snapshot.plan.place.is_some() => {}
        Stage::Apply(Progress::Reached(Settled::Applied { commit: at })) if *at == commit => {
            return Ok(Decided::Already);
        }
        Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => {
            return Err(wrong_stage(snapshot, "join"));
        }
    }
    let mut draft = TransitionBuilder::after(snapshot, context);
    draft.plan.landed_commit = Some(commit.clone());
    draft.plan.phase_completed_at = Some(context.now);
    draft.plan.stage = Stage::Apply(Progress::Reached(Settled::Applied { commit: commit.clone() }));
    Ok(draft.event(Event::Applied { commit }).done())
}

/// Cancels the remaining subplans, because the plan is cancelled, starts over, or continues from another
/// commit.
pub(super) fn cancel_all<'a>(draft: TransitionBuilder<'a>, reason: &str) -> TransitionBuilder<'a> {
    let mut draft = wind_up_subplans(draft, reason);
    // Subplans that were already marked for cancellation, and wait for an answer, end with the plan.
    if draft.is_ended_by_person() {
        draft.plan.ended_by_person.clone_from(&draft.plan.winding);
    }
    draft
}

fn wind_up_subplans<'a>(mut draft: TransitionBuilder<'a>, reason: &str) -> TransitionBuilder<'a> {
    let Some(fanout) = &mut draft.plan.fanout else { return draft };
    let (mut ended, mut landed) = (Vec::new(), Vec::new());
    for piece in &mut fanout.pieces {
        if let (SubplanStatus::Joined { commit }, Some(project)) = (&piece.fate, &piece.project) {
            landed.push(format!(
                "subplan {} has already landed in project {project} as {commit}; a subplan with that name \
                 in that project is not run again",
                piece.name
            ));
        }
        if matches!(
            piece.fate,
            SubplanStatus::Open | SubplanStatus::Ready | SubplanStatus::Handed { .. } | SubplanStatus::Failed
        ) {
            ended.extend(piece.child.clone());
            piece.fate = SubplanStatus::Cancelled { reason: reason.to_owned() };
        }
    }
    // The next agent must know about landings that cannot be undone.
    landed.retain(|line| !draft.plan.feedback.contains(line));
    draft.plan.feedback.extend(landed);
    draft.wind(ended);
    draft
}

/// Applies a person's answer about a conflict.
pub(super) fn settle_conflict<'a>(
    mut draft: TransitionBuilder<'a>,
    how: &ConflictResolution,
) -> TransitionBuilder<'a> {
    let Some(fanout) = &mut draft.plan.fanout else { return draft };
    let Some(index) = fanout.position(how.piece()) else { return draft };
    match how {
        ConflictResolution::Take { side, .. } => {
            fanout.pieces[index].favour = Some(*side);
            draft
        }
        ConflictResolution::Drop { piece } => {
            let text = format!("subplan {piece} was dropped");
            fail_subplan(draft, index, SubplanStatus::Dropped, &text)
        }
        ConflictResolution::Hand { by, .. } => {
            fanout.pieces[index].fate = SubplanStatus::Handed { to: by.name.clone() };
            fanout.pieces.insert(index + 1, (**by).clone());
            draft
        }
    }
}

/// Retries the failed and cancelled subplans; a cancelled one gets a new child plan.
pub(super) fn retry_lost<'a>(mut draft: TransitionBuilder<'a>) -> TransitionBuilder<'a> {
    let landing = draft.plan.stage.phase() == Phase::Apply;
    let mut ended = Vec::new();
    for piece in draft.plan.fanout.iter_mut().flat_map(|fanout| &mut fanout.pieces) {
        let lost = matches!(piece.fate, SubplanStatus::Failed | SubplanStatus::Cancelled { .. });
        piece.fate = match &piece.fate {
            // The conflict is asked about again, and may be given to another resolving subplan.
            SubplanStatus::Failed | SubplanStatus::Cancelled { .. } if piece.mends.is_some() => {
                SubplanStatus::Dropped
            }
            SubplanStatus::Failed if landing => SubplanStatus::Ready,
            SubplanStatus::Failed => SubplanStatus::Open,
            // A cancelled subplan gets a new child plan, as long as the plan is in Execute.
            SubplanStatus::Cancelled { .. } if !landing => {
                piece.child = None;
                SubplanStatus::Open
            }
            other => other.clone(),
        };
        if lost && piece.fate == SubplanStatus::Dropped {
            ended.extend(piece.child.clone());
        }
        piece.forgiven = piece.failures.len();
    }
    draft.wind(ended);
    draft
}

/// Continues the plan without the failed and cancelled subplans.
pub(super) fn drop_lost<'a>(mut draft: TransitionBuilder<'a>, context: &Context) -> TransitionBuilder<'a> {
    let mut ended = Vec::new();
    for piece in draft.plan.fanout.iter_mut().flat_map(|fanout| &mut fanout.pieces) {
        if matches!(piece.fate, SubplanStatus::Failed | SubplanStatus::Cancelled { .. }) {
            ended.extend(piece.child.clone());
            piece.fate = SubplanStatus::Dropped;
        }
    }
    draft.wind(ended);
    conclude(draft, context)
}

/// Refuses a command on subplans that the plan's stage does not allow.
fn tended(snapshot: &StoredPlan, command: &'static str) -> Result<(), Refusal> {
    let plan = &snapshot.plan;
    let due = match (&plan.stage, &plan.fanout) {
        (Stage::Execute(Progress::Queued), Some(fanout)) => fanout.is_open(),
        (Stage::Apply(Progress::Queued), Some(fanout)) => fanout.is_ready(),
        (Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_), Some(_) | None) => false,
    };
    if due { Ok(()) } else { Err(wrong_stage(snapshot, command)) }
}

/// Refuses a subplan command on a plan without subplans: an empty fan-out would count as work done by
/// subplans.
pub(super) fn fanned_out(snapshot: &StoredPlan, command: &'static str) -> Result<(), Refusal> {
    snapshot.plan.fanout.as_ref().map(drop).ok_or_else(|| wrong_stage(snapshot, command))
}

/// Refuses an answer about subplans for a plan without any.
pub(super) fn about_subplans(snapshot: &StoredPlan, effect: &OptionEffect) -> Result<(), Refusal> {
    match effect {
        OptionEffect::Join(_) | OptionEffect::RetryLost | OptionEffect::DropLost => {
            fanned_out(snapshot, "settle the subplans of")
        }
        OptionEffect::Approve
        | OptionEffect::Requeue
        | OptionEffect::Grant { .. }
        | OptionEffect::StartFrom { .. }
        | OptionEffect::Review { .. }
        | OptionEffect::WaitUntil(_)
        | OptionEffect::SetBudget { .. }
        | OptionEffect::Revert
        | OptionEffect::Cancel => Ok(()),
    }
}

fn piece_mut<'d>(draft: &'d mut TransitionBuilder<'_>, index: usize) -> Option<&'d mut Subplan> {
    draft.plan.fanout.as_mut()?.pieces.get_mut(index)
}

fn name(draft: &TransitionBuilder<'_>, piece: usize) -> String {
    let fanout = draft.plan.fanout.as_ref();
    fanout
        .and_then(|fanout| fanout.pieces.get(piece))
        .map_or_else(String::new, |piece| piece.name.to_string())
}

fn settle_piece<'a>(
    mut draft: TransitionBuilder<'a>,
    index: usize,
    fate: SubplanStatus,
    mut details: serde_json::Value,
) -> TransitionBuilder<'a> {
    let Some(piece) = piece_mut(&mut draft, index) else { return draft };
    piece.fate = fate.clone();
    details["name"] = json!(piece.name);
    details["plan"] = json!(piece.child);
    draft.event(Event::Subplan { what: fate.name(), details })
}

fn joined<'a>(mut draft: TransitionBuilder<'a>, index: usize, commit: String) -> TransitionBuilder<'a> {
    let Some(fanout) = &mut draft.plan.fanout else { return draft };
    let Some(piece) = fanout.pieces.get(index) else { return draft };
    // A landing in another project is not part of this plan's branch.
    if piece.project.is_none() {
        fanout.head = Some(commit.clone());
    }
    let mended = piece.mends.as_ref().and_then(|mends| fanout.position(&mends.piece));
    let draft = settle_piece(
        draft,
        index,
        SubplanStatus::Joined { commit: commit.clone() },
        json!({ "commit": commit }),
    );
    match mended {
        Some(mended) => settle_piece(
            draft,
            mended,
            SubplanStatus::Joined { commit: commit.clone() },
            json!({ "commit": commit }),
        ),
        None => draft,
    }
}

fn failed<'a>(
    mut draft: TransitionBuilder<'a>,
    index: usize,
    record: FailureRecord,
) -> TransitionBuilder<'a> {
    let Some(piece) = piece_mut(&mut draft, index) else { return draft };
    piece.failures.push(record.clone());
    let (attempt, attempts) = (piece.attempts(), piece.max_attempts);
    let again = piece.fate == SubplanStatus::Open && piece.may_be_tried(&record.failure);
    let details =
        json!({ "error": record.failure, "attempt": attempt, "attempts": attempts, "again": again });
    if again {
        return retried(draft, index, details);
    }
    let text = format!("subplan {} failed", name(&draft, index));
    let draft = settle_piece(draft, index, SubplanStatus::Failed, details);
    cancel_dependents(draft, index, &text)
}

/// Emits the event that a subplan failed and will be retried.
fn retried<'a>(
    draft: TransitionBuilder<'a>,
    index: usize,
    mut details: serde_json::Value,
) -> TransitionBuilder<'a> {
    let piece = draft.plan.fanout.as_ref().and_then(|fanout| fanout.pieces.get(index));
    details["name"] = json!(piece.map(|piece| &piece.name));
    details["plan"] = json!(piece.and_then(|piece| piece.child.as_ref()));
    draft.event(Event::Subplan { what: "failed", details })
}

/// Records that a subplan ended without a result, and the effect on the others.
fn fail_subplan<'a>(
    draft: TransitionBuilder<'a>,
    index: usize,
    fate: SubplanStatus,
    text: &str,
) -> TransitionBuilder<'a> {
    let mut draft = settle_piece(draft, index, fate, json!({ "reason": text }));
    let child = piece_mut(&mut draft, index).and_then(|piece| piece.child.clone());
    draft.wind(child);
    cancel_dependents(draft, index, text)
}

/// Cancels the subplans that wait for a failed one, or all open subplans under `fail_fast`.
fn cancel_dependents<'a>(
    mut draft: TransitionBuilder<'a>,
    index: usize,
    text: &str,
) -> TransitionBuilder<'a> {
    let Some(fanout) = &draft.plan.fanout else { return draft };
    let mut ended = fanout.dependents(index);
    let dropped = fanout.pieces[index].fate == SubplanStatus::Dropped;
    if fanout.on_failure == OnFailure::FailFast && !dropped {
        ended = (0..fanout.pieces.len()).collect();
    }
    // Also cancels those that wait for the subplan whose conflict it was to resolve.
    let mended = fanout.pieces[index].mends.as_ref().and_then(|mends| fanout.position(&mends.piece));
    ended.extend(mended.into_iter().flat_map(|mended| fanout.dependents(mended)));
    ended.sort_unstable();
    ended.dedup();
    for other in ended {
        let Some(piece) = piece_mut(&mut draft, other).filter(|piece| piece.fate == SubplanStatus::Open)
        else {
            continue;
        };
        let child = piece.child.clone();
        draft = settle_piece(
            draft,
            other,
            SubplanStatus::Cancelled { reason: text.to_owned() },
            json!({ "reason": text }),
        );
        draft.wind(child);
    }
    draft.plan.fanout.iter_mut().for_each(fail_unresolved);
    draft
}

/// Fails a subplan whose conflict was given to a resolving subplan that failed.
fn fail_unresolved(fanout: &mut Fanout) {
    for index in 0..fanout.pieces.len() {
        let SubplanStatus::Handed { to } = &fanout.pieces[index].fate else { continue };
        let resolver = fanout.position(to).map(|at| &fanout.pieces[at].fate);
        fanout.pieces[index].fate = match resolver {
            Some(SubplanStatus::Failed | SubplanStatus::Cancelled { .. }) | None => SubplanStatus::Failed,
            Some(SubplanStatus::Dropped) => SubplanStatus::Dropped,
            Some(
                SubplanStatus::Open
                | SubplanStatus::Ready
                | SubplanStatus::Joined { .. }
                | SubplanStatus::Handed { .. },
            ) => continue,
        };
    }
}

/// Determines the effect of all subplans' ends on the plan, once none is open.
fn conclude<'a>(mut draft: TransitionBuilder<'a>, context: &Context) -> TransitionBuilder<'a> {
    let waits = draft.plan.stage.state() == State::Queued && draft.plan.winding.is_empty();
    let Some(fanout) = draft.plan.fanout.as_ref().filter(|fanout| waits && !fanout.is_open()) else {
        return draft;
    };
    if fanout.failed_subplans().next().is_some() {
        let question = Question::subplans_lost(fanout, &draft.plan);
        let failure = Failure::new(ErrorClass::SubplanFailed, fanout.lost_text());
        return errored(draft, failure, Some(question), context);
    }
    if draft.plan.stage.phase() == Phase::Execute {
        let head = fanout.head.clone();
        draft.plan.work_from = None;
        draft.plan.take_up = None;
        if let Some(head) = head {
            draft.plan.restart_from(head, RestartReason::Subplans);
        }
    }
    draft
}
