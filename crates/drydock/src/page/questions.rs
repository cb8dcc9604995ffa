//! All open questions, with a button for each answer, one page at a time. Questions of agents are first and gates
//! last; the oldest of each are first.

use drydock_api::{DecisionOrder, DecisionQuery, Plan};
use futures_util::future::join_all;
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{PageClient, PageQuery};
use super::question::{self, Spot};
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::escaped;

const PAGE: u32 = 50;

/// The query of the view.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct Wanted {
    after: Option<String>,
}

pub(super) async fn show(ask: PageClient, PageQuery(wanted): PageQuery<Wanted>) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let query = DecisionQuery {
        open: Some(true),
        order: Some(DecisionOrder::Need),
        limit: Some(PAGE),
        after: wanted.after.clone(),
        ..DecisionQuery::default()
    };
    let page = ask.client().decisions(&query).await?;
    // A missing or damaged plan must not hide the questions of other plans.
    let looks = page.decisions.iter().map(|decision| async { ask.client().plan(&decision.plan).await.ok() });
    let plans: Vec<Option<Plan>> = join_all(looks).await;
    let main = html! {
        header.top { h1 { "Questions" } @if frame.open > 1 { p.hint { (frame.open) " open. Questions of agents first, approvals last, oldest first." } } }
        @if page.decisions.is_empty() { (nothing(&wanted)) } @else {
            div.questions {
                @for (decision, plan) in page.decisions.iter().zip(&plans) { (question::card(decision, plan.as_ref(), Spot::AmongOthers)) }
            }
        }
        @if wanted.after.is_some() || page.next.is_some() {
            nav.pager aria-label="Pages" {
                @if wanted.after.is_some() { a.button href="/questions" { "First page" } }
                @if let Some(next) = &page.next { a.button href={ "/questions?after=" (escaped(next)) } rel="next" { "Next page" } }
            }
        }
    };
    Ok(document(&frame, "Questions", NavItem::Questions, RefreshOn::Plans, main))
}

fn nothing(wanted: &Wanted) -> Markup {
    html! {
        div.empty {
            @if wanted.after.is_some() {
                h2 { "No more questions" }
            } @else {
                h2 { "No open questions" }
                p { "When a plan needs a person, its question appears here and on the plan's page. To list answered questions, run" }
                pre.command { code { "drydock decision list" } }
            }
        }
    }
}
