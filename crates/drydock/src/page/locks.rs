//! Locks, and a button to break one.

use drydock_api::{Lock, LockScope};
use maud::{Markup, html};

use super::act::{ButtonInput, CommandButton, Weight};
use super::ask::PageClient;
use super::mark::icon;
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{short_id, when};

pub(super) async fn show(ask: PageClient) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let locks = ask.client().locks().await?.locks;
    let main = html! {
        header.top { h1 { "Locks" } }
        @if locks.is_empty() {
            div.empty {
                h2 { "No locks" }
                p { "While a plan runs, one process holds its lock and renews it. The lock of a dead process expires." }
            }
        } @else {
            ul.rows { @for lock in &locks { (row(lock)) } }
        }
    };
    Ok(document(&frame, "Locks", NavItem::Locks, RefreshOn::Clock, main))
}

fn row(lock: &Lock) -> Markup {
    let id = format!("break-{}", lock.id);
    let act = CommandButton {
        id: &id,
        route: format!("/locks/{}/break", lock.id),
        label: "Break",
        weight: Weight::Danger,
        seen: None,
        done: "Broke the lock.",
    };
    html! {
        li.row-item data-id=(lock.id) {
            div {
                p.row-title {
                    @match lock.scope {
                        LockScope::Plan => a href={ "/plans/" (lock.key) } data-item { "Plan " (short_id(&lock.key)) },
                        LockScope::Project => span { "Project " (lock.key) },
                    }
                    @if lock.stale { span.mark.tone-bad { (icon("constrained")) span { "Expired" } } }
                    @else { span.mark.tone-busy { (icon("lock")) span { "Held" } } }
                }
                p.hint { (lock.purpose) ", by process " (lock.pid) " on " (lock.host) ", fence " (lock.fence) }
                p.hint { "Taken " (when(&lock.acquired_at)) ", expires " (when(&lock.expires_at)) " unless renewed" }
            }
            (act.asking(
                "Break this lock?",
                "The holder can no longer commit; the next run starts from a checkpoint of its work. Wait until the lock expires if you can.",
                ButtonInput::Required("reason", "Reason (recorded)"),
                &[],
            ))
        }
    }
}
