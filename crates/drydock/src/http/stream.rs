//! The feed as server-sent events. Only stored events have ids, and heartbeats have none, so a client that reconnects
//! with the last id it received misses no event and receives none twice. An event is encoded only when the connection
//! can take it, so a client that does not read costs only its position in the feed, until `patient` disconnects it.

use std::fmt::Write;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use drydock_api::{Code, FeedEnd};
use drydock_domain::error_chain;
use drydock_engine::{EngineError, FeedBatch, FeedFilter, Follower};
use futures_util::stream;

use super::extract::{ApiError, refused};
use super::router::AppState;

pub(super) const MEDIA_TYPE: &str = "text/event-stream";
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// The interval of heartbeats.
pub(super) const HEARTBEAT_EVERY: Duration = Duration::from_secs(15);
pub(super) const HEARTBEAT: &str = ": heartbeat\n\n";
/// The first line of a stream: the delay in milliseconds before a client reconnects.
pub(super) const OPENING: &str = "retry: 1000\n\n";

/// Returns true if the request asks for a stream.
pub(super) fn is_wanted(headers: &HeaderMap) -> bool {
    let named = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut media =
        named.flat_map(|value| value.split(',')).map(|media| media.split(';').next().unwrap_or_default());
    media.any(|media| media.trim().eq_ignore_ascii_case(MEDIA_TYPE))
}

/// Returns the id that a reader saw last, as it was sent.
pub(super) fn last_id(headers: &HeaderMap) -> Option<&str> {
    headers.get(LAST_EVENT_ID).map(|value| value.to_str().unwrap_or_default().trim())
}

/// Returns the last id that the client received. It takes precedence over the query, which does not change when a
/// browser reconnects.
pub(super) fn last_seen(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(text) = last_id(headers) else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        let text = format!("Last-Event-ID is {text:?}, but the id of an event is a number");
        refused(Code::Unparsable, text, "send the `id` of the last event received, or no Last-Event-ID")
    })
}

/// Answers with the events after a position, then with each new event. If the position is beyond the end of the feed,
/// the client gets a message about that, and then new events.
pub(super) async fn answer(
    shared: &AppState,
    after: i64,
    interest: FeedFilter,
) -> Result<Response, ApiError> {
    // Read even if the position needs no check: after the stream has started, a store that is unreachable can no
    // longer be reported as an error.
    let newest = shared.engine.store().event_newest().await?;
    let end = (after > newest).then_some(newest);
    let follower = shared.engine.follow(end.unwrap_or(after), interest);
    let opening = match end {
        Some(ends_at) => format!("{OPENING}{}", beyond(FeedEnd { after, ends_at })),
        None => OPENING.to_owned(),
    };
    let flow = stream::unfold(SseState::Opening(opening, follower), |stage| async {
        match stage {
            SseState::Opening(opening, follower) => {
                Some((Ok(Bytes::from(opening)), SseState::Going(follower)))
            }
            SseState::Going(follower) => go(follower).await,
            SseState::Ended => None,
        }
    });
    Ok(response(Body::from_stream(flow)))
}

/// Returns a stream as a response.
pub(super) fn response(flow: Body) -> Response {
    // Keeps proxies from buffering, which would never pass a stream on.
    let headers = [
        (CONTENT_TYPE, MEDIA_TYPE),
        (CACHE_CONTROL, "no-store"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ];
    (headers, flow).into_response()
}

/// Returns the message that a position is beyond the end of the feed. It is not a stored event, so it has no id.
fn beyond(end: FeedEnd) -> String {
    let data = serde_json::to_string(&end).expect("two numbers are JSON");
    format!("event: {}\ndata: {data}\n\n", FeedEnd::EVENT)
}

enum SseState {
    Opening(String, Follower),
    Going(Follower),
    Ended,
}

async fn go(mut follower: Follower) -> Option<(Result<Bytes, EngineError>, SseState)> {
    match follower.next(HEARTBEAT_EVERY).await {
        Ok(FeedBatch::Events(events)) => {
            let mut text = String::new();
            for one in events {
                let (seq, kind) = (one.event.seq, &one.event.kind);
                write!(text, "id: {seq}\nevent: {kind}\ndata: {}\n\n", one.json)
                    .expect("writing to a String cannot fail");
            }
            Some((Ok(Bytes::from(text)), SseState::Going(follower)))
        }
        Ok(FeedBatch::Quiet) => {
            Some((Ok(Bytes::from_static(HEARTBEAT.as_bytes())), SseState::Going(follower)))
        }
        Ok(FeedBatch::Over) => None,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "an event stream was interrupted; the client can reconnect");
            Some((Err(error), SseState::Ended))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreLocation};
    use axum::http::{HeaderValue, Request};
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    #[test]
    fn a_stream_is_wanted_by_whoever_says_so() {
        for (accept, wanted) in [
            ("text/event-stream", true),
            ("application/json, Text/Event-Stream;q=0.5", true),
            ("application/json", false),
            ("*/*", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(is_wanted(&headers), wanted, "{accept}");
        }
        assert!(!is_wanted(&HeaderMap::new()));
    }

    /// Breaks if a client cannot distinguish a quiet feed from a dead server, or takes a heartbeat for a position in
    /// the feed.
    #[tokio::test(start_paused = true)]
    async fn a_quiet_stream_gives_signs_of_life_without_ids() {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let engine = crate::embedded::engine(&place, Config::default()).await.unwrap();
        let ask = Request::get("/api/v1/events").header(ACCEPT, MEDIA_TYPE).body(Body::empty()).unwrap();
        let mut body =
            crate::http::router(engine.clone(), "test", "test").oneshot(ask).await.unwrap().into_body();
        let mut frame = async || Some(body.frame().await?.unwrap().into_data().unwrap());
        assert_eq!(frame().await.unwrap(), OPENING);
        let began = tokio::time::Instant::now();
        for _ in 0..3 {
            assert_eq!(frame().await.unwrap(), HEARTBEAT);
        }
        assert!(began.elapsed() >= 3 * HEARTBEAT_EVERY, "{:?}", began.elapsed());
        engine.stopping().cancel();
        assert_eq!(frame().await, None, "a server that stops ends its streams");
    }
}
