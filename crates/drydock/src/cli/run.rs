//! `drydock run`: takes a task in the current repository from the prompt to the landed commit.

use clap::Args;
use drydock_api::{Code, NewPlan, Plan, PlanMove, Problem, RequestOptions, State, exit};
use drydock_engine::EngineError;

use super::agent::unusable;
use super::confirm::{GateAnswer, ask};
use super::follow::{FollowUntil, PlanFeed};
use super::ground::ground;
use super::outcome;
use super::report::{CliResult, Level, ReportStatus};
use super::session::{Driver, FollowedPlan, Invocation};
use crate::http::problem;
use crate::render;
use crate::render::agent::is_usable;

/// Arguments of `drydock run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Task for the agent
    task: String,
    /// Project [default: this repository]
    #[arg(long, value_name = "NAME")]
    project: Option<String>,
    /// Branch to land on [default: the current branch; the project's if run outside its repository]
    #[arg(long, value_name = "BRANCH")]
    target: Option<String>,
    /// Agent [default: from the configuration]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Automation profile; if given, every approval it requires is asked
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Budget: tokens=200k,cost=1.50,wall=30m,tool_calls=50, or some of these
    #[arg(long, value_name = "LIMITS")]
    budget: Option<String>,
    /// Approve everything, landing included
    #[arg(long, short)]
    yes: bool,
}

/// Which gates ask a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GatePolicy {
    /// None: `--yes`.
    Open,
    /// Only the gate before landing. Typing the task approves the phases before it.
    BeforeLanding,
    /// Every gate of the profile.
    All,
}

/// Whether the next phase needs a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Confirmation {
    Nobody,
    Person,
}

/// How a gate ended.
enum GateResult {
    Granted,
    /// A person answered no for now.
    Refused,
    /// No terminal to ask at.
    Unasked,
}

pub(crate) async fn run(session: &Invocation, args: RunArgs) -> CliResult {
    let client = session.client();
    if args.task.trim().is_empty() {
        let problem = Problem::new(Code::Usage, "the task is empty");
        return Err(Box::new(problem.hint("describe the task, e.g. drydock run \"fix the failing test\"")));
    }
    require_agent(session, args.agent.as_deref()).await?;
    let ground = ground(client, session.screen(), args.project.as_deref(), args.target.as_deref()).await?;
    let named = args.profile.is_some();
    let new = NewPlan {
        task: Some(args.task),
        project: ground.project.name,
        target: Some(ground.target.clone()),
        agent: args.agent,
        profile: args.profile,
        budget: args.budget,
        ..NewPlan::default()
    };
    let plan = client.plan_use(&new, &RequestOptions::default()).await?;
    session.screen().info(&format!("plan {} on {}, lands on {}", plan.id, plan.project, ground.target));
    let gates = match (args.yes, named || plan.gate.is_some()) {
        (true, _) => GatePolicy::Open,
        (false, true) => GatePolicy::All,
        (false, false) => GatePolicy::BeforeLanding,
    };
    drive(session, PlanFeed::from_start(session), plan, &ground.target, gates).await
}

/// Takes the plan through its phases until it has landed or something stops it.
async fn drive(
    session: &Invocation,
    mut feed: PlanFeed<'_>,
    mut plan: Plan,
    target: &str,
    gates: GatePolicy,
) -> CliResult {
    loop {
        // The work is still polled after a signal, but only to shut down: it must not ask a question or request a
        // phase.
        if let Some(interrupt) = session.interrupted() {
            return Err(interrupt.problem(render::next::command(&plan)));
        }
        let asked = plan.phase;
        let Some(to) = next_move(&plan) else {
            return match outcome::blocked(&plan) {
                Some(problem) => Err(problem),
                None => Ok(outcome::of_move(plan, asked)),
            };
        };
        let asks = asks(&plan, to, gates);
        if to == PlanMove::Apply {
            let shown = diff(session, &plan).await?;
            match asks {
                // A person cannot answer without having seen the diff, so `--quiet` does not suppress it.
                Confirmation::Person => session.screen().error(&shown),
                Confirmation::Nobody => session.screen().info(shown.trim_end()),
            }
        }
        let left = match gate(session, &plan, target, to, asks).await? {
            GateResult::Granted => None,
            GateResult::Refused => {
                Some(format!("stopped before {to}; to discard the plan: drydock plan cancel {}", plan.id))
            }
            GateResult::Unasked => Some(format!(
                "stopped before {to}: no terminal to ask for approval; --yes approves everything"
            )),
        };
        if let Some(left) = left {
            let report = outcome::of_move(plan, asked).note(Level::Warn, left);
            return Ok(report.ending(ReportStatus::Attention(exit::UNDECIDED)));
        }
        plan = moved(session, &mut feed, plan, to).await?;
    }
}

