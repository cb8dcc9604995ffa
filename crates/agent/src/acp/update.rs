//! Converts an agent's session updates into signals of limited size.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, Cost, Plan, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::account::Account;
use crate::secret::Secrets;
use crate::signal::{Activity, Changed, TodoItem};
use crate::task::SessionUsage;

/// Maximum number of steps, paths and changed files in one signal.
const NAMED_MAX: usize = 20;
/// Maximum length of a title or a step.
const TITLE_MAX: usize = 300;
/// Maximum number of tool calls whose titles are kept.
const TOOLS_MAX: usize = 1_000;
/// Maximum length of a line of the agent's text before it is forwarded without a line ending.
const LINE_MAX: usize = 4 * 1024;

/// The result of one update.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum UpdateOutcome {
    /// Complete lines.
    Lines(Vec<TextLine>),
    /// The unfinished line before it, then the activity.
    Activity(Option<TextLine>, Activity),
    /// The session's usage increased.
    Used {
        more: SessionUsage,
        session: SessionUsage,
    },
    Nothing,
}

/// A line of the agent's text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextLine {
    pub(super) line: String,
    /// Whether a message begins with it, as far as this is known.
    pub(super) begins: bool,
}

/// State kept between updates.
#[derive(Debug, Default)]
pub(super) struct UpdateState {
    /// The unfinished line.
    open: String,
    /// Whether a report began with the unfinished line.
    begins: bool,
    /// Secrets that must not be split when the line is cut.
    secrets: Secrets,
    tools: HashMap<String, (String, &'static str, &'static str)>,
    /// Usage of the session so far.
    pub(super) account: Account,
}

impl UpdateState {
    /// Returns the state for an agent with these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Handles one update. `begins_report` returns true for a text that begins like the report of a failed
    /// model; such a text starts a new line even if another line is unfinished.
    pub(super) fn hear(
        &mut self,
        update: SessionUpdate,
        begins_report: impl Fn(&str) -> bool,
    ) -> UpdateOutcome {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
                ContentBlock::Text(text) => self.say(&text.text, begins_report),
                _ => UpdateOutcome::Nothing,
            },
            SessionUpdate::ToolCall(call) => self.tool(call),
            SessionUpdate::ToolCallUpdate(update) => self.tool_update(update),
            SessionUpdate::Plan(plan) => UpdateOutcome::Activity(self.rest(), steps(plan)),
            SessionUpdate::UsageUpdate(update) => self.cost(update.cost),
            // Thoughts, modes and commands are not forwarded; their arrival already counts as a sign of life.
            _ => UpdateOutcome::Nothing,
        }
    }

    /// Returns the unfinished line.
    pub(super) fn rest(&mut self) -> Option<TextLine> {
        let open = std::mem::take(&mut self.open);
        if open.trim().is_empty() { None } else { Some(self.said(open.trim_end().to_owned())) }
    }

    fn said(&mut self, line: String) -> TextLine {
        TextLine { line, begins: std::mem::take(&mut self.begins) }
    }

    /// Returns title and kind of a tool call.
    pub(super) fn known(&self, id: &str) -> Option<(String, &'static str)> {
        self.tools.get(id).map(|(title, kind, _)| (title.clone(), *kind))
    }

    /// Returns the increase of the session's cost; a cost in another currency cannot be converted to dollars.
    fn cost(&mut self, cost: Option<Cost>) -> UpdateOutcome {
        let Some(cost) = cost.filter(|cost| cost.currency == "USD" && cost.amount > 0.0) else {
            return UpdateOutcome::Nothing;
        };
        // The protocol uses a fraction; from here on cost is counted in whole millionths.
        let micros = (cost.amount * 1e6).round() as u64;
        let more = self.account.cost(micros);
        self.used(more)
    }

    /// Returns the increase of the session's tokens.
    pub(super) fn tokens(&mut self, total: u64) -> UpdateOutcome {
        let more = self.account.tokens(total);
        self.used(more)
    }

    fn used(&self, more: SessionUsage) -> UpdateOutcome {
        let session = self.account.told();
        if more == SessionUsage::default() {
            UpdateOutcome::Nothing
        } else {
            UpdateOutcome::Used { more, session }
        }
    }

    fn say(&mut self, text: &str, begins_report: impl Fn(&str) -> bool) -> UpdateOutcome {
        let mut lines = Vec::new();
        if begins_report(text) {
            lines.extend(self.rest());
            self.begins = true;
        }
        for piece in text.split_inclusive('\n') {
            self.open.push_str(piece);
            if self.open.ends_with('\n') {
                lines.extend(self.rest());
            }
            if self.open.len() > LINE_MAX + self.secrets.overlap() {
                lines.push(self.cut());
            }
        }
        if lines.is_empty() { UpdateOutcome::Nothing } else { UpdateOutcome::Lines(lines) }
    }

    /// Returns a line that is too long, except for an end that may be the beginning of a secret.
    fn cut(&mut self) -> TextLine {
        let rest = self.open.split_off(self.open.len() - self.secrets.begun(&self.open));
        let line = std::mem::replace(&mut self.open, rest);
        self.said(line)
    }

    fn tool(&mut self, call: ToolCall) -> UpdateOutcome {
        let (title, kind, status) = (short(&call.title), kind(call.kind), status(call.status));
        let id = short(&call.tool_call_id.to_string());
        self.remember(&id, (title.clone(), kind, status));
        let (paths, diffs) = (paths(&call.locations), diffs(&call.content));
        UpdateOutcome::Activity(self.rest(), Activity::Tool { id, title, kind, status, paths, diffs })
    }

    /// Reports a tool call again only if its status changed: its output may arrive in thousands of updates.
    fn tool_update(&mut self, update: ToolCallUpdate) -> UpdateOutcome {
        let id = short(&update.tool_call_id.to_string());
        let fields = update.fields;
        let before = self.tools.get(&id).cloned();
        let (old_title, old_kind, old_status) = before.clone().unwrap_or((id.clone(), "other", "pending"));
        let now = (
            fields.title.as_deref().map_or(old_title, short),
            fields.kind.map_or(old_kind, kind),
            fields.status.map_or(old_status, status),
        );
        if before.is_some_and(|(_, _, old_status)| old_status == now.2) {
            self.remember(&id, now);
            return UpdateOutcome::Nothing;
        }
        self.remember(&id, now.clone());
        let (title, kind, status) = now;
        let paths = paths(&fields.locations.unwrap_or_default());
        let diffs = diffs(&fields.content.unwrap_or_default());
        UpdateOutcome::Activity(self.rest(), Activity::Tool { id, title, kind, status, paths, diffs })
    }

    fn remember(&mut self, id: &str, tool: (String, &'static str, &'static str)) {
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(id) {
            self.tools.insert(id.to_owned(), tool);
        }
    }
}

