//! `drydock events`, and `plan events` and `plan watch`, which are the same feed of one plan. With `--follow` each
//! event is printed as it comes: a line of text, or a line of JSON, and the envelope as the last line.

use std::time::Duration;

use clap::{Args, value_parser};
use drydock_api::{Event, EventQuery, Events, Problem};
use serde_json::json;

use super::report::{Outcome, Report};
use super::screen::Reader;
use super::session::Session;
use crate::render;

const WAIT_MS: u64 = 10_000;
const PAGE: u32 = 200;
const PAUSE: Duration = Duration::from_millis(50);

/// Reads the feed.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only those after this place in the feed
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: i64,
    /// How many at most
    #[arg(long, value_name = "N", conflicts_with = "follow", value_parser = value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Go on with what comes, until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
}

pub(crate) async fn run(session: &Session, args: EventsArgs) -> Outcome {
    of(session, None, args).await
}

/// Reads the feed, of one plan or of all.
pub(crate) async fn of(session: &Session, plan: Option<String>, args: EventsArgs) -> Outcome {
    if args.follow {
        return stream(session, plan, args.after).await;
    }
    let query = EventQuery { after: Some(args.after), limit: args.limit, plan, wait_ms: None };
    let events = session.client().events(&query).await?;
    let text: String = events.events.iter().map(render::event::line).collect();
    let next = events.next;
    Ok(Report::new(events, text).or_say("no events").or_more(next))
}

async fn stream(session: &Session, plan: Option<String>, mut after: i64) -> Outcome {
    loop {
        let query =
            EventQuery { after: Some(after), limit: Some(PAGE), plan: plan.clone(), wait_ms: Some(WAIT_MS) };
        let Events { events, .. } = session.client().events(&query).await?;
        after = events.last().map_or(after, |event| event.seq);
        breathe(&events).await;
        if print(session, &events)? == Reader::Gone {
            return Ok(Report::new(json!({ "after": after }), ""));
        }
    }
}

/// Lets everything else in this process have a turn between two looks at the feed, and more than that when there was
/// nothing to see.
pub(crate) async fn breathe(seen: &[Event]) {
    if seen.is_empty() {
        tokio::time::sleep(PAUSE).await;
    } else {
        tokio::task::yield_now().await;
    }
}

/// Prints events as they come.
pub(crate) fn print(session: &Session, events: &[Event]) -> Result<Reader, Box<Problem>> {
    let screen = session.screen();
    for event in events {
        let reader = if screen.is_json() {
            screen.print_exact(&format!("{}\n", json!({ "event": event })))?
        } else {
            screen.print(&render::event::line(event))?
        };
        if reader == Reader::Gone {
            return Ok(Reader::Gone);
        }
    }
    Ok(Reader::Listening)
}
