//! Converts a strategy draft into subplans. A draft that cannot be done is rejected before anything starts.

use drydock_domain::{
    ChildState, Fanout, FanoutError, LandsOn, Name, Plan, Subplan, SubplanStatus, SubplanTask, arrange,
};

use super::tend::Children;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::tree::{DRAFT, StrategyDraft, SubplanDraft};

/// Returns the subplans of a draft, or why they cannot be done.
pub(crate) async fn fanout_of(
    engine: &Engine,
    plan: &Plan,
    draft: &StrategyDraft,
) -> Result<Result<Option<Fanout>, String>, EngineError> {
    if draft.subplans.is_empty() {
        return Ok(Ok(None));
    }
    if draft.max_parallel == Some(0) {
        let reason = "max_parallel is 0, so nothing could run; use at least 1, or leave it out";
        return Ok(Err(format!("{DRAFT}: {reason}")));
    }
    let mut pieces = match pieces(engine, plan, draft) {
        Ok(pieces) => pieces,
        Err(reason) => return Ok(Err(format!("{DRAFT}: {reason}"))),
    };
    for piece in &pieces {
        match engine.child_spec(plan, piece).await {
            Ok(_) => {}
            Err(error @ (EngineError::Absent(_) | EngineError::Invalid { .. })) => {
                return Ok(Err(format!("{DRAFT}: subplan {}: {error}", piece.name)));
            }
            Err(error) => return Err(error),
        }
    }
    settle_landed(&mut pieces, &engine.children(&plan.id).await?);
    let max_parallel = draft.max_parallel.unwrap_or(engine.settings().subplans.parallel).max(1);
    let (merge, on_failure) = (draft.merge.unwrap_or_default(), draft.on_failure.unwrap_or_default());
    Ok(Ok(Some(Fanout { merge, on_failure, max_parallel, pieces, head: None })))
}

/// Marks subplans as joined that already landed in other projects under an earlier strategy. Those landings
/// are final, and repeating the work would land it twice.
fn settle_landed(pieces: &mut [Subplan], children: &Children) {
    for piece in pieces {
        let Some(project) = &piece.project else { continue };
        let same = |child: &&Plan| {
            child.spec.project == *project
                && child.place.as_ref().is_some_and(|place| place.name == piece.name)
        };
        let landed = children.all().filter(same).find_map(|child| Some((child, landed_there(child)?)));
        if let Some((child, commit)) = landed {
            piece.child = Some(child.id.clone());
            piece.fate = SubplanStatus::Joined { commit };
        }
    }
}

fn landed_there(child: &Plan) -> Option<String> {
    let ChildState::Landed { commit } = ChildState::of(child) else { return None };
    Some(commit)
}

fn pieces(engine: &Engine, plan: &Plan, draft: &StrategyDraft) -> Result<Vec<Subplan>, String> {
    let limits = engine.settings().subplans;
    let depth = plan.place.as_ref().map_or(0, |place| place.depth) + 1;
    if depth > limits.depth_max {
        return Err(FanoutError::TooDeep { depth, max: limits.depth_max }.to_string());
    }
    let pieces = draft.subplans.iter().map(|piece| read(piece, plan)).collect::<Result<Vec<_>, _>>()?;
    let below = plan.place.as_ref().is_some_and(|place| place.lands == LandsOn::WithParent);
    if let Some(piece) = pieces.iter().find(|piece| below && piece.project.is_some()) {
        return Err(format!(
            "subplan {} names another project, but this plan is a subplan itself: only the top plan can \
             have subplans in other projects",
            piece.name
        ));
    }
    arrange(pieces, limits.width_max).map_err(|error| error.to_string())
}

fn read(draft: &SubplanDraft, plan: &Plan) -> Result<Subplan, String> {
    let name = |text: &str| text.parse::<Name>().map_err(|error| error.to_string());
    let task = match (&draft.task, &draft.action) {
        (Some(task), None) if !task.trim().is_empty() => SubplanTask::Words(task.clone()),
        (None, Some(action)) => {
            SubplanTask::Action { name: action.clone(), arguments: draft.arguments.clone() }
        }
        (Some(_) | None, Some(_) | None) => {
            return Err(format!("subplan {:?} needs either a task or an action", draft.name));
        }
    };
    if draft.timeout_s == Some(0) {
        return Err(format!("subplan {:?} has timeout_s = 0; use at least 1", draft.name));
    }
    if draft.max_attempts == Some(0) {
        return Err(format!(
            "subplan {:?} has max_attempts = 0; use at least 1, which is the first \
                            attempt",
            draft.name
        ));
    }
    let project =
        draft.project.as_deref().map(name).transpose()?.filter(|project| *project != plan.spec.project);
    Ok(Subplan {
        name: name(&draft.name)?,
        task,
        project,
        agent: draft.agent.clone(),
        after: draft.after.iter().map(|after| name(after)).collect::<Result<_, _>>()?,
        paths: draft.paths.clone(),
        max_attempts: draft.max_attempts.unwrap_or(1),
        timeout_s: draft.timeout_s,
        mends: None,
        child: None,
        fate: SubplanStatus::Open,
        favour: None,
        failures: Vec::new(),
        forgiven: 0,
    })
}
