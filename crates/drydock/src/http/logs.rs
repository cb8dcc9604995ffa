//! The logs of a plan's runs: the list of logs, a part of one as lines of JSON, and one as server-sent events. The id
//! of such an event is an offset, so a client that reconnects continues where it stopped.

use std::fmt::Write;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use drydock_api::{self as api, Code};
use drydock_domain::{Plan, PlanId, RunId, error_chain};
use drydock_engine::{Engine, EngineError, FirstLog, LogFollower, LogNews, LogRange, LogStart, RunState};
use futures_util::stream;
use serde_json::{Value, json};

use super::extract::{ApiError, ApiResult, JsonResponse, Path, Query, invalid, refused};
use super::router::AppState;
use super::stream as events;

/// The maximum time that one request may wait for a line.
const WAIT_MAX_MS: u64 = 30_000;

pub(super) async fn list(State(shared): State<AppState>, Path(id): Path) -> ApiResult<api::Logs> {
    let plan = shared.engine.plan(&id).await?;
    let logs = shared.engine.logs(&plan.id).await?.into_iter();
    let logs = logs.map(|log| api::Log { run: log.run, began_at: log.began_at, size: log.size }).collect();
    Ok(JsonResponse(api::Logs { logs, next: None }))
}

pub(super) async fn read(
    State(shared): State<AppState>,
    headers: HeaderMap,
    Path(id): Path,
    Query(query): Query<api::LogQuery>,
) -> Result<Response, ApiError> {
    let plan = shared.engine.plan(&id).await?;
    let start = start(query.offset.unwrap_or(0));
    if events::is_wanted(&headers) {
        if query.wait_ms.is_some() {
            let text = "a stream does not accept wait_ms";
            return Err(invalid(text, "remove it, or request application/x-ndjson"));
        }
        let (named, start) = match events::last_id(&headers) {
            Some(id) => LastSeenId::read(id, query.run)?.place(),
            None => (query.run.map_or(RunSource::Nowhere, RunSource::ByAddress), start),
        };
        return follow(&shared, plan, named, start).await;
    }
    let wait = Duration::from_millis(query.wait_ms.unwrap_or(0).min(WAIT_MAX_MS));
    let page = shared.engine.log_page(&plan, &LogRange { run: query.run, start, wait }).await?;
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

/// The run of a stream, and where it was named: the ids of its lines name it unless the address does.
#[derive(Debug)]
enum RunSource {
    ByAddress(String),
    ById(String),
    Nowhere,
}

impl RunSource {
    fn run(&self) -> Option<&str> {
        match self {
            Self::ByAddress(run) | Self::ById(run) => Some(run),
            Self::Nowhere => None,
        }
    }

    fn ids(&self) -> Ids {
        match self {
            Self::ByAddress(_) => Ids::Offsets,
            Self::ById(_) | Self::Nowhere => Ids::WithRun,
        }
    }
}

/// The form of the ids of a stream.
#[derive(Debug, Clone, Copy)]
enum Ids {
    Offsets,
    WithRun,
}

/// The id that a reader saw last.
struct LastSeenId {
    named: RunSource,
    offset: i64,
}

impl LastSeenId {
    /// Reads `OFFSET`, which is in the run of the address, or `OFFSET@RUN`.
    fn read(id: &str, address: Option<String>) -> Result<Self, ApiError> {
        let unreadable = || {
            let text = format!("Last-Event-ID is {id:?}, but the id of a line is OFFSET or OFFSET@RUN");
            refused(Code::Unparsable, text, "send the `id` of the last event received, or no Last-Event-ID")
        };
        let (offset, run) = match id.split_once('@') {
            Some((offset, run)) => (offset, Some(run)),
            None => (id, None),
        };
        let offset = offset.parse().map_err(|_| unreadable())?;
        let named = match (run, address) {
            (Some(run), _) if run.parse::<RunId>().is_err() => return Err(unreadable()),
            (Some(run), Some(address)) if !run.starts_with(&address) => {
                let text = format!("Last-Event-ID is in the log of {run}, but the URL names {address}");
                return Err(refused(
                    Code::Unparsable,
                    text,
                    "use the same run in both, or remove one of them",
                ));
            }
            (Some(run), None) => RunSource::ById(run.to_owned()),
            (_, Some(address)) => RunSource::ByAddress(address),
            (None, None) => RunSource::Nowhere,
        };
        Ok(Self { named, offset })
    }

    fn place(self) -> (RunSource, LogStart) {
        (self.named, start(self.offset))
    }
}

enum LogStreamState {
    Opening(Box<LogStreamState>),
    /// No run of the plan has a log yet.
    Waiting(Engine, PlanId, LogStart),
    Going(LogFollower, Ids),
    Ended,
}

async fn follow(
    shared: &AppState,
    plan: Plan,
    named: RunSource,
    start: LogStart,
) -> Result<Response, ApiError> {
    let first = match shared.engine.log_follow(&plan, named.run(), start).await? {
        Some(follower) => LogStreamState::Going(follower, named.ids()),
        None => LogStreamState::Waiting(shared.engine.clone(), plan.id, start),
    };
    let flow = stream::unfold(LogStreamState::Opening(Box::new(first)), |stage| async {
        match stage {
            LogStreamState::Opening(next) => {
                Some((Ok(Bytes::from_static(events::OPENING.as_bytes())), *next))
            }
            LogStreamState::Waiting(engine, plan, start) => await_first(engine, plan, start).await,
            LogStreamState::Going(follower, ids) => go(follower, ids).await,
            LogStreamState::Ended => None,
        }
    });
    Ok(events::response(Body::from_stream(flow)))
}

type LogStreamStep = Option<(Result<Bytes, EngineError>, LogStreamState)>;

/// Waits for the first log, with heartbeats.
async fn await_first(engine: Engine, plan: PlanId, start: LogStart) -> LogStreamStep {
    match engine.log_first(&plan, start, events::HEARTBEAT_EVERY).await {
        Ok(FirstLog::Found(follower)) => go(follower, Ids::WithRun).await,
        Ok(FirstLog::Never) => last("log.end", None),
        Ok(FirstLog::Stopping) => None,
        Ok(FirstLog::NotYet) => {
            let heartbeat = Bytes::from_static(events::HEARTBEAT.as_bytes());
            Some((Ok(heartbeat), LogStreamState::Waiting(engine, plan, start)))
        }
        Err(error) => cut_off(error),
    }
}

async fn go(mut follower: LogFollower, ids: Ids) -> LogStreamStep {
    match follower.next(events::HEARTBEAT_EVERY).await {
        Ok(LogNews::Lines { bytes, next }) => {
            let suffix = match ids {
                Ids::Offsets => String::new(),
                Ids::WithRun => format!("@{}", follower.run()),
            };
            Some((Ok(Bytes::from(numbered(&bytes, next, &suffix))), LogStreamState::Going(follower, ids)))
        }
        Ok(LogNews::Quiet) => {
            Some((Ok(Bytes::from_static(events::HEARTBEAT.as_bytes())), LogStreamState::Going(follower, ids)))
        }
        Ok(LogNews::Ended) => last("log.end", Some(follower.run())),
        Ok(LogNews::Removed) => last("log.removed", Some(follower.run())),
        Ok(LogNews::Stopping) => None,
        Err(error) => cut_off(error),
    }
}

/// Returns the last event of a stream.
fn last(kind: &str, run: Option<&str>) -> LogStreamStep {
    let data = json!({ "run": run });
    Some((Ok(Bytes::from(format!("event: {kind}\ndata: {data}\n\n"))), LogStreamState::Ended))
}

fn cut_off(error: EngineError) -> LogStreamStep {
    tracing::warn!(error = %error_chain(&error), "a log stream was interrupted; the client can reconnect");
    Some((Err(error), LogStreamState::Ended))
}

/// Returns each line as an event whose id is the offset after the line and this suffix. The id of a gap mark is the
/// offset after the gap.
fn numbered(bytes: &[u8], next: u64, suffix: &str) -> String {
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
        write!(told, "id: {id}{suffix}\nevent: log\ndata: {}\n\n", line.trim_end())
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
        let told = numbered(format!("{one}{mark}{two}").as_bytes(), next, "");
        let ids: Vec<u64> =
            told.lines().filter_map(|line| line.strip_prefix("id: ")).map(|id| id.parse().unwrap()).collect();
        assert_eq!(ids, [begin + one.len() as u64, begin + one.len() as u64 + 100, next]);
    }
}
