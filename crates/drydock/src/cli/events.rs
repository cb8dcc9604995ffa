//! `drydock events`, `plan events` and `plan watch`. The last two read the same feed for one plan. With `--follow`
//! each event is printed as it arrives, as a line of text or JSON; the envelope is the last line.

use std::time::Duration;

use clap::{Args, value_parser};
use drydock_api::{ClientError, Event, EventQuery, EventStream, Events, FeedEnd, Problem, StreamItem};
use serde_json::json;

use super::report::{CliResult, Level, Report};
use super::screen::StdoutState;
use super::session::Invocation;
use crate::render;

/// Delay between attempts to reconnect to a server, and the maximum number of attempts.
const COME_BACK_AFTER: Duration = Duration::from_secs(1);
const COME_BACK_MAX: u32 = 60;
const PAUSE: Duration = Duration::from_millis(50);

/// Arguments of `drydock events` and `plan events`.
#[derive(Debug, Args)]
pub(crate) struct EventsArgs {
    /// Only events after this sequence number
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) after: i64,
    /// Maximum number of events
    #[arg(long, value_name = "N", conflicts_with = "follow", value_parser = value_parser!(u32).range(1..))]
    pub(crate) limit: Option<u32>,
    /// Only events of this kind, or of a family such as plan.*
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
    /// Print new events until interrupted
    #[arg(long)]
    pub(crate) follow: bool,
}

pub(crate) async fn run(session: &Invocation, args: EventsArgs) -> CliResult {
    of(session, None, args).await
}

/// Reads the feed of one plan or of all plans.
pub(crate) async fn of(session: &Invocation, plan: Option<String>, args: EventsArgs) -> CliResult {
    if args.follow {
        return stream(session, plan, args).await;
    }
    let (after, limit, kind) = (Some(args.after), args.limit, args.kind);
    let query = EventQuery { after, limit, plan, kind, ..EventQuery::default() };
    let events = session.client().events(&query).await?;
    let text: String = events.events.iter().map(render::event::line).collect();
    let (next, beyond) = (events.next, end_of(&events, args.after));
    let report = Report::new(events, text).or_say("no events").or_more(next);
    Ok(match beyond {
        Some(end) => {
            report.note(Level::Warn, format!("{}; continue with --after {}", ended(end), end.ends_at))
        }
        None => report,
    })
}

/// Returns the end of the feed if the requested position is beyond it.
pub(crate) fn end_of(page: &Events, after: i64) -> Option<FeedEnd> {
    page.ends_at.map(|ends_at| FeedEnd { after, ends_at })
}

/// Returns the message that a position is beyond the end of the feed.
pub(crate) fn ended(end: FeedEnd) -> String {
    let FeedEnd { after, ends_at } = end;
    format!("the feed ends at event {ends_at}, before {after} (was the store restored from a backup?)")
}

async fn stream(session: &Invocation, plan: Option<String>, args: EventsArgs) -> CliResult {
    let mut query = EventQuery { after: Some(args.after), plan, kind: args.kind, ..EventQuery::default() };
    let mut stream = session.client().events_follow(&query).await?;
    loop {
        let after = query.after;
        match stream.next().await {
            Ok(Some(StreamItem::End(end))) => {
                session.screen().info(&format!("{}; continuing from its end", ended(end)));
                query.after = Some(end.ends_at);
            }
            Ok(Some(StreamItem::Event(event))) => {
                query.after = Some(event.seq);
                if print(session, &[event])? == StdoutState::Gone {
                    return Ok(Report::new(json!({ "after": query.after }), ""));
                }
            }
            Ok(None) | Err(ClientError::Unreachable(_)) => {
                session
                    .screen()
                    .info(&format!("lost the feed after event {}; reconnecting", after.unwrap_or(0)));
                stream = again(session, &query).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Reconnects after a broken connection and continues after the last event received, also if the server was
/// restarted.
async fn again(session: &Invocation, query: &EventQuery) -> Result<EventStream, Box<Problem>> {
    let mut tries = 1;
    loop {
        tokio::time::sleep(COME_BACK_AFTER).await;
        match session.client().events_follow(query).await {
            Ok(stream) => return Ok(stream),
            Err(ClientError::Unreachable(_)) if tries < COME_BACK_MAX => tries += 1,
            Err(error) => return Err(error.into()),
        }
    }
}

/// Yields to the other tasks of this process between two reads of the feed, and sleeps if the last read was empty.
pub(crate) async fn breathe(seen: &[Event]) {
    if seen.is_empty() {
        tokio::time::sleep(PAUSE).await;
    } else {
        tokio::task::yield_now().await;
    }
}

/// Prints events as they arrive.
pub(crate) fn print(session: &Invocation, events: &[Event]) -> Result<StdoutState, Box<Problem>> {
    let screen = session.screen();
    for event in events {
        let reader = if screen.is_json() {
            screen.print_exact(&format!("{}\n", json!({ "event": event })))?
        } else {
            screen.print(&render::event::lines(event))?
        };
        if reader == StdoutState::Gone {
            return Ok(StdoutState::Gone);
        }
    }
    Ok(StdoutState::Listening)
}
