//! What the agents of a plan wrote out, newest runs last, as a terminal would have it.

use drydock_api::{Event, EventQuery};
use maud::{Markup, html};

use super::ask::{Ask, Named};
use super::plan::{EVENTS_MAX, Tab, head};
use super::shell::{Frame, Html, Place, Watch, document};
use super::trouble::Trouble;
use super::words::{short_id, title, when};
use crate::render::style::plain;

/// How many of the newest lines are shown.
const LINES_MAX: usize = 5_000;

pub(super) async fn show(ask: Ask, Named(id): Named<String>) -> Result<Html, Trouble> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let plan = client.plan(&id).await?;
    let query = EventQuery { plan: Some(plan.id.clone()), newest: Some(EVENTS_MAX), ..EventQuery::default() };
    let events = client.events(&query).await?.events;
    let written: Vec<_> = recent(&events);
    let main = html! {
        (head(&plan, Tab::Log))
        @if written.is_empty() {
            div.empty {
                h2 { "No agent has written anything yet" }
                p { "What an agent prints appears here while it works." }
            }
        } @else {
            div.log role="region" aria-label="What the agents wrote" tabindex="0" data-tail {
                @for event in written { (block(event)) }
            }
        }
    };
    Ok(document(&frame, &format!("Log of {}", title(&plan)), Place::Plans, Watch::Plan(&plan.id), main))
}

/// Returns the newest events with output, as many as fit, in order.
fn recent(events: &[Event]) -> Vec<&Event> {
    let mut lines = 0;
    let mut newest: Vec<_> = events
        .iter()
        .rev()
        .filter(|event| event.kind == "agent.output")
        .take_while(|event| {
            lines += event.data["lines"].as_array().map_or(0, Vec::len);
            lines <= LINES_MAX
        })
        .collect();
    newest.reverse();
    newest
}

fn block(event: &Event) -> Markup {
    let agent = event.data["agent"].as_str().unwrap_or("agent");
    let lines = event.data["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    html! {
        div.log-block data-id=(event.seq) {
            p.log-head { strong { (agent) } " " @if let Some(run) = &event.run { code { (short_id(run)) } " " } (when(&event.at)) }
            pre { @for line in lines { (plain(line.as_str().unwrap_or_default())) "\n" } }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Breaks when an agent that writes without end makes the page grow without end.
    #[test]
    fn only_the_newest_lines_are_shown() {
        let event = |seq: i64, count: usize| Event {
            seq,
            at: String::new(),
            kind: "agent.output".into(),
            plan: None,
            run: None,
            revision: None,
            data: json!({"lines": vec!["x"; count]}),
        };
        let events = [event(1, LINES_MAX), event(2, 10), event(3, LINES_MAX - 10)];
        let shown: Vec<_> = recent(&events).iter().map(|event| event.seq).collect();
        assert_eq!(shown, [2, 3]);
    }
}
