//! All plans of a phase, state or project, or that match a text, one page at a time.

use drydock_api::{Phase, Plan, PlanQuery, State};
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{PageClient, PageQuery};
use super::mark::{self, icon};
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{escaped, short_id, title, when};

const PAGE: u32 = 50;
const PHASES: [Phase; 3] = [Phase::Strategize, Phase::Execute, Phase::Apply];
const STATES: [State; 8] = [
    State::Queued,
    State::Processing,
    State::Waiting,
    State::Complete,
    State::Errored,
    State::Constrained,
    State::Applied,
    State::Cancelled,
];

/// The query of the view. An empty value means any.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct ListPageQuery {
    phase: Option<String>,
    state: Option<String>,
    project: Option<String>,
    text: Option<String>,
    after: Option<String>,
}

pub(super) async fn show(
    ask: PageClient,
    PageQuery(wanted): PageQuery<ListPageQuery>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let (phase, state) = (named(&PHASES, &wanted.phase), named(&STATES, &wanted.state));
    let query = PlanQuery {
        phase,
        state,
        project: wanted.project.clone().filter(|name| !name.is_empty()),
        q: wanted.text.clone().filter(|text| !text.trim().is_empty()),
        limit: Some(PAGE),
        after: wanted.after.clone(),
        ..PlanQuery::default()
    };
    let page = client.plans(&query).await?;
    let projects = client.projects().await?.projects;
    let names = projects.iter().map(|project| (project.name.as_str(), project.name.as_str()));
    let main = html! {
        header.top {
            h1 { "Plans" }
            form.filter role="search" method="get" action="/plans" data-live {
                (choice("phase", "Any phase", PHASES.map(|one| (one.name(), mark::phase(one))), wanted.phase.as_deref()))
                (choice("state", "Any state", STATES.map(|one| (one.name(), mark::word(one))), wanted.state.as_deref()))
                (choice("project", "All projects", names, wanted.project.as_deref()))
                label.search { (icon("search")) span.unseen { "Search plans" }
                    input type="search" name="text" value=(wanted.text.as_deref().unwrap_or_default()) placeholder="Search plans" data-key="/";
                }
                button.button.no-script { "Filter" }
            }
        }
        @if page.plans.is_empty() {
            div.empty { h2 { "No matching plans" } p { a href="/plans" { "Show all plans" } " or " a href="/new" { "create one" } } }
        } @else {
            (table(&page.plans))
            nav.pager aria-label="Pages" {
                @if wanted.after.is_some() { a.button href=(address(&wanted, None)) { "Newest" } }
                @if let Some(next) = &page.next { a.button href=(address(&wanted, Some(next))) rel="next" { "Older" } }
            }
        }
    };
    Ok(document(&frame, "Plans", NavItem::Plans, RefreshOn::Plans, main))
}

fn table(plans: &[Plan]) -> Markup {
    html! {
        div.scroll role="region" aria-label="Plans" tabindex="0" {
            table.plans {
                thead { tr { th scope="col" { "Plan" } th scope="col" { "Phase" } th scope="col" { "State" } th scope="col" { "Project" } th scope="col" { "Changed" } th scope="col" { "Id" } } }
                tbody {
                    @for plan in plans {
                        tr data-id=(plan.id) {
                            td.wide { a href={ "/plans/" (plan.id) } data-item { (title(plan)) } @if plan.parent.is_some() { " " span.hint { "subplan" } } }
                            td.phase { (mark::phase(plan.phase)) }
                            td { (mark::of(plan)) @if plan.pending_decision.is_some() { " " span.asks title="open question" { (icon("waiting")) span.unseen { "open question" } } } }
                            td { (plan.project) }
                            td { (when(&plan.updated_at)) }
                            td.id { code { (short_id(&plan.id)) } }
                        }
                    }
                }
            }
        }
    }
}

/// Returns the value that a word names, if any.
fn named<T: Copy + std::fmt::Display>(all: &[T], word: &Option<String>) -> Option<T> {
    let word = word.as_deref()?;
    all.iter().copied().find(|one| one.to_string() == word)
}

fn choice<'a>(
    name: &str,
    any: &str,
    options: impl IntoIterator<Item = (&'a str, &'a str)>,
    chosen: Option<&str>,
) -> Markup {
    html! {
        label { span.unseen { (any) }
            select name=(name) {
                option value="" { (any) }
                @for (value, shown) in options { option value=(value) selected[chosen == Some(value)] { (shown) } }
            }
        }
    }
}

fn address(wanted: &ListPageQuery, after: Option<&str>) -> String {
    let fields = [
        ("phase", wanted.phase.as_deref()),
        ("state", wanted.state.as_deref()),
        ("project", wanted.project.as_deref()),
        ("text", wanted.text.as_deref()),
        ("after", after),
    ];
    let given =
        fields.into_iter().filter_map(|(name, value)| Some((name, value.filter(|value| !value.is_empty())?)));
    let query: Vec<_> = given.map(|(name, value)| format!("{name}={}", escaped(value))).collect();
    format!("/plans?{}", query.join("&"))
}
