//! The history of a plan, newest first, each event as a sentence. Agent output is in the log instead.

use drydock_api::{Event, LogLine};
use drydock_domain::counted;
use maud::{Markup, html};

use super::mark::icon;
use super::words::when;
use crate::render::event::sentence;
use crate::render::style::{plain, short};

/// How many characters of the last line of output are shown.
const PRINTED_CHARS_MAX: usize = 160;
/// How many events are shown at first.
const SHOWN_MAX: usize = 200;

/// Returns the timeline.
pub(super) fn section(events: &[Event]) -> Markup {
    let told: Vec<_> = events.iter().rev().filter(|event| event.kind != "agent.output").collect();
    html! {
        section aria-labelledby="timeline" {
            h2 id="timeline" { "Timeline" }
            ol.timeline {
                @for alike in told[..told.len().min(SHOWN_MAX)].chunk_by(|one, other| goes_with(one, other)) { (group(alike)) }
            }
            @if told.len() > SHOWN_MAX {
                p.hint { "Earlier events: " code { "drydock plan events " (events.first().and_then(|one| one.plan.as_deref()).unwrap_or_default()) } }
            }
        }
    }
}

/// Returns the latest message, action or line of output of an agent.
pub(super) fn latest(events: &[Event], printed: Option<&LogLine>) -> Option<String> {
    let event = events.iter().rev().find(|event| event.kind.starts_with("agent."));
    match (event, printed) {
        (Some(event), Some(line)) if line.at < event.at => Some(sentence(event)),
        (_, Some(line)) => Some(plain(&short(&line.text, PRINTED_CHARS_MAX)).into_owned()),
        (event, None) => event.map(sentence),
    }
}

/// Returns true if two events are steps of the same activity.
fn goes_with(one: &Event, other: &Event) -> bool {
    let is_step =
        |event: &Event| matches!(event.kind.as_str(), "agent.progress" | "agent.tool" | "agent.plan");
    is_step(one) && is_step(other) && one.run == other.run
}

/// Returns the newest event of a group, with the others collapsed behind it.
fn group(alike: &[&Event]) -> Markup {
    let [newest, earlier @ ..] = alike else { return html! {} };
    let [.., first] = alike else { return html! {} };
    html! {
        (item(newest))
        @if let [one] = earlier { (item(one)) }
        @else if !earlier.is_empty() {
            li.earlier data-id={ "before-" (first.seq) } {
                details { summary { (counted(earlier.len(), "step")) " before" } ol { @for event in earlier { (item(event)) } } }
            }
        }
    }
}

fn item(event: &Event) -> Markup {
    let (shape, tone) = shape(&event.kind);
    html! {
        li data-id=(event.seq) {
            span class={ "event tone-" (tone) } { (icon(shape)) }
            span.event-text { (sentence(event)) " " span.event-kind { (event.kind) } }
            (when(&event.at))
        }
    }
}

fn shape(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "plan.errored" | "validation.failed" | "review.refused" => ("errored", "bad"),
        "plan.constrained" | "invariant.blocked" | "alert" => ("constrained", "bad"),
        "plan.completed" | "validation.passed" | "review.acknowledged" => ("complete", "good"),
        "plan.applied" => ("applied", "good"),
        "plan.cancelled" => ("cancelled", "faint"),
        "plan.started" => ("processing", "busy"),
        "plan.waiting" | "decision.opened" => ("waiting", "ask"),
        _ => match kind.split_once('.').map_or(kind, |(family, _)| family) {
            "agent" => ("agent", "still"),
            "decision" => ("waiting", "still"),
            "changeset" => ("file", "still"),
            "invariant" | "validation" => ("rule", "still"),
            "review" => ("eye", "still"),
            "sync" => ("sync", "still"),
            "apply" => ("applied", "still"),
            "lock" => ("lock", "still"),
            _ => ("dot", "still"),
        },
    }
}
