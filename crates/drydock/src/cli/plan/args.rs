//! The subcommands of `drydock plan`.

use clap::{Args, Subcommand};
use drydock_api::PlanMove;

use super::{log, look, make, moves, steer, together};
use crate::cli::events::{self, EventsArgs};
use crate::cli::report::Outcome;
use crate::cli::session::Session;

/// Subcommands of `drydock plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum Plan {
    /// Create a plan from an action
    Use(make::Use),
    /// Let the agent plan the task
    Strategize(moves::Move),
    /// Let the agent do the task in a worktree
    Execute(moves::Move),
    /// Land the result on the target branch
    Apply(moves::Move),
    /// List plans
    List(look::List),
    /// Show a plan
    Show(Which),
    /// Show choices and subplans
    Tree(look::Drawn),
    /// Explain it: task, choices, guidance, rejections
    Explain(look::Explain),
    /// Show its changes
    Diff(Which),
    /// Print its events
    Events {
        #[command(flatten)]
        plan: Which,
        #[command(flatten)]
        events: EventsArgs,
    },
    /// Show the output of its agents, validations and reviewers
    Log(log::LogArgs),
    /// Follow a plan until it stops
    Watch(Which),
    /// Show what it waits for and who can act
    Why(Which),
    /// Cancel it; its work is kept until `gc` finds it safe to delete
    Cancel(steer::Because),
    /// Retry the failed phase from the work that was kept
    Retry(steer::RetryArgs),
    /// Accept the work of a failed Execute; validations, reviews, rules and gates still apply
    Accept(Which),
    /// Discard the strategy and plan again
    Revert(steer::Because),
    /// Add guidance for later runs
    Prompt(steer::Guidance),
    /// Return to a checkpoint; newer work is kept
    Rollback(steer::Backwards),
    /// Take over from a worker whose lock expired
    Takeover(Which),
    /// Sync its branch with the remote
    Sync(Which),
    /// Adopt the strategy draft in its worktree as the strategy
    Adopt(Which),
}

/// Arguments of a command that takes only a plan.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Plan id or unique prefix
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
            // Use the full id: a prefix that is unique now may become ambiguous while we follow.
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
