//! `drydock plan strategize|execute|apply`: moves a plan and drives it in the foreground. Safe to repeat: a plan that
//! is there already is shown as it is.

use clap::Args;
use drydock_api::{ClientError, Code, Phase, PlanMove, Terms};

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
    let client = session.client();
    let mut feed = Feed::from_here(session, &args.id).await?;
    let plan = match client.plan_move(&args.id, to, &Terms::default()).await {
        Ok(plan) => plan,
        // A move that is behind the plan is no conflict for whoever wanted it made.
        Err(ClientError::Problem(problem)) if problem.code == Code::WrongState => {
            let plan = client.plan(&args.id).await?;
            return if outcome::is_reached(&plan, phase(to)) {
                Ok(outcome::of_move(plan, phase(to)))
            } else {
                Err(problem)
            };
        }
        Err(error) => return Err(error.into()),
    };
    if args.detach {
        return Ok(outcome::of_steering(plan));
    }
    let resume = format!("drydock plan {to} {}", plan.id);
    let plan = feed.follow(plan, Until::Settled, &resume).await?;
    Ok(outcome::of_move(plan, phase(to)))
}

fn phase(to: PlanMove) -> Phase {
    match to {
        PlanMove::Strategize => Phase::Strategize,
        PlanMove::Execute => Phase::Execute,
        PlanMove::Apply => Phase::Apply,
    }
}
