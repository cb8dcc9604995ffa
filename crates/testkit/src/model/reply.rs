//! Responses to the agent: one JSON value, or a stream of server-sent events.

use serde_json::Value;

/// A response in the requested form.
#[derive(Debug)]
pub(super) enum ModelReply {
    Whole(Value),
    Streamed(Vec<SseEvent>),
    Refused(&'static str, String),
    Failed(u16),
}

/// One server-sent event, with a name if the API uses names.
#[derive(Debug)]
pub(super) struct SseEvent {
    name: Option<String>,
    payload: String,
}

impl SseEvent {
    /// Returns an event without a name.
    pub(super) fn plain(payload: impl ToString) -> Self {
        Self { name: None, payload: payload.to_string() }
    }

    /// Returns an event that is named by the `type` of its payload.
    pub(super) fn typed(payload: &Value) -> Self {
        Self { name: payload["type"].as_str().map(str::to_owned), payload: payload.to_string() }
    }
}

impl ModelReply {
    /// Returns the response as HTTP. The connection closes after it, so a stream needs no length.
    pub(super) fn http(&self) -> String {
        let (status, kind, body) = match self {
            Self::Failed(status) => {
                let (text, kind, message) = failure(*status);
                let error = serde_json::json!({ "type": kind, "message": message, "code": kind });
                let value = serde_json::json!({ "type": "error", "error": error });
                (text, "application/json", value.to_string())
            }
            Self::Whole(value) => ("200 OK", "application/json", value.to_string()),
            Self::Streamed(events) => ("200 OK", "text/event-stream", events.iter().map(shown).collect()),
            Self::Refused(status, why) => {
                let value =
                    serde_json::json!({ "error": { "type": "invalid_request_error", "message": why } });
                (*status, "application/json", value.to_string())
            }
        };
        format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
    }
}

/// Returns the status line, the type and the message of an error, as the services write them.
fn failure(status: u16) -> (&'static str, &'static str, &'static str) {
    match status {
        401 => ("401 Unauthorized", "authentication_error", "invalid x-api-key"),
        429 => ("429 Too Many Requests", "rate_limit_error", "rate limit reached"),
        _ => ("500 Internal Server Error", "api_error", "internal error"),
    }
}

fn shown(event: &SseEvent) -> String {
    let name = event.name.as_ref().map(|name| format!("event: {name}\n")).unwrap_or_default();
    format!("{name}data: {}\n\n", event.payload)
}
