//! `drydock run`: takes a task in the current repository from the prompt to the landed commit.

use clap::Args;
use drydock_api::{Code, NewPlan, Plan, PlanMove, Problem, RequestOptions, State, exit};
use drydock_engine::EngineError;

use super::agent::unusable;
use super::confirm::{Answer, ask};
use super::follow::{Feed, Until};
use super::ground::ground;
use super::outcome;
use super::report::{Ending, Level, Outcome};
use super::session::{Driver, Driving, Session};
use crate::http::problem;
use crate::render;
use crate::render::agent::is_usable;

/// Arguments of `drydock run`.
#[derive(Debug, Args)]
pub(crate) struct Run {
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
enum Gates {
    /// None: `--yes`.
    Open,
    /// Only the gate before landing. Typing the task approves the phases before it.
    BeforeLanding,
    /// Every gate of the profile.
    All,
}

/// Whether the next phase needs a person's approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asks {
    Nobody,
    Person,
}

/// How a gate ended.
enum Passage {
    Granted,
    /// A person answered no for now.
    Refused,
    /// No terminal to ask at.
    Unasked,
}

pub(crate) async fn run(session: &Session, args: Run) -> Outcome {
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
    session.screen().tell(&format!("plan {} on {}, lands on {}", plan.id, plan.project, ground.target));
    let gates = match (args.yes, named || plan.gate.is_some()) {
        (true, _) => Gates::Open,
        (false, true) => Gates::All,
        (false, false) => Gates::BeforeLanding,
    };
    drive(session, Feed::from_start(session), plan, &ground.target, gates).await
}

/// Takes the plan through its phases until it has landed or something stops it.
async fn drive(session: &Session, mut feed: Feed<'_>, mut plan: Plan, target: &str, gates: Gates) -> Outcome {
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
                Asks::Person => session.screen().cry(&shown),
                Asks::Nobody => session.screen().tell(shown.trim_end()),
            }
        }
        let left = match gate(session, &plan, target, to, asks).await? {
            Passage::Granted => None,
            Passage::Refused => {
                Some(format!("stopped before {to}; to discard the plan: drydock plan cancel {}", plan.id))
            }
            Passage::Unasked => Some(format!(
                "stopped before {to}: no terminal to ask for approval; --yes approves everything"
            )),
        };
        if let Some(left) = left {
            let report = outcome::of_move(plan, asked).note(Level::Warn, left);
            return Ok(report.ending(Ending::Attention(exit::UNDECIDED)));
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
    session: &Session,
    feed: &mut Feed<'_>,
    plan: Plan,
    to: PlanMove,
) -> Result<Plan, Box<Problem>> {
    let resume = format!("drydock plan {to} {}", plan.id);
    let (plan, until) = match (session.driver(), &plan.gate) {
        // The server continues automatically if the profile has no gate here; a request of ours would race with it.
        (Driver::Server, None) => (plan, Until::Resting),
        (Driver::Server, Some(_)) => (feed.ask(&plan.id, to).await?, Until::Resting),
        (Driver::ThisProcess | Driver::Worker | Driver::Person | Driver::Waiting, _) => {
            (feed.ask(&plan.id, to).await?, Until::Settled(to.phase()))
        }
    };
    let plan = feed.follow(plan, until, &resume).await?;
    if plan.is_settled() || plan.phase != to.phase() { Ok(plan) } else { Err(outcome::stopped(&plan)) }
}

fn asks(plan: &Plan, to: PlanMove, gates: Gates) -> Asks {
    match (gates, &plan.gate, to) {
        (Gates::Open, _, _) | (_, None, _) => Asks::Nobody,
        (Gates::BeforeLanding, Some(_), PlanMove::Strategize | PlanMove::Execute) => Asks::Nobody,
        (Gates::BeforeLanding, Some(_), PlanMove::Apply) | (Gates::All, Some(_), _) => Asks::Person,
    }
}

async fn gate(
    session: &Session,
    plan: &Plan,
    target: &str,
    to: PlanMove,
    asks: Asks,
) -> Result<Passage, Box<Problem>> {
    if asks == Asks::Nobody {
        return Ok(Passage::Granted);
    }
    if !session.screen().can_ask() {
        return Ok(Passage::Unasked);
    }
    let resume = format!("drydock plan {to} {}", plan.id);
    session.set_driving(Some(Driving { plan: plan.id.clone(), by: Driver::Person, resume }));
    let question = match to {
        PlanMove::Apply => format!("Land on {target}? [y/N/d=diff]"),
        PlanMove::Strategize | PlanMove::Execute => format!("Start {to}? [y/N]"),
    };
    let passage = loop {
        match ask(session.screen(), &question).await? {
            Answer::Yes => break Passage::Granted,
            Answer::No => break Passage::Refused,
            Answer::Diff => session.screen().cry(&diff(session, plan).await?),
        }
    };
    session.set_driving(None);
    Ok(passage)
}

/// Returns the diff for the person who decides. It goes to stderr because it is not the command's data.
async fn diff(session: &Session, plan: &Plan) -> Result<String, Box<Problem>> {
    let diff = session.client().plan_diff(&plan.id).await?;
    Ok(format!("{}{}\n", render::diff::shown(&diff), render::diff::size(&diff)))
}

/// Returns an error before anything is created if no agent can do the task.
async fn require_agent(session: &Session, named: Option<&str>) -> Result<(), Box<Problem>> {
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
