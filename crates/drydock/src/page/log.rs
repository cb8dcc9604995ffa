//! The output of the agents, validations and reviewers of a run, as in a terminal. The page has the newest part, and
//! its script adds new lines. Plans of earlier versions have their output in events.

use drydock_api::{
    Client, ClientError, Code, Event, EventQuery, Log, LogLine, LogPage, LogQuery, Plan, State,
};
use maud::{Markup, html};
use serde::Deserialize;

use super::ask::{PageClient, PagePath, PageQuery};
use super::plan::{EVENTS_MAX, Tab, head};
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{escaped, short_id, title, when};
use crate::render::style::plain;

/// The maximum number of lines shown for a plan of an earlier version.
const LINES_MAX: usize = 5_000;
/// How much of the end of a log is shown, in bytes.
const TAIL_MAX: i64 = 512 * 1024;

/// The query of the view.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Which {
    run: Option<String>,
}

pub(super) async fn show(
    ask: PageClient,
    PagePath(id): PagePath<String>,
    PageQuery(which): PageQuery<Which>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let client = ask.client();
    let plan = client.plan(&id).await?;
    let query = LogQuery { run: which.run.clone(), offset: Some(-TAIL_MAX), wait_ms: None };
    let main = match client.plan_log(&plan.id, &query).await {
        Ok(page) => match &page.run {
            Some(run) => {
                let logs = client.plan_logs(&plan.id).await?.logs;
                html! { (head(&plan, Tab::Log)) (of_run(&plan, run, &logs, &page)) }
            }
            None => {
                let (none, hint) = match plan.state {
                    State::Cancelled | State::Applied => ("No output", "No agent of this plan has run."),
                    _ => ("No output yet", "The output of the agent appears here while it works."),
                };
                html! { (head(&plan, Tab::Log)) (of_events(&client, &plan, none, hint).await?) }
            }
        },
        // The log may be on another machine.
        Err(ClientError::Problem(problem)) if problem.code == Code::NotFound => {
            let hint = problem.hint.as_deref().unwrap_or_default();
            html! { (head(&plan, Tab::Log)) (of_events(&client, &plan, &problem.detail, hint).await?) }
        }
        Err(error) => return Err(error.into()),
    };
    Ok(document(&frame, &format!("Log of {}", title(&plan)), NavItem::Plans, RefreshOn::Plan(&plan.id), main))
}

/// Shows the output that a plan of an earlier version has in its events, or that there is none and why.
async fn of_events(client: &Client<'_>, plan: &Plan, none: &str, hint: &str) -> Result<Markup, PageError> {
    let query = EventQuery { plan: Some(plan.id.clone()), newest: Some(EVENTS_MAX), ..EventQuery::default() };
    let events = client.events(&query).await?.events;
    let written = recent(&events);
    Ok(html! {
        @if written.is_empty() {
            div.empty { h2 { (none) } p { (hint) } }
        } @else {
            div.log role="region" aria-label="Output of the agents" tabindex="0" data-tail {
                @for event in written { (block(event)) }
            }
        }
    })
}

/// Shows the log of a run, with links to the logs of the other runs.
fn of_run(plan: &Plan, run: &str, logs: &[Log], page: &LogPage) -> Markup {
    let earlier =
        page.lines.first().is_some_and(|line| line.dropped.is_none()) && page.next > TAIL_MAX.unsigned_abs();
    html! {
        @if logs.len() > 1 {
            nav.runs aria-label="Runs" {
                @for log in logs {
                    a href={ "/plans/" (plan.id) "/log?run=" (escaped(&log.run)) } aria-current=[(log.run == run).then_some("page")] {
                        code { (short_id(&log.run)) } " " (when(&log.began_at))
                    }
                }
            }
        }
        @if earlier { p.hint { "Earlier lines: " code { "drydock plan log " (plan.id) " --run " (run) } } }
        div.log role="region" aria-label="Output" tabindex="0" data-tail data-keep data-id={ "log-" (run) }
            data-log={ "/api/v1/plans/" (plan.id) "/log?run=" (escaped(run)) } data-offset=(page.next) data-over=[page.over.then_some("")] {
            @for lines in page.lines.chunk_by(|one, other| one.stream == other.stream) { (part(lines)) }
        }
    }
}

/// Shows lines of one stream. The script renders new lines the same way.
fn part(lines: &[LogLine]) -> Markup {
    let Some(first) = lines.first() else { return html! {} };
    html! {
        div.log-part data-stream=(first.stream) {
            span.log-stream { (first.stream) }
            pre { @for line in lines { (plain(&line.text)) "\n" } }
        }
    }
}

/// Returns the newest events with output, in order, up to the limit.
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

    /// Breaks if an agent with endless output makes the page grow without bound.
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
