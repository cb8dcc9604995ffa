//! `drydock plan list|show|tree|explain|diff|watch|why`: the commands that only read.

use clap::{Args, value_parser};
use drydock_api::{
    EventQuery, ExplainQuery, OneDiff, OneExplanation, OnePlan, OneTree, OneWhy, Phase, PlanQuery, State,
};

use super::args::PlanIdArgs;
use crate::cli::events;
use crate::cli::report::{CliResult, Level, Report};
use crate::cli::screen::StdoutState;
use crate::cli::session::Invocation;
use crate::render;

const WATCH_WAIT_MS: u64 = 5_000;
const WATCH_PAGE: u32 = 200;

/// Arguments of `drydock plan list`.
#[derive(Debug, Args)]
pub(crate) struct PlanListArgs {
    /// Only plans in this phase: strategize, execute, apply
    #[arg(long)]
    phase: Option<Phase>,
    /// Only plans in this state: queued, processing, waiting, complete, errored, cancelled, applied, constrained
    #[arg(long)]
    state: Option<State>,
    /// Only plans of this project
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Only plans of this action
    #[arg(long, value_name = "NAME")]
    action: Option<String>,
    /// Only plans with words that start with these, in task, id, action or project
    #[arg(long, value_name = "TEXT")]
    search: Option<String>,
    /// Maximum number of plans
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// Continue after this cursor, the `next` of an earlier page
    #[arg(long, value_name = "CURSOR")]
    after: Option<String>,
}

pub(crate) async fn list(session: &Invocation, args: PlanListArgs) -> CliResult {
    let PlanListArgs { phase, state, project, action, search, limit, after } = args;
    let query = PlanQuery { phase, state, project, action, parent: None, q: search, limit, after };
    let plans = session.client().plans(&query).await?;
    let text = render::plan::list(&plans.plans, session.now());
    let next = plans.next.clone();
    Ok(Report::new(plans, text).or_say("no plans").or_more(next))
}

pub(crate) async fn show(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let plan = session.client().plan(&plan.id).await?;
    let text = render::plan::show(&plan, session.now());
    Ok(Report::new(OnePlan { plan }, text))
}

/// Arguments of `drydock plan tree`.
#[derive(Debug, Args)]
pub(crate) struct PlanTreeArgs {
    #[command(flatten)]
    plan: PlanIdArgs,
    /// Output as text, DOT or SVG
    #[arg(long = "as", value_name = "FORM", default_value = "text")]
    form: TreeFormat,
}

/// Output format of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TreeFormat {
    /// Text, with the choices
    Text,
    /// DOT language
    Dot,
    /// SVG picture
    Svg,
}

pub(crate) async fn tree(session: &Invocation, drawn: PlanTreeArgs) -> CliResult {
    let tree = session.client().plan_tree(&drawn.plan.id).await?;
    let text = match drawn.form {
        TreeFormat::Text => render::tree::tree(&tree, session.now()),
        TreeFormat::Dot => render::graph::dot(&tree),
        TreeFormat::Svg => render::graph::svg(&tree),
    };
    Ok(Report::new(OneTree { tree }, text))
}

/// Arguments of `drydock plan explain`.
#[derive(Debug, Args)]
pub(crate) struct PlanExplainArgs {
    #[command(flatten)]
    plan: PlanIdArgs,
    /// Only this choice: its number in `plan tree`, its id or its question
    choice: Option<String>,
}

pub(crate) async fn explain(session: &Invocation, args: PlanExplainArgs) -> CliResult {
    let which = ExplainQuery { choice: args.choice };
    let explanation = session.client().plan_explain(&args.plan.id, &which).await?;
    let text = render::explain::explain(&explanation, session.now());
    Ok(Report::new(OneExplanation { explanation }, text))
}

pub(crate) async fn diff(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let diff = session.client().plan_diff(&plan.id).await?;
    let size = (!diff.text.is_empty()).then(|| render::diff::size(&diff));
    let unfinished = render::diff::unfinished(&diff, &plan.id);
    // In a pipe the diff must stay a patch that applies. Only a terminal needs escaping.
    let report = if session.screen().is_watched() {
        let text = render::diff::shown(&diff);
        Report::new(OneDiff { diff }, text)
    } else {
        let text = render::diff::raw(&diff).to_owned();
        Report::new(OneDiff { diff }, text).exact()
    };
    let report =
        size.into_iter().chain(unfinished).fold(report, |report, said| report.note(Level::Info, said));
    Ok(if report.notes.is_empty() { report.note(Level::Info, "no changes") } else { report })
}

pub(crate) async fn why(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let why = session.client().plan_why(&plan.id).await?;
    let text = render::why::why(&why);
    Ok(Report::new(OneWhy { why }, text))
}

/// Prints the plan's events from the first one until the plan stops. Redraws the tree of its subplans when one of
/// them changes.
pub(crate) async fn watch(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let client = session.client();
    let mut plan = client.plan(&plan.id).await?;
    let mut after = 0;
    loop {
        let query = EventQuery {
            after: Some(after),
            limit: Some(WATCH_PAGE),
            plan: Some(plan.id.clone()),
            wait_ms: Some(if plan.is_settled() { 0 } else { WATCH_WAIT_MS }),
            ..EventQuery::default()
        };
        let page = client.events(&query).await?;
        if let Some(end) = events::end_of(&page, after) {
            session.screen().info(&format!("{}; continuing from its end", events::ended(end)));
            after = end.ends_at;
        }
        let events = page.events;
        after = events.last().map_or(after, |event| event.seq);
        let reader = events::print(session, &events)?;
        if events.iter().any(|event| event.kind.starts_with("subplan.")) {
            let tree = client.plan_tree(&plan.id).await?;
            session.screen().info(render::tree::tree(&tree, jiff::Timestamp::now()).trim_end());
        }
        // The feed is complete only if the plan had stopped before the feed was read.
        if reader == StdoutState::Gone || (events.is_empty() && plan.is_settled()) {
            let text = render::plan::line(&plan);
            return Ok(Report::new(OnePlan { plan }, text));
        }
        events::breathe(&events).await;
        plan = client.plan(&plan.id).await?;
    }
}
