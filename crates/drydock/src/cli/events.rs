//! `drydock events`, and `plan events` and `plan watch`, which are the same feed of one plan. With `--follow` each
//! event is printed as it comes: a line of text, or a line of JSON, and the envelope as the last line.

use std::time::Duration;

use clap::{Args, value_parser};
use drydock_api::{ClientError, Event, EventQuery, EventStream, Events, FeedEnd, Heard, Problem};
use serde_json::json;

use super::report::{Level, Outcome, Report};
use super::screen::Reader;
use super::session::Session;
use crate::render;

/// How long to wait before coming back to a server that went away, and how often.
const COME_BACK_AFTER: Duration = Duration::from_secs(1);
const COME_BACK_MAX: u32 = 60;
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
    /// Only those of this kind, or of a family such as plan.*
    #[arg(long, value_name = "KIND")]
    pub(crate) kind: Option<String>,
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
            report.note(Level::Warn, format!("{}; --after {} reads on from its end", ended(end), end.ends_at))
        }
        None => report,
    })
}

/// Returns where the feed ends, when the place that was asked about is beyond that.
pub(crate) fn end_of(page: &Events, after: i64) -> Option<FeedEnd> {
    page.ends_at.map(|ends_at| FeedEnd { after, ends_at })
}

/// Says that a place is beyond the end of the feed.
pub(crate) fn ended(end: FeedEnd) -> String {
    let FeedEnd { after, ends_at } = end;
    format!("the feed ends at event {ends_at}, before {after}, as that of a restored backup does")
}

async fn stream(session: &Session, plan: Option<String>, args: EventsArgs) -> Outcome {
    let mut query = EventQuery { after: Some(args.after), plan, kind: args.kind, ..EventQuery::default() };
    let mut stream = session.client().events_follow(&query).await?;
    loop {
        let after = query.after;
        match stream.next().await {
            Ok(Some(Heard::End(end))) => {
                session.screen().tell(&format!("{}; going on from its end", ended(end)));
                query.after = Some(end.ends_at);
            }
            Ok(Some(Heard::Event(event))) => {
                query.after = Some(event.seq);
                if print(session, &[event])? == Reader::Gone {
                    return Ok(Report::new(json!({ "after": query.after }), ""));
                }
            }
            Ok(None) | Err(ClientError::Unreachable(_)) => {
                session
                    .screen()
                    .tell(&format!("the feed broke off after event {}; trying again", after.unwrap_or(0)));
                stream = again(session, &query).await?;
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Comes back after a break: a server that is started anew goes on where the last event was.
async fn again(session: &Session, query: &EventQuery) -> Result<EventStream, Box<Problem>> {
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
            screen.print(&render::event::lines(event))?
        };
        if reader == Reader::Gone {
            return Ok(Reader::Gone);
        }
    }
    Ok(Reader::Listening)
}
