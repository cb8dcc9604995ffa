//! The subcommands of `drydock plan`.

use clap::{Args, Subcommand};
use drydock_api::PlanMove;

use super::{log, look, make, moves, steer, together};
use crate::cli::events::{self, EventsArgs};
use crate::cli::report::CliResult;
use crate::cli::session::Invocation;

/// Subcommands of `drydock plan`.
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Create a plan from an action
    Use(make::PlanUseArgs),
    /// Let the agent plan the task
    Strategize(moves::PlanMoveArgs),
    /// Let the agent do the task in a worktree
    Execute(moves::PlanMoveArgs),
    /// Land the result on the target branch
    Apply(moves::PlanMoveArgs),
    /// List plans
    List(look::PlanListArgs),
    /// Show a plan
    Show(PlanIdArgs),
    /// Show choices and subplans
    Tree(look::PlanTreeArgs),
    /// Explain it: task, choices, guidance, rejections
    Explain(look::PlanExplainArgs),
    /// Show its changes
    Diff(PlanIdArgs),
    /// Print its events
    Events {
        #[command(flatten)]
        plan: PlanIdArgs,
        #[command(flatten)]
        events: EventsArgs,
    },
    /// Show the output of its agents, validations and reviewers
    Log(log::LogArgs),
    /// Follow a plan until it stops
    Watch(PlanIdArgs),
    /// Show what it waits for and who can act
    Why(PlanIdArgs),
    /// Cancel it; its work is kept until `gc` finds it safe to delete
    Cancel(steer::ReasonArgs),
    /// Retry the failed phase from the work that was kept
    Retry(steer::RetryArgs),
    /// Accept the work of a failed Execute; validations, reviews, rules and gates still apply
    Accept(PlanIdArgs),
    /// Discard the strategy and plan again
    Revert(steer::ReasonArgs),
    /// Add guidance for later runs
    Prompt(steer::PromptArgs),
    /// Return to a checkpoint; newer work is kept
    Rollback(steer::RollbackArgs),
    /// Take over from a worker whose lock expired
    Takeover(PlanIdArgs),
    /// Sync its branch with the remote
    Sync(PlanIdArgs),
    /// Adopt the strategy draft in its worktree as the strategy
    Adopt(PlanIdArgs),
}

/// Arguments of a command that takes only a plan.
#[derive(Debug, Args)]
pub(crate) struct PlanIdArgs {
    /// Plan id or unique prefix
    pub(crate) id: String,
}

impl PlanCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            PlanCommand::Use(_) => "use",
            PlanCommand::Strategize(_) => "strategize",
            PlanCommand::Execute(_) => "execute",
            PlanCommand::Apply(_) => "apply",
            PlanCommand::List(_) => "list",
            PlanCommand::Show(_) => "show",
            PlanCommand::Tree(_) => "tree",
            PlanCommand::Explain(_) => "explain",
            PlanCommand::Diff(_) => "diff",
            PlanCommand::Events { .. } => "events",
            PlanCommand::Log(_) => "log",
            PlanCommand::Watch(_) => "watch",
            PlanCommand::Why(_) => "why",
            PlanCommand::Cancel(_) => "cancel",
            PlanCommand::Retry(_) => "retry",
            PlanCommand::Accept(_) => "accept",
            PlanCommand::Revert(_) => "revert",
            PlanCommand::Prompt(_) => "prompt",
            PlanCommand::Rollback(_) => "rollback",
            PlanCommand::Takeover(_) => "takeover",
            PlanCommand::Sync(_) => "sync",
            PlanCommand::Adopt(_) => "adopt",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: PlanCommand) -> CliResult {
    match command {
        PlanCommand::Use(args) => make::run(session, args).await,
        PlanCommand::Strategize(args) => moves::run(session, args, PlanMove::Strategize).await,
        PlanCommand::Execute(args) => moves::run(session, args, PlanMove::Execute).await,
        PlanCommand::Apply(args) => moves::run(session, args, PlanMove::Apply).await,
        PlanCommand::List(args) => look::list(session, args).await,
        PlanCommand::Show(plan) => look::show(session, plan).await,
        PlanCommand::Tree(plan) => look::tree(session, plan).await,
        PlanCommand::Explain(args) => look::explain(session, args).await,
        PlanCommand::Diff(plan) => look::diff(session, plan).await,
        PlanCommand::Events { plan, events } => {
            // Use the full id: a prefix that is unique now may become ambiguous while we follow.
            let plan = session.client().plan(&plan.id).await?;
            events::of(session, Some(plan.id), events).await
        }
        PlanCommand::Log(args) => log::log(session, args).await,
        PlanCommand::Watch(plan) => look::watch(session, plan).await,
        PlanCommand::Why(plan) => look::why(session, plan).await,
        PlanCommand::Cancel(args) => steer::cancel(session, args).await,
        PlanCommand::Retry(args) => steer::retry(session, args).await,
        PlanCommand::Accept(plan) => steer::accept(session, plan).await,
        PlanCommand::Revert(args) => steer::revert(session, args).await,
        PlanCommand::Prompt(args) => steer::prompt(session, args).await,
        PlanCommand::Rollback(args) => steer::rollback(session, args).await,
        PlanCommand::Takeover(plan) => steer::takeover(session, plan).await,
        PlanCommand::Sync(plan) => together::sync(session, plan).await,
        PlanCommand::Adopt(plan) => together::adopt(session, plan).await,
    }
}
