//! The feed: what happened, in order, without gaps.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Event {
    /// Its place in the feed.
    pub seq: i64,
    /// When it was committed.
    pub at: String,
    /// What happened, e.g. `plan.started`.
    pub kind: String,
    /// To which plan.
    pub plan: Option<String>,
    /// In which run.
    pub run: Option<String>,
    /// The plan's revision after it.
    pub revision: Option<i64>,
    /// What the kind does not say.
    #[serde(default)]
    pub data: Value,
}

/// Which events to read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Only those after this place in the feed.
    pub after: Option<i64>,
    /// How many at most.
    pub limit: Option<u32>,
    /// Only those of this plan.
    pub plan: Option<String>,
    /// Only those of this kind, or of a family such as `plan.*`.
    pub kind: Option<String>,
    /// How long to wait for one when there is none, in milliseconds.
    pub wait_ms: Option<u64>,
    /// Only so many of the newest of a plan, which `plan` names.
    pub newest: Option<u32>,
}

/// Of which plan to tell the last event; of any when none is named.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LastEventQuery {
    /// The plan.
    pub plan: Option<String>,
}

/// Where the feed, or that of a plan, ends now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct LastEvent {
    /// The place of the newest event; 0 when there is none.
    pub last: i64,
}

/// A page of events.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Events {
    /// The events, oldest first.
    pub events: Vec<Event>,
    /// The place to read on after, when there is more now.
    #[serde(default)]
    pub next: Option<i64>,
    /// The place of the newest event, when `after` is beyond it, as after a restored backup: read on after this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<i64>,
}

/// What a stream says first when it was asked for events behind one that is not there. It goes on from the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct FeedEnd {
    /// The place that was asked about.
    pub after: i64,
    /// The place of the newest event.
    pub ends_at: i64,
}

impl FeedEnd {
    /// What such a message is called in a stream; it has no id.
    pub const EVENT: &'static str = "feed.end";
}
