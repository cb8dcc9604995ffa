//! `drydock plan cancel|retry|accept|revert|rollback|prompt|takeover`: the commands that change a plan without
//! driving it.

use clap::Args;
use drydock_api::{RequestOptions, RetryPlan};

use super::args::PlanIdArgs;
use crate::cli::outcome::of_steering;
use crate::cli::report::CliResult;
use crate::cli::session::Invocation;

/// A plan and a reason.
#[derive(Debug, Args)]
pub(crate) struct ReasonArgs {
    /// Plan id or unique prefix
    id: String,
    /// Reason, which is recorded
    #[arg(long)]
    reason: Option<String>,
}

/// Arguments of `drydock plan retry`.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Plan id or unique prefix
    id: String,
    /// Restart Execute from the plan's base; the work so far stays a checkpoint
    #[arg(long)]
    from_base: bool,
}

/// Arguments of `drydock plan prompt`.
#[derive(Debug, Args)]
pub(crate) struct PromptArgs {
    /// Plan id or unique prefix
    id: String,
    /// Guidance for the agents
    text: String,
}

/// Arguments of `drydock plan rollback`.
#[derive(Debug, Args)]
pub(crate) struct RollbackArgs {
    /// Plan id or unique prefix
    id: String,
    /// Checkpoint ref, number or commit, as listed by `checkpoint list`
    checkpoint: String,
}

pub(crate) async fn rollback(session: &Invocation, args: RollbackArgs) -> CliResult {
    let plan = session.client().plan_rollback(&args.id, args.checkpoint, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn cancel(session: &Invocation, args: ReasonArgs) -> CliResult {
    let plan = session.client().plan_cancel(&args.id, args.reason, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn retry(session: &Invocation, args: RetryArgs) -> CliResult {
    let how = RetryPlan { from_base: args.from_base };
    let plan = session.client().plan_retry(&args.id, &how, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn accept(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let plan = session.client().plan_accept(&plan.id, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn revert(session: &Invocation, args: ReasonArgs) -> CliResult {
    let plan = session.client().plan_revert(&args.id, args.reason, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn prompt(session: &Invocation, args: PromptArgs) -> CliResult {
    let plan = session.client().plan_prompt(&args.id, args.text, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn takeover(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let plan = session.client().plan_takeover(&plan.id, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}
