//! The logs of a plan's runs: the list of logs, a part of one as lines of JSON, and one as server-sent events. The id
//! of such an event is an offset, so a client that reconnects continues where it stopped.

use std::fmt::Write;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use drydock_api as api;
use drydock_domain::{Plan, told};
use drydock_engine::{Engine, EngineError, LogFollower, LogNews, LogQuery, LogStart, RunState};
use futures_util::stream;
use serde_json::{Value, json};

use super::extract::{Answer, Path, Query, Refused, Sent, invalid};
use super::router::Shared;
use super::stream as events;

/// The maximum time that one request may wait for a line.
const WAIT_MAX_MS: u64 = 30_000;
/// How often a stream checks whether the first log of a plan exists.
const FIRST_LOG_EVERY: Duration = Duration::from_millis(250);

pub(super) async fn list(State(shared): State<Shared>, Path(id): Path) -> Answer<api::Logs> {
    let plan = shared.engine.plan(&id).await?;
    let logs = shared.engine.logs(&plan.id).await?.into_iter();
    let logs = logs.map(|log| api::Log { run: log.run, began_at: log.began_at, size: log.size }).collect();
    Ok(Sent(api::Logs { logs, next: None }))
}

pub(super) async fn read(
    State(shared): State<Shared>,
    headers: HeaderMap,
    Path(id): Path,
    Query(query): Query<api::LogQuery>,
) -> Result<Response, Refused> {
    let plan = shared.engine.plan(&id).await?;
    let start = start(query.offset.unwrap_or(0));
    if events::is_wanted(&headers) {
        if query.wait_ms.is_some() {
            let text = "a stream waits for as long as its reader wishes, so it has no wait_ms";
            return Err(invalid(text, "leave it out, or ask for application/x-ndjson"));
        }
        let start = events::last_seen(&headers)?.map_or(start, self::start);
        return follow(&shared, plan, query.run, start).await;
    }
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(WAIT_MAX_MS));
    let page = shared.engine.log_page(&plan, &LogQuery { run: query.run, start, wait }).await?;
    let over = page.state == RunState::Over;
    let head = [
        (CONTENT_TYPE.as_str(), api::LogPage::MEDIA_TYPE.to_owned()),
        (CACHE_CONTROL.as_str(), "no-store".to_owned()),
        (api::LogPage::NEXT_OFFSET, page.next.to_string()),
        (api::LogPage::RUN_OVER, over.to_string()),
    ];
    let run = page.run.map(|run| [(api::LogPage::RUN, run)]);
    Ok(match run {
        Some(run) => (head, run, page.bytes).into_response(),
        None => (head, page.bytes).into_response(),
    })
}

fn start(offset: i64) -> LogStart {
    match u64::try_from(offset) {
        Ok(offset) => LogStart::At(offset),
        Err(_) => LogStart::Last(offset.unsigned_abs()),
    }
}

enum Stage {
    Opening(Box<Stage>),
    /// No run of the plan has a log yet.
    Waiting(Engine, Box<Plan>, LogStart),
    Going(LogFollower),
    Ended,
}

async fn follow(
    shared: &Shared,
    plan: Plan,
    run: Option<String>,
    start: LogStart,
) -> Result<Response, Refused> {
    let first = match shared.engine.log_follow(&plan, run.as_deref(), start).await? {
        Some(follower) => Stage::Going(follower),
        None => Stage::Waiting(shared.engine.clone(), Box::new(plan), start),
    };
    let flow = stream::unfold(Stage::Opening(Box::new(first)), |stage| async {
        match stage {
            Stage::Opening(next) => Some((Ok(Bytes::from_static(events::OPENING.as_bytes())), *next)),
            Stage::Waiting(engine, plan, start) => await_first(engine, plan, start).await,
            Stage::Going(follower) => go(follower).await,
            Stage::Ended => None,
        }
    });
    Ok(events::response(Body::from_stream(flow)))
}

type Part = Option<(Result<Bytes, EngineError>, Stage)>;

/// Waits for the first log and sends heartbeats meanwhile.
async fn await_first(engine: Engine, plan: Box<Plan>, start: LogStart) -> Part {
    let began = tokio::time::Instant::now();
    while began.elapsed() < events::HEARTBEAT_EVERY {
        if engine.stopping().is_cancelled() {
            return None;
        }
        match engine.log_follow(&plan, None, start).await {
            Ok(Some(follower)) => return Box::pin(go(follower)).await,
            Ok(None) => tokio::time::sleep(FIRST_LOG_EVERY).await,
            Err(error) => return cut_off(error),
        }
    }
    Some((Ok(Bytes::from_static(events::HEARTBEAT.as_bytes())), Stage::Waiting(engine, plan, start)))
}

async fn go(mut follower: LogFollower) -> Part {
    let last = |kind: &str, follower: &LogFollower| {
        let data = json!({ "run": follower.run() });
        Some((Ok(Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))), Stage::Ended))
    };
    match follower.next(events::HEARTBEAT_EVERY).await {
        Ok(LogNews::Lines { bytes, next }) => {
            Some((Ok(Bytes::from(numbered(&bytes, next))), Stage::Going(follower)))
        }
        Ok(LogNews::Quiet) => {
            Some((Ok(Bytes::from_static(events::HEARTBEAT.as_bytes())), Stage::Going(follower)))
        }
        Ok(LogNews::Ended) => last("log.end", &follower),
        Ok(LogNews::Removed) => last("log.removed", &follower),
        Ok(LogNews::Stopping) => None,
        Err(error) => cut_off(error),
    }
}

fn cut_off(error: EngineError) -> Part {
    tracing::warn!(error = %told(&error), "a stream of a log is cut off; its reader comes back");
    Some((Err(error), Stage::Ended))
}

/// Returns each line as an event whose id is the offset after the line. The id of a gap mark is the offset after the
/// gap.
fn numbered(bytes: &[u8], next: u64) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    // Counted back from the known end, because a gap is longer than its mark.
    let mut ids = vec![0; lines.len()];
    let mut offset = next;
    for (id, line) in ids.iter_mut().zip(&lines).rev() {
        *id = offset;
        offset = offset.saturating_sub(dropped(line).unwrap_or(line.len() as u64));
    }
    let mut told = String::new();
    for (id, line) in ids.iter().zip(&lines) {
        write!(told, "id: {id}\nevent: log\ndata: {}\n\n", line.trim_end())
            .expect("writing to a String cannot fail");
    }
    told
}

/// Returns how many bytes are missing if the line is a gap mark.
fn dropped(line: &str) -> Option<u64> {
    // Output is a JSON string inside its line, so quotes in it are escaped and do not match.
    line.contains("\"dropped\":").then(|| serde_json::from_str::<Value>(line).ok()?["dropped"].as_u64())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if a client that reconnects with an id reads a line twice or misses one.
    #[test]
    fn the_id_of_a_line_is_the_offset_behind_it() {
        let (one, mark, two) = (
            "{\"text\":\"1\"}\n",
            "{\"text\":\"x\",\"dropped\":100}\n",
            "{\"text\":\"\\\"dropped\\\":5\"}\n",
        );
        let begin = 1000;
        let next = begin + one.len() as u64 + 100 + two.len() as u64;
        let told = numbered(format!("{one}{mark}{two}").as_bytes(), next);
        let ids: Vec<u64> =
            told.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids, [begin + one.len() as u64, begin + one.len() as u64 + 100, next]);
    }
}