/// Returns the phase to request next. A plan that a worker is running is only followed.
fn next_move(plan: &Plan) -> Option<PlanMove> {
    match plan.state {
        State::Processing => Some(PlanMove::to(plan.phase)),
        State::Queued | State::Complete => plan.offers().iter().find_map(|offer| offer.command.parse().ok()),
        State::Waiting | State::Errored | State::Cancelled | State::Applied | State::Constrained => None,
    }
}

/// Requests one phase and follows it. If the plan has not settled after that, it is requested again only if a worker
/// has moved it to another phase.
async fn moved(
    session: &Invocation,
    feed: &mut PlanFeed<'_>,
    plan: Plan,
    to: PlanMove,
) -> Result<Plan, Box<Problem>> {
    let resume = format!("drydock plan {to} {}", plan.id);
    let (plan, until) = match (session.driver(), &plan.gate) {
        // The server continues automatically if the profile has no gate here; a request of ours would race with it.
        (Driver::Server, None) => (plan, FollowUntil::Resting),
        (Driver::Server, Some(_)) => (feed.request_phase(&plan.id, to).await?, FollowUntil::Resting),
        (Driver::ThisProcess | Driver::Worker | Driver::Person | Driver::Waiting, _) => {
            (feed.request_phase(&plan.id, to).await?, FollowUntil::Settled(to.phase()))
        }
    };
    let plan = feed.follow(plan, until, &resume).await?;
    if plan.is_settled() || plan.phase != to.phase() { Ok(plan) } else { Err(outcome::stopped(&plan)) }
}

fn asks(plan: &Plan, to: PlanMove, gates: GatePolicy) -> Confirmation {
    match (gates, &plan.gate, to) {
        (GatePolicy::Open, _, _) | (_, None, _) => Confirmation::Nobody,
        (GatePolicy::BeforeLanding, Some(_), PlanMove::Strategize | PlanMove::Execute) => {
            Confirmation::Nobody
        }
        (GatePolicy::BeforeLanding, Some(_), PlanMove::Apply) | (GatePolicy::All, Some(_), _) => {
            Confirmation::Person
        }
    }
}

async fn gate(
    session: &Invocation,
    plan: &Plan,
    target: &str,
    to: PlanMove,
    asks: Confirmation,
) -> Result<GateResult, Box<Problem>> {
    if asks == Confirmation::Nobody {
        return Ok(GateResult::Granted);
    }
    if !session.screen().can_ask() {
        return Ok(GateResult::Unasked);
    }
    let resume = format!("drydock plan {to} {}", plan.id);
    session.set_driving(Some(FollowedPlan { plan: plan.id.clone(), by: Driver::Person, resume }));
    let question = match to {
        PlanMove::Apply => format!("Land on {target}? [y/N/d=diff]"),
        PlanMove::Strategize | PlanMove::Execute => format!("Start {to}? [y/N]"),
    };
    let passage = loop {
        match ask(session.screen(), &question).await? {
            GateAnswer::Yes => break GateResult::Granted,
            GateAnswer::No => break GateResult::Refused,
            GateAnswer::Diff => session.screen().error(&diff(session, plan).await?),
        }
    };
    session.set_driving(None);
    Ok(passage)
}

/// Returns the diff for the person who decides. It goes to stderr because it is not the command's data.
async fn diff(session: &Invocation, plan: &Plan) -> Result<String, Box<Problem>> {
    let diff = session.client().plan_diff(&plan.id).await?;
    Ok(format!("{}{}\n", render::diff::shown(&diff), render::diff::size(&diff)))
}

/// Returns an error before anything is created if no agent can do the task.
async fn require_agent(session: &Invocation, named: Option<&str>) -> Result<(), Box<Problem>> {
    let client = session.client();
    let agents = client.agents().await?.agents;
    let agent = match named {
        Some(name) => {
            agents.iter().find(|agent| agent.name == name).ok_or_else(|| EngineError::unknown_agent(name))
        }
        None => agents.iter().find(|agent| agent.default).ok_or_else(|| {
            let usable = agents.iter().filter(|agent| is_usable(agent));
            EngineError::NoAgent { usable: usable.map(|agent| agent.name.clone()).collect() }
        }),
    };
    let agent = agent.map_err(|error| Box::new(problem(&error)))?;
    // A server's workers may have agents that the server does not have, so a missing agent is an error only if this
    // process runs it.
    if agent.found || session.driver() != Driver::ThisProcess {
        return Ok(());
    }
    let check = client.agent_check(&agent.name).await?;
    match unusable(&check) {
        Some(problem) => Err(problem),
        None => Ok(()),
    }
}
