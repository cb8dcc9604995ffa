//! Health: the results of the doctor, and the running workers.

use drydock_api::{Check, CheckStatus, Lock};
use maud::{Markup, html};

use super::ask::PageClient;
use super::mark::icon;
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{short_id, when, with_code};

pub(super) async fn show(ask: PageClient) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let (doctor, locks) = tokio::try_join!(client.doctor(), client.locks())?;
    let busy: Vec<_> = locks.locks.iter().filter(|lock| !lock.stale).collect();
    let main = html! {
        header.top { h1 { "Health" } }
        section aria-labelledby="checks" {
            h2 id="checks" { "Checks" }
            ul.rows { @for check in &doctor.checks { (row(check)) } }
        }
        section aria-labelledby="workers" {
            h2 id="workers" { "Running" }
            @if busy.is_empty() {
                p.hint { (with_code("No plans are running. `drydock serve` and `drydock worker` start queued plans.")) }
            } @else {
                ul.rows { @for lock in busy { (worker(lock)) } }
            }
        }
    };
    Ok(document(&frame, "Health", NavItem::Health, RefreshOn::Clock, main))
}

fn row(check: &Check) -> Markup {
    let (shape, tone, word) = match check.status {
        CheckStatus::Ok => ("complete", "good", "OK"),
        CheckStatus::Warn => ("constrained", "ask", "Warning"),
        CheckStatus::Error => ("errored", "bad", "Failed"),
    };
    html! {
        li.row-item data-id=(check.name) {
            div {
                p.row-title { span class={ "mark tone-" (tone) } { (icon(shape)) span { (word) } } strong { (check.name) } }
                p { (with_code(&check.text)) }
                @if let Some(hint) = &check.hint { p.hint { "Next: " (with_code(hint)) } }
            }
        }
    }
}

fn worker(lock: &Lock) -> Markup {
    html! {
        li.row-item data-id=(lock.id) {
            div {
                p.row-title {
                    span.mark.tone-busy { (icon("processing")) span { (lock.purpose) } }
                    a href={ "/plans/" (lock.key) } { (short_id(&lock.key)) }
                }
                p.hint { "Process " (lock.pid) " on " (lock.host) ", since " (when(&lock.acquired_at)) }
            }
        }
    }
}
