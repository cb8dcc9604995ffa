//! Locks, and a button to break one.

use drydock_api::{Lock, LockScope};
use maud::{Markup, html};

use super::act::{Act, Weight, Words};
use super::ask::Ask;
use super::mark::icon;
use super::shell::{Frame, Html, Place, Watch, document};
use super::trouble::Trouble;
use super::words::{short_id, when};

pub(super) async fn show(ask: Ask) -> Result<Html, Trouble> {
    let frame = Frame::read(&ask).await?;
    let locks = ask.client().locks().await?.locks;
    let main = html! {
        header.top { h1 { "Locks" } }
        @if locks.is_empty() {
            div.empty {
                h2 { "Nothing is locked" }
                p { "While a plan runs, one process holds its lock and renews it. A lock whose process is gone runs out by itself." }
            }
        } @else {
            ul.rows { @for lock in &locks { (row(lock)) } }
        }
    };
    Ok(document(&frame, "Locks", Place::Locks, Watch::Clock, main))
}

fn row(lock: &Lock) -> Markup {
    let id = format!("break-{}", lock.id);
    let act = Act {
        id: &id,
        route: format!("/locks/{}/break", lock.id),
        label: "Break",
        weight: Weight::Danger,
        seen: None,
        done: "The lock is broken.",
    };
    html! {
        li.row-item data-id=(lock.id) {
            div {
                p.row-title {
                    @match lock.scope {
                        LockScope::Plan => a href={ "/plans/" (lock.key) } data-item { "Plan " (short_id(&lock.key)) },
                        LockScope::Project => span { "Project " (lock.key) },
                    }
                    @if lock.stale { span.mark.tone-bad { (icon("constrained")) span { "Ran out" } } }
                    @else { span.mark.tone-busy { (icon("lock")) span { "Held" } } }
                }
                p.hint { (lock.purpose) ", by process " (lock.pid) " on " (lock.host) ", fence " (lock.fence) }
                p.hint { "Taken " (when(&lock.acquired_at)) ", ends " (when(&lock.expires_at)) " unless renewed" }
            }
            (act.asking(
                "Break this lock?",
                "Whoever holds it can commit nothing any more, and what it does now is lost to it. Wait for it to run out if you can.",
                Words::Required("reason", "Why? It is recorded."),
                &[],
            ))
        }
    }
}
