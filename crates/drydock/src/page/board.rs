//! The board: plans by phase, each with the badge of its state, those that need a person first. It reads a bounded
//! number of plans, independent of how many are stored.

use std::collections::HashMap;

use drydock_api::{Decision, DecisionQuery, Phase, Plan, PlanQuery, Problem, Project, State};
use drydock_domain::counted;
use futures_util::future::try_join_all;
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{PageClient, PageQuery};
use super::mark::{self, icon};
use super::new;
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{escaped, first_line, sentence, title, when};

/// The maximum number of plans shown per state: a few screens. Each one delays the first paint.
const STATE_MAX: u32 = 20;
/// The maximum number of plans shown for a search.
const FOUND_MAX: u32 = 200;
/// The states of plans that have not ended, in the order of how much they need a person.
const UNDER_WAY: [State; 6] =
    [State::Waiting, State::Complete, State::Errored, State::Constrained, State::Processing, State::Queued];
const OVER: [State; 2] = [State::Applied, State::Cancelled];

/// The query of the view.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct BoardPageQuery {
    project: Option<String>,
    text: Option<String>,
}

impl BoardPageQuery {
    fn project(&self) -> Option<&str> {
        self.project.as_deref().filter(|project| !project.is_empty())
    }

    fn text(&self) -> Option<&str> {
        self.text.as_deref().map(str::trim).filter(|text| !text.is_empty())
    }
}

/// Plans of each state, and whether there are more.
type Groups = Vec<(Vec<Plan>, bool)>;

/// A column of the board.
struct Column {
    name: &'static str,
    phase: Option<Phase>,
    plans: Vec<Plan>,
    is_cut: bool,
}

pub(super) async fn show(
    ask: PageClient,
    PageQuery(wanted): PageQuery<BoardPageQuery>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let projects = ask.client().projects().await?.projects;
    let (groups, has_more) = match wanted.text() {
        None => (by_state(&ask, &wanted).await?, false),
        Some(text) => searched(&ask, &wanted, text).await?,
    };
    let columns = columns(groups);
    let is_empty = columns.iter().all(|column| column.plans.is_empty());
    let questions = questions(&ask, &columns).await?;
    let no_agent = match is_empty {
        true => new::no_agent(None, &ask.client().agents().await?.agents),
        false => None,
    };
    let main = html! {
        header.top {
            h1 { "Board" }
            (filter(&wanted, &projects))
        }
        @if has_more {
            p.hint.found { "Only the newest " (FOUND_MAX) " matches are shown. " a href=(all(&wanted)) { "Show all" } }
        }
        @if is_empty { (empty(&wanted, &projects, no_agent.as_ref())) } @else {
            div.board { @for column in &columns { (shown(column, &questions, &wanted)) } }
        }
    };
    Ok(document(&frame, "Board", NavItem::Board, RefreshOn::Plans, main))
}

/// Reads the newest plans of each state, one page per state.
async fn by_state(ask: &PageClient, wanted: &BoardPageQuery) -> Result<Groups, PageError> {
    let looks = UNDER_WAY.into_iter().chain(OVER).map(|state| {
        let query = PlanQuery {
            state: Some(state),
            project: wanted.project().map(str::to_owned),
            // Subplans are shown within their parent.
            parent: Some("none".to_owned()),
            limit: Some(STATE_MAX),
            ..PlanQuery::default()
        };
        async move { ask.client().plans(&query).await }
    });
    let pages = try_join_all(looks).await?;
    Ok(pages.into_iter().map(|page| (page.plans, page.next.is_some())).collect())
}

/// Reads the newest plans that match a text, including subplans. Returns true if there are more.
async fn searched(
    ask: &PageClient,
    wanted: &BoardPageQuery,
    text: &str,
) -> Result<(Groups, bool), PageError> {
    let project = wanted.project().map(str::to_owned);
    let query =
        PlanQuery { project, q: Some(text.to_owned()), limit: Some(FOUND_MAX), ..PlanQuery::default() };
    let page = ask.client().plans(&query).await?;
    let mut groups: Groups = UNDER_WAY.iter().chain(&OVER).map(|_| (vec![], false)).collect();
    for plan in page.plans {
        let at = UNDER_WAY.iter().chain(&OVER).position(|state| *state == plan.state);
        groups[at.unwrap_or_default()].0.push(plan);
    }
    Ok((groups, page.next.is_some()))
}

/// Returns the URL of the list with all results.
fn all(wanted: &BoardPageQuery) -> String {
    let project = wanted.project().map(|name| format!("&project={}", escaped(name))).unwrap_or_default();
    format!("/plans?text={}{project}", escaped(wanted.text().unwrap_or_default()))
}

fn columns(groups: Groups) -> [Column; 4] {
    let column = |name, phase| Column { name, phase, plans: Vec::new(), is_cut: false };
    let mut all = [
        column("Strategize", Some(Phase::Strategize)),
        column("Execute", Some(Phase::Execute)),
        column("Apply", Some(Phase::Apply)),
        column("Done", None),
    ];
    for (plans, is_cut) in groups {
        for plan in plans {
            let at = match (plan.state, plan.phase) {
                (State::Applied | State::Cancelled, _) => 3,
                (_, Phase::Strategize) => 0,
                (_, Phase::Execute) => 1,
                (_, Phase::Apply) => 2,
            };
            all[at].is_cut |= is_cut;
            all[at].plans.push(plan);
        }
    }
    // The last column is sorted by time. The others keep the order of states, which puts those that need a person
    // first.
    all[3].plans.sort_by(|one, other| other.updated_at.cmp(&one.updated_at));
    all
}

