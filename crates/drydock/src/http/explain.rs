//! `GET /plans/{id}/explain`: explains a plan or one of its choices.

use axum::extract::State;
use drydock_api as api;
use drydock_domain::{Plan, Progress, Stage};
use drydock_engine::PlanExplanation;

use super::extract::{ApiError, ApiResult, JsonResponse, Path, Query, refused};
use super::router::AppState;
use super::view;

pub(super) async fn explain(
    State(shared): State<AppState>,
    Path(id): Path,
    Query(query): Query<api::ExplainQuery>,
) -> ApiResult<api::OneExplanation> {
    let plan = shared.engine.plan(&id).await?;
    let found = shared.engine.explain(&plan).await?;
    let whole = explanation(plan, found);
    let explanation = match query.choice {
        Some(choice) => about(whole, choice.trim())?,
        None => whole,
    };
    Ok(JsonResponse(api::OneExplanation { explanation }))
}

fn explanation(plan: Plan, found: PlanExplanation) -> api::Explanation {
    let said = |one: drydock_engine::Remark| api::Said { at: view::time(one.at), text: one.text };
    let answered = |one: drydock_engine::AnsweredQuestion| api::Answered {
        at: view::time(one.at),
        question: one.question,
        option: one.option,
        note: one.note,
        by: one.by,
    };
    let refused = |one: drydock_engine::RejectedWork| api::Refused {
        at: view::time(one.at),
        run: one.run.map(|run| run.to_string()),
        by: one.by,
        proposal: one.proposal,
        reason: one.reason,
    };
    // Some of these follow from choices of the strategy, so numbering them on their own would mislead.
    let later = view::choices(&found.later);
    let later = later.into_iter().map(|one| api::NumberedChoice { number: String::new(), ..one });
    let strategy = strategy(&plan, &found);
    api::Explanation {
        plan: plan.id.to_string(),
        phase: view::phase(plan.stage.phase()),
        state: view::state(plan.stage.state()),
        task: plan.spec.task.clone(),
        definition_of_done: plan.spec.definition_of_done,
        strategy,
        about: None,
        choices: view::choices(&plan.choices),
        later: later.collect(),
        guidance: found.guidance.into_iter().map(said).collect(),
        answers: found.answers.into_iter().map(answered).collect(),
        reversions: found.reversions.into_iter().map(said).collect(),
        refused: found.refused.into_iter().map(refused).collect(),
    }
}

/// Returns one sentence about the origin of the strategy.
fn strategy(plan: &Plan, found: &PlanExplanation) -> String {
    let many = match plan.choices.len() {
        1 => "1 choice".to_owned(),
        number => format!("{number} choices"),
    };
    let made = !matches!(plan.stage, Stage::Strategize(_))
        || matches!(plan.stage, Stage::Strategize(Progress::Reached(_)));
    match (&plan.spec.agents.strategize, &found.strategist) {
        _ if found.adopted => format!("the strategy is a draft adopted by hand, with {many}"),
        (_, Some(agent)) if made => format!("{agent} planned it with {many}"),
        (Some(agent), _) if !made => format!("{agent} has not finished planning it"),
        (None, _) if made => "no agent plans it: the task is the strategy".to_owned(),
        (Some(_) | None, _) => format!("the strategy has {many}"),
    }
}

/// Reduces the explanation to one choice, the choices that lead to it, and those that follow from it.
fn about(whole: api::Explanation, asked: &str) -> Result<api::Explanation, ApiError> {
    let named = |choice: &&api::NumberedChoice| {
        choice.number == asked || choice.id.as_deref() == Some(asked) || choice.question == asked
    };
    let Some(number) = whole.choices.iter().find(named).map(|choice| choice.number.clone()) else {
        let text = format!("no choice {asked:?} in this plan");
        let hint = format!("`drydock plan tree {}` lists the choices with their numbers", whole.plan);
        return Err(refused(api::Code::NotFound, text, &hint));
    };
    let in_line =
        |one: &api::NumberedChoice| leads_to(&one.number, &number) || leads_to(&number, &one.number);
    Ok(api::Explanation {
        choices: whole.choices.into_iter().filter(in_line).collect(),
        about: Some(number),
        later: Vec::new(),
        guidance: Vec::new(),
        answers: Vec::new(),
        reversions: Vec::new(),
        refused: Vec::new(),
        ..whole
    })
}

/// Returns true if the first number equals the second or is an ancestor of it.
fn leads_to(above: &str, below: &str) -> bool {
    below.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}
