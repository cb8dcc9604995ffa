//! All open questions, with a button for each answer.

use drydock_api::Plan;
use futures_util::future::join_all;
use maud::html;

use super::ask::Ask;
use super::question::{self, Spot};
use super::shell::{Frame, Html, Place, Watch, document};
use super::trouble::Trouble;

pub(super) async fn show(ask: Ask) -> Result<Html, Trouble> {
    let frame = Frame::read(&ask).await?;
    // A plan that is gone or damaged must not hide the questions of the others.
    let looks = frame.open.iter().map(|decision| async { ask.client().plan(&decision.plan).await.ok() });
    let plans: Vec<Option<Plan>> = join_all(looks).await;
    let main = html! {
        header.top { h1 { "Questions" } }
        @if frame.open.is_empty() {
            div.empty {
                h2 { "Nobody waits for you" }
                p { "When a plan needs a person, its question stands here and on the plan's own page. Answered ones are listed by" }
                pre.command { code { "drydock decision list" } }
            }
        } @else {
            div.questions {
                @for (decision, plan) in frame.open.iter().zip(&plans) { (question::card(decision, plan.as_ref(), Spot::AmongOthers)) }
            }
        }
    };
    Ok(document(&frame, "Questions", Place::Questions, Watch::Plans, main))
}
