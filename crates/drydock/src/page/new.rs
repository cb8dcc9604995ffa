//! A new plan: a task in words, or an action with its arguments, on a project.

use drydock_api::{Action, AgentEntry, Problem, Project};
use drydock_engine::EngineError;
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{PageClient, PageQuery};
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{sentence, with_code};
use crate::http::problem;
use crate::render::agent::is_usable;

const PROFILES: [(&str, &str); 4] = [
    ("supervised", "asks before Execute and Apply"),
    ("trusted", "asks before Apply"),
    ("manual", "asks before every phase"),
    ("auto", "never asks; lands when validations and rules pass"),
];

/// The initial values of the form.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct NewPlanPageQuery {
    action: Option<String>,
}

pub(super) async fn show(
    ask: PageClient,
    PageQuery(wanted): PageQuery<NewPlanPageQuery>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let (projects, actions, agents) = tokio::try_join!(client.projects(), client.actions(), client.agents())?;
    let chosen = wanted.action.as_deref().filter(|name| !name.is_empty());
    let chosen = chosen.and_then(|name| actions.actions.iter().find(|action| action.name == name));
    let main = html! {
        header.top { h1 { "New plan" } }
        @if projects.projects.is_empty() {
            div.empty {
                h2 { "No projects yet" }
                p { "A project is a git repository that plans work on. In the repository, run" }
                pre.command { code { "drydock project add NAME --repo ." } }
            }
        } @else {
            (sources(&actions.actions, chosen))
            @match no_agent(chosen, &agents.agents) {
                Some(problem) => (agent_wanted(&problem)),
                None => (form(&projects.projects, chosen, &agents.agents)),
            }
            p.no-script.hint { "Without JavaScript, run " code { "drydock run \"your task\"" } " in the repository." }
        }
    };
    Ok(document(&frame, "New plan", NavItem::New, RefreshOn::Nothing, main))
}

/// Returns the error that the server would return if no agent can work on a plan.
pub(super) fn no_agent(chosen: Option<&Action>, agents: &[AgentEntry]) -> Option<Problem> {
    let names_one = |action: &Action| action.agents.execute.is_some() || action.agents.strategize.is_some();
    let is_there = agents.iter().any(|agent| agent.default || is_usable(agent));
    (!is_there && !chosen.is_some_and(names_one))
        .then(|| problem(&EngineError::NoAgent { usable: Vec::new() }))
}

/// Shows that no agent is available yet, and how to get one.
pub(super) fn agent_wanted(problem: &Problem) -> Markup {
    let hint = problem.hint.as_deref().unwrap_or_default();
    let (how, lines) = hint.split_once('\n').unwrap_or((hint, ""));
    html! {
        div.empty {
            h2 { "No agents yet" }
            p { (with_code(&sentence(&problem.detail))) }
            p { (with_code(&sentence(how))) }
            @if !lines.is_empty() { pre.command { code { (lines) } } }
            p.hint { "Then restart drydock." }
        }
    }
}

/// Returns the choice between a free task and the existing actions as links, because each has its own fields.
fn sources(actions: &[Action], chosen: Option<&Action>) -> Markup {
    if actions.is_empty() {
        return html! {};
    }
    let name = chosen.map(|action| action.name.as_str());
    html! {
        nav.tabs aria-label="Source of the task" {
            a href="/new" aria-current=[name.is_none().then_some("page")] { "Free text" }
            @for action in actions {
                a href={ "/new?action=" (super::words::escaped(&action.name)) } aria-current=[(name == Some(&action.name)).then_some("page")] { (action.name) }
            }
        }
    }
}

fn form(projects: &[Project], chosen: Option<&Action>, agents: &[AgentEntry]) -> Markup {
    let names_one = chosen.is_some_and(|action| action.agents.execute.is_some());
    let has_default = names_one || agents.iter().any(|agent| agent.default);
    html! {
        form.sheet.script data-post="/api/v1/plans" data-then="/plans/" {
            @match chosen {
                None => {
                    label.field for="task" { "Task" }
                    textarea id="task" name="task" rows="6" required autofocus placeholder="Make the parser accept trailing commas" {}
                }
                Some(action) => {
                    input type="hidden" name="action" value=(action.name);
                    p.prose { (action.description) }
                    @for (name, argument) in &action.arguments {
                        label.field for={ "argument-" (name) } { (name)
                            @if let Some(about) = &argument.description { span.hint { " " (about) } }
                            @if !argument.required { span.hint { " (optional)" } }
                        }
                        input id={ "argument-" (name) } name={ "arguments." (name) } value=(argument.default.as_deref().unwrap_or_default()) required[argument.required];
                    }
                }
            }
            div.fields {
                div { label.field for="project" { "Project" }
                    select id="project" name="project" { @for one in projects { option value=(one.name) { (one.name) " → " (one.target) } } }
                }
                div { label.field for="agent" { "Agent" @if has_default { span.hint { " (optional)" } } }
                    select id="agent" name="agent" required[!has_default] {
                        option value="" { @if has_default { "As configured" } @else { "Choose one" } }
                        @for one in agents.iter().filter(|one| is_usable(one)) { option value=(one.name) { (one.name) } }
                    }
                }
                div { label.field for="profile" { "Approvals" }
                    select id="profile" name="profile" {
                        option value="" { "As configured" }
                        @for (name, does) in PROFILES { option value=(name) { (name) ": " (does) } }
                    }
                }
            }
            p.problem role="alert" {}
            div.row { button.button.primary { "Create plan" } }
        }
    }
}