fn steps(plan: Plan) -> Activity {
    let step = |entry: agent_client_protocol::v1::schema::PlanEntry| TodoItem {
        text: short(&entry.content),
        status: match entry.status {
            PlanEntryStatus::Pending => "pending",
            PlanEntryStatus::InProgress => "in_progress",
            PlanEntryStatus::Completed => "completed",
            _ => "other",
        },
    };
    Activity::Plan { steps: plan.entries.into_iter().take(NAMED_MAX).map(step).collect() }
}

fn paths(locations: &[ToolCallLocation]) -> Vec<String> {
    locations.iter().take(NAMED_MAX).map(|location| short(&location.path.to_string_lossy())).collect()
}

fn diffs(content: &[ToolCallContent]) -> Vec<Changed> {
    let changed = |content: &ToolCallContent| match content {
        ToolCallContent::Diff(diff) => Some(Changed {
            path: short(&diff.path.to_string_lossy()),
            lines_before: diff.old_text.as_deref().map_or(0, |text| text.lines().count()),
            lines_after: diff.new_text.lines().count(),
        }),
        _ => None,
    };
    content.iter().filter_map(changed).take(NAMED_MAX).collect()
}

pub(super) fn kind(kind: ToolKind) -> &'static str {
    match kind {
        ToolKind::Read => "read",
        ToolKind::Edit => "edit",
        ToolKind::Delete => "delete",
        ToolKind::Move => "move",
        ToolKind::Search => "search",
        ToolKind::Execute => "execute",
        ToolKind::Think => "think",
        ToolKind::Fetch => "fetch",
        ToolKind::SwitchMode => "switch_mode",
        _ => "other",
    }
}

fn status(status: ToolCallStatus) -> &'static str {
    match status {
        ToolCallStatus::Pending => "pending",
        ToolCallStatus::InProgress => "in_progress",
        ToolCallStatus::Completed => "completed",
        ToolCallStatus::Failed => "failed",
        _ => "other",
    }
}

fn short(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(TITLE_MAX).collect()
}
