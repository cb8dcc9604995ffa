//! `drydock plan strategize|execute|apply`: moves a plan and drives it in the foreground. Safe to repeat: a plan that
//! is there already is shown as it is.

use clap::Args;
use drydock_api::{PlanMove, State};

use crate::cli::follow::{Feed, Until};
use crate::cli::outcome;
use crate::cli::report::Outcome;
use crate::cli::session::Session;

/// Moves a plan.
#[derive(Debug, Args)]
pub(crate) struct Move {
    /// The plan's id, or the beginning of it
    id: String,
    /// Queue the phase for a worker and come back at once
    #[arg(long)]
    detach: bool,
}

pub(crate) async fn run(session: &Session, args: Move, to: PlanMove) -> Outcome {
    let mut feed = Feed::from_here(session, &args.id).await?;
    let plan = feed.ask(&args.id, to).await?;
    if plan.state == State::Applied {
        return Ok(outcome::landed_before(plan));
    }
    if args.detach {
        return Ok(outcome::of_steering(plan));
    }
    let resume = format!("drydock plan {to} {}", plan.id);
    let plan = feed.follow(plan, Until::Settled(to.phase()), &resume).await?;
    Ok(outcome::of_move(plan, to.phase()))
}