/// Reads the open questions of the plans in these columns, by decision id.
async fn questions(ask: &PageClient, columns: &[Column]) -> Result<HashMap<String, Decision>, PageError> {
    let plans = columns.iter().flat_map(|column| &column.plans);
    let ids: Vec<&str> = plans.filter_map(|plan| plan.pending_decision.as_deref()).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let limit = u32::try_from(ids.len()).ok();
    let query = DecisionQuery { ids: Some(ids.join(",")), limit, ..DecisionQuery::default() };
    let found = ask.client().decisions(&query).await?.decisions;
    Ok(found.into_iter().map(|decision| (decision.id.clone(), decision)).collect())
}

fn shown(column: &Column, questions: &HashMap<String, Decision>, wanted: &BoardPageQuery) -> Markup {
    let id = format!("column-{}", column.name.to_lowercase());
    let count = format!("{}{}", column.plans.len(), if column.is_cut { "+" } else { "" });
    html! {
        section.column aria-labelledby=(id) data-id=(id) {
            h2 id=(id) { (column.name) " " span.count { (count) } }
            @if column.plans.is_empty() {
                p.none { (nothing(column)) }
            } @else {
                ul.cards { @for plan in &column.plans { (card(plan, questions)) } }
            }
            @if column.is_cut {
                a.more href=(more(column, wanted)) { "Show all" }
            }
        }
    }
}

fn nothing(column: &Column) -> &'static str {
    match column.phase {
        Some(Phase::Strategize) => "No plans in Strategize.",
        Some(Phase::Execute) => "No plans in Execute.",
        Some(Phase::Apply) => "No plans in Apply.",
        None => "No finished plans yet.",
    }
}

fn more(column: &Column, wanted: &BoardPageQuery) -> String {
    let project = wanted.project().map(|name| format!("&project={}", escaped(name))).unwrap_or_default();
    match column.phase {
        Some(phase) => format!("/plans?phase={phase}{project}"),
        None => format!("/plans?state=applied{project}"),
    }
}

fn card(plan: &Plan, questions: &HashMap<String, Decision>) -> Markup {
    let asks = plan.pending_decision.as_ref().map(|id| match questions.get(id) {
        Some(decision) => format!("Question: {}", sentence(first_line(&decision.question))),
        // It was answered after the plan was read; the page is about to be refreshed.
        None => "Question".to_owned(),
    });
    html! {
        li.card data-id=(plan.id) data-tone=(mark::tone_of(plan)) {
            a.card-link href={ "/plans/" (plan.id) } data-item { (title(plan)) }
            @if let Some(blocked) = &plan.blocked {
                p.card-line { span { (sentence(&blocked.text())) } }
            } @else if let Some(asks) = asks {
                p.card-line.asks { (icon("waiting")) span { (asks) } }
            } @else if let Some(line) = line(plan) { p.card-line { span { (line) } } }
            p.card-foot title=(plan.id) {
                (mark::of(plan))
                span { (plan.project) }
                @if plan.parent.is_some() { span { "subplan" } }
                (when(&plan.updated_at))
            }
        }
    }
}

/// Returns a line about a plan that its state does not show.
fn line(plan: &Plan) -> Option<String> {
    match plan.state {
        State::Errored => plan.error.as_ref().map(|error| sentence(first_line(&error.text))),
        State::Constrained => plan.constrained_by.first().map(|reason| sentence(first_line(reason))),
        State::Cancelled => plan.cancel_reason.as_deref().map(|reason| sentence(first_line(reason))),
        State::Applied => {
            plan.landed_commit.as_ref().map(|commit| format!("Landed as {}", super::words::commit(commit)))
        }
        State::Queued | State::Processing | State::Waiting | State::Complete => plan
            .subplans
            .map(|count| format!("{} of {} finished", count.settled, counted(count.total, "subplan"))),
    }
}

fn filter(wanted: &BoardPageQuery, projects: &[Project]) -> Markup {
    let chosen = wanted.project().unwrap_or_default();
    html! {
        form.filter role="search" method="get" action="/" data-live {
            label { span.unseen { "Project" }
                select name="project" {
                    option value="" { "All projects" }
                    @for project in projects {
                        option value=(project.name) selected[project.name == chosen] { (project.name) }
                    }
                }
            }
            label.search { (icon("search")) span.unseen { "Search plans" }
                input type="search" name="text" value=(wanted.text().unwrap_or_default()) placeholder="Search plans" data-key="/";
            }
            button.button.no-script { "Filter" }
        }
    }
}

fn empty(wanted: &BoardPageQuery, projects: &[Project], no_agent: Option<&Problem>) -> Markup {
    let is_filtered = wanted.text().is_some() || wanted.project().is_some();
    if let (false, false, Some(problem)) = (is_filtered, projects.is_empty(), no_agent) {
        return new::agent_wanted(problem);
    }
    html! {
        div.empty {
            @if is_filtered {
                h2 { "No matching plans" }
                p { a href="/" { "Show all plans" } }
            } @else if projects.is_empty() {
                h2 { "No projects yet" }
                p { "A project is a git repository that plans work on. In the repository, run" }
                pre.command { code { "drydock project add NAME --repo ." } }
            } @else {
                h2 { "No plans yet" }
                p { "A plan takes a task through Strategize, Execute and Apply." }
                p { a.button.primary href="/new" { (icon("plus")) "New plan" } }
                p { "Or, in the repository, run" }
                pre.command { code { "drydock run \"your task\"" } }
            }
        }
    }
}
