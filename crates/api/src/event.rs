//! The feed: all events in order, without gaps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An event of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Event {
    /// The position in the feed.
    pub seq: i64,
    /// When it was committed.
    pub at: String,
    /// The kind, e.g. `plan.started`.
    pub kind: String,
    /// The plan it concerns.
    pub plan: Option<String>,
    /// The run it concerns.
    pub run: Option<String>,
    /// The plan's revision after it.
    pub revision: Option<i64>,
    /// Details that depend on the kind.
    #[serde(default)]
    pub data: Value,
}

/// Filters the feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only events after this position.
    pub after: Option<i64>,
    /// The maximum number of events.
    pub limit: Option<u32>,
    /// Only events of this plan.
    pub plan: Option<String>,
    /// Only events of this kind, or of a family such as `plan.*`.
    pub kind: Option<String>,
    /// How long to wait for an event, in milliseconds.
    pub wait_ms: Option<u64>,
    /// Only this many of the newest events of a plan; requires `plan`.
    pub newest: Option<u32>,
}

/// Selects the feed whose end is requested: that of a plan, or the whole feed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastEventQuery {
    /// The plan's id.
    pub plan: Option<String>,
}

/// The end of the feed, or of the feed of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastEvent {
    /// The position of the newest event; 0 if there is none.
    pub last: i64,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Events {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The position to continue after; null if there is no more now.
    #[serde(default)]
    pub next: Option<i64>,
    /// The position of the newest event, if `after` is beyond it, e.g. after a restored backup of the store. Continue
    /// after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
}

/// The first message of a stream if the requested position is beyond the end of the feed. The stream continues from
/// the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FeedEnd {
    /// The requested position.
    pub after: i64,
    /// The position of the newest event.
    pub ends_at: i64,
}

impl FeedEnd {
    /// The name of this message in a stream. It has no id.
    pub const EVENT: &'static str = "feed.end";
}
