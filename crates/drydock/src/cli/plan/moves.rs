//! `drydock plan strategize|execute|apply`: requests a phase and drives it in the foreground. Idempotent: a plan that
//! has already finished the phase is shown as it is.

use clap::Args;
use drydock_api::{PlanMove, State};

use crate::cli::follow::{FollowUntil, PlanFeed};
use crate::cli::outcome;
use crate::cli::report::CliResult;
use crate::cli::session::Invocation;

/// Arguments of a command that requests a phase.
#[derive(Debug, Args)]
pub(crate) struct PlanMoveArgs {
    /// Plan id or unique prefix
    id: String,
    /// Queue the phase for a worker and return
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn run(session: &Invocation, args: PlanMoveArgs, to: PlanMove) -> CliResult {
    let mut feed = PlanFeed::from_here(session, &args.id).await?;
    let plan = feed.request_phase(&args.id, to).await?;
    if plan.state == State::Applied {
        return Ok(outcome::landed_before(plan));
    }
    if args.detach {
        return Ok(outcome::of_steering(plan));
    }
    let resume = format!("drydock plan {to} {}", plan.id);
    let plan = feed.follow(plan, FollowUntil::Settled(to.phase()), &resume).await?;
    Ok(outcome::of_move(plan, to.phase()))
}
