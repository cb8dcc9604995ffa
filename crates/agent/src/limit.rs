//! Parses rate limits from an agent's message, or from the data of a protocol error. Free text is not
//! searched: a wrong guess would make a plan wait for nothing, or run into the limit again.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::duration;

/// When a rate limit resets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resets {
    /// At this time, in milliseconds since 1970-01-01 UTC.
    At {
        /// The reset time.
        unix_ms: i64,
    },
    /// This long from now.
    After(Duration),
    /// The time is not known.
    Unknown,
}

/// Keys for the reset time, as written by agents and their services.
const AT: [&str; 5] = ["until", "reset_at", "resets_at", "resetAt", "resetsAt"];
const AFTER: [&str; 2] = ["retry_after", "retryAfter"];
/// Keys for the kind of error, and their values for a rate limit.
const WHAT: [&str; 4] = ["type", "code", "kind", "error"];
const LIMITED: [&str; 5] =
    ["rate_limited", "rate_limit", "rate_limit_error", "rate_limit_exceeded", "too_many_requests"];
const STATUS: [&str; 2] = ["status", "statusCode"];
/// HTTP status for a rate limit.
const TOO_MANY_REQUESTS: u64 = 429;

/// Parses the reset time from the fields of a message.
pub(crate) fn resets(until: Option<&Value>, retry_after: Option<&Value>) -> Result<Resets, String> {
    match (until, retry_after) {
        (Some(_), Some(_)) => Err("give one of `until` and `retry_after`, not both".to_owned()),
        (Some(until), None) => at(until),
        (None, Some(after)) => later(after),
        (None, None) => Ok(Resets::Unknown),
    }
}

/// Parses a rate limit from the data of an error or a response. Returns `None` if the data does not indicate
/// one.
pub(crate) fn told(data: &Value) -> Option<Resets> {
    let fields = data.as_object()?;
    let inner = ["error", "data", "rate_limit"].iter().filter_map(|key| fields.get(*key)).find_map(told);
    let when = find(fields, &AFTER).map(later).or_else(|| find(fields, &AT).map(at));
    // A reset time that cannot be parsed still indicates a limit.
    let when = when.map(|read| read.unwrap_or(Resets::Unknown));
    let named = WHAT.iter().filter_map(|key| fields.get(*key)?.as_str()).any(|what| LIMITED.contains(&what));
    let status = STATUS.iter().filter_map(|key| fields.get(*key)?.as_u64()).any(|it| it == TOO_MANY_REQUESTS);
    inner.or(when).or((named || status).then_some(Resets::Unknown))
}

fn find<'a>(fields: &'a Map<String, Value>, keys: &[&str]) -> Option<&'a Value> {
    keys.iter().find_map(|key| fields.get(*key)).filter(|value| !value.is_null())
}

/// Parses a point in time: RFC 3339, or seconds since 1970-01-01 UTC.
fn at(value: &Value) -> Result<Resets, String> {
    let wrong = || format!("{value} is not a time; write it as 2026-01-31T12:00:00Z, or as Unix seconds");
    let unix_ms = match value {
        Value::String(text) => text.trim().parse::<jiff::Timestamp>().map_err(|_| wrong())?.as_millisecond(),
        other => other.as_i64().and_then(|seconds| seconds.checked_mul(1000)).ok_or_else(wrong)?,
    };
    Ok(Resets::At { unix_ms })
}

/// Parses a duration: seconds as a number or as text, or text such as `5m`.
fn later(value: &Value) -> Result<Resets, String> {
    let wrong = || format!("{value} is not a duration; write seconds, or text such as \"5m\"");
    let seconds = |number: f64| Duration::try_from_secs_f64(number).map_err(|_| wrong());
    Ok(Resets::After(match value {
        Value::String(text) => match text.trim().parse::<f64>() {
            Ok(number) => seconds(number)?,
            Err(_) => duration::parse(text.trim()).map_err(|_| wrong())?,
        },
        other => seconds(other.as_f64().ok_or_else(wrong)?)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reset_is_read_however_it_is_written() {
        let second = Resets::After(Duration::from_secs(90));
        for (until, after, read) in [
            (Some(json!("2026-11-16T05:54:00Z")), None, Resets::At { unix_ms: 1_794_808_440_000 }),
            (Some(json!(1_794_808_440)), None, Resets::At { unix_ms: 1_794_808_440_000 }),
            (None, Some(json!(90)), second),
            (None, Some(json!("90")), second),
            (None, Some(json!("90s")), second),
            (None, None, Resets::Unknown),
        ] {
            assert_eq!(resets(until.as_ref(), after.as_ref()), Ok(read), "{until:?} {after:?}");
        }
        for (until, after) in [
            (Some(json!("soon")), None),
            (Some(json!([])), None),
            (None, Some(json!(-3))),
            (None, Some(json!("later"))),
            (Some(json!(1)), Some(json!(1))),
        ] {
            assert!(resets(until.as_ref(), after.as_ref()).is_err(), "{until:?} {after:?}");
        }
    }

    /// Breaks when data that indicates a limit is ignored, or data that only sounds like one is accepted.
    #[test]
    fn data_says_that_it_is_a_limit_or_it_is_none() {
        let minute = Some(Resets::After(Duration::from_secs(60)));
        for (data, read) in [
            (json!({"retry_after": 60}), minute),
            (json!({"retryAfter": 60, "type": "x"}), minute),
            (json!({"error": {"type": "rate_limit_error", "retry_after": 60}}), minute),
            (json!({"resetsAt": 2}), Some(Resets::At { unix_ms: 2000 })),
            (json!({"status": 429}), Some(Resets::Unknown)),
            (json!({"code": "rate_limit_exceeded"}), Some(Resets::Unknown)),
            (json!({"retry_after": "soon"}), Some(Resets::Unknown)),
            (json!({"status": 500}), None),
            (json!({"type": "overloaded", "message": "rate limit, try again in 5m"}), None),
            (json!("rate limited until tomorrow"), None),
            (json!({}), None),
        ] {
            assert_eq!(told(&data), read, "{data}");
        }
    }
}
