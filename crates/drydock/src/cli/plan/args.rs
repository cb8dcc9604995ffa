//! The subcommands of `drydock plan`.

use clap::{Args, Subcommand};
use drydock_api::PlanMove;

use super::{log, look, make, moves, steer, together};
use crate::cli::events::{self, EventsArgs};
use crate::cli::report::Outcome;
use crate::cli::session::Session;

/// What can be done with plans.
#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Make a plan from an action
    Use(make::Use),
    /// Think the task through
    Strategize(moves::Move),
    /// Do the task in a worktree
    Execute(moves::Move),
    /// Land the result on the target branch
    Apply(moves::Move),
    /// List plans
    List(look::List),
    /// Show one
    Show(Which),
    /// Show what its strategy chose and the plans it spawned
    Tree(look::Drawn),
    /// Say why it does what it does: task, choices, guidance, what sent it back
    Explain(look::Explain),
    /// Show its changes
    Diff(Which),
    /// Show its part of the feed
    Events {
        #[command(flatten)]
        plan: Which,
        #[command(flatten)]
        events: EventsArgs,
    },
    /// Show what its agents, validations and reviewers printed
    Log(log::LogArgs),
    /// Print its events as they come, until it rests
    Watch(Which),
    /// Say what holds it and who can act
    Why(Which),
    /// End it; its work is kept until `gc` proves that safe to remove
    Cancel(steer::Because),
    /// Try the failed phase again, from the work that was kept
    Retry(steer::RetryArgs),
    /// Accept the work that a failed Execute left; validations, reviews, rules and gates judge it
    Accept(Which),
    /// Go back to Strategize
    Revert(steer::Because),
    /// Add guidance for the runs to come
    Prompt(steer::Guidance),
    /// Go back to an earlier state of its work; what is newer is kept
    Rollback(steer::Backwards),
    /// Take it from a worker whose lock ran out
    Takeover(Which),
    /// Bring its branch and its remote together
    Sync(Which),
    /// Make the strategy draft in its worktree the strategy
    Adopt(Which),
}

/// A plan.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// The plan's id, or the beginning of it
    pub(crate) id: String,
}

impl Plan {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Plan::Use(_) => "use",
            Plan::Strategize(_) => "strategize",
            Plan::Execute(_) => "execute",
            Plan::Apply(_) => "apply",
            Plan::List(_) => "list",
            Plan::Show(_) => "show",
            Plan::Tree(_) => "tree",
            Plan::Explain(_) => "explain",
            Plan::Diff(_) => "diff",
            Plan::Events { .. } => "events",
            Plan::Log(_) => "log",
            Plan::Watch(_) => "watch",
            Plan::Why(_) => "why",
            Plan::Cancel(_) => "cancel",
            Plan::Retry(_) => "retry",
            Plan::Accept(_) => "accept",
            Plan::Revert(_) => "revert",
            Plan::Prompt(_) => "prompt",
            Plan::Rollback(_) => "rollback",
            Plan::Takeover(_) => "takeover",
            Plan::Sync(_) => "sync",
            Plan::Adopt(_) => "adopt",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Plan) -> Outcome {
    match command {
        Plan::Use(args) => make::run(session, args).await,
        Plan::Strategize(args) => moves::run(session, args, PlanMove::Strategize).await,
        Plan::Execute(args) => moves::run(session, args, PlanMove::Execute).await,
        Plan::Apply(args) => moves::run(session, args, PlanMove::Apply).await,
        Plan::List(args) => look::list(session, args).await,
        Plan::Show(plan) => look::show(session, plan).await,
        Plan::Tree(plan) => look::tree(session, plan).await,
        Plan::Explain(args) => look::explain(session, args).await,
        Plan::Diff(plan) => look::diff(session, plan).await,
        Plan::Events { plan, events } => {
            // The whole id: a prefix that is unique now may not be so while we follow.
            let plan = session.client().plan(&plan.id).await?;
            events::of(session, Some(plan.id), events).await
        }
        Plan::Log(args) => log::log(session, args).await,
        Plan::Watch(plan) => look::watch(session, plan).await,
        Plan::Why(plan) => look::why(session, plan).await,
        Plan::Cancel(args) => steer::cancel(session, args).await,
        Plan::Retry(args) => steer::retry(session, args).await,
        Plan::Accept(plan) => steer::accept(session, plan).await,
        Plan::Revert(args) => steer::revert(session, args).await,
        Plan::Prompt(args) => steer::prompt(session, args).await,
        Plan::Rollback(args) => steer::rollback(session, args).await,
        Plan::Takeover(plan) => steer::takeover(session, plan).await,
        Plan::Sync(plan) => together::sync(session, plan).await,
        Plan::Adopt(plan) => together::adopt(session, plan).await,
    }
}
