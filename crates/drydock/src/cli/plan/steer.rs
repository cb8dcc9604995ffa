//! `drydock plan cancel|retry|accept|revert|rollback|prompt|takeover`: the commands that act on a
//! plan without driving it.

use clap::Args;
use drydock_api::{RetryPlan, Terms};

use super::args::Which;
use crate::cli::outcome::of_steering;
use crate::cli::report::Outcome;
use crate::cli::session::Session;

/// A plan and why.
#[derive(Debug, Args)]
pub(crate) struct Because {
    /// The plan's id, or the beginning of it
    id: String,
    /// Why; it is recorded
    #[arg(long)]
    reason: Option<String>,
}

/// A plan and where its next run starts.
#[derive(Debug, Args)]
pub(crate) struct RetryArgs {
    /// Plan id or unique prefix
    id: String,
    /// Start Execute over from the plan's base; the kept work stays a checkpoint
    #[arg(long)]
    from_base: bool,
}

/// A plan and what its agents shall heed.
#[derive(Debug, Args)]
pub(crate) struct Guidance {
    /// The plan's id, or the beginning of it
    id: String,
    /// What the agents shall heed
    text: String,
}

/// A plan and a checkpoint of it.
#[derive(Debug, Args)]
pub(crate) struct Backwards {
    /// The plan's id, or the beginning of it
    id: String,
    /// The checkpoint's ref, number or commit, as `checkpoint list` shows it
    checkpoint: String,
}

pub(crate) async fn rollback(session: &Session, args: Backwards) -> Outcome {
    let plan = session.client().plan_rollback(&args.id, args.checkpoint, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn cancel(session: &Session, args: Because) -> Outcome {
    let plan = session.client().plan_cancel(&args.id, args.reason, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn retry(session: &Session, args: RetryArgs) -> Outcome {
    let how = RetryPlan { from_base: args.from_base };
    let plan = session.client().plan_retry(&args.id, &how, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn accept(session: &Session, plan: Which) -> Outcome {
    let plan = session.client().plan_accept(&plan.id, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn revert(session: &Session, args: Because) -> Outcome {
    let plan = session.client().plan_revert(&args.id, args.reason, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn prompt(session: &Session, args: Guidance) -> Outcome {
    let plan = session.client().plan_prompt(&args.id, args.text, &Terms::default()).await?;
    Ok(of_steering(plan))
}

pub(crate) async fn takeover(session: &Session, plan: Which) -> Outcome {
    let plan = session.client().plan_takeover(&plan.id, &Terms::default()).await?;
    Ok(of_steering(plan))
}
