//! What an agent tells of its work, in our words and within bounds.

use std::collections::HashMap;

use agent_client_protocol::v1::schema::{
    ContentBlock, Cost, Plan, PlanEntryStatus, SessionUpdate, ToolCall, ToolCallContent, ToolCallLocation,
    ToolCallStatus, ToolCallUpdate, ToolKind,
};

use super::account::Account;
use crate::secret::Secrets;
use crate::signal::{Activity, Changed, Step};
use crate::task::SessionUse;

/// How many steps, paths and changed files one signal names.
const NAMED_MAX: usize = 20;
/// How long a title or a step is.
const TITLE_MAX: usize = 300;
/// How many uses of tools are remembered for their titles.
const TOOLS_MAX: usize = 1_000;
/// How long a line of what an agent says may grow before it is passed on.
const LINE_MAX: usize = 4 * 1024;

/// What came of one update.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// Lines that are complete.
    Lines(Vec<Said>),
    /// Lines that were open before, and then this.
    Activity(Option<Said>, Activity),
    /// Its session used more.
    Used {
        more: SessionUse,
        session: SessionUse,
    },
    Nothing,
}

/// A line that the agent said.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) line: String,
    /// Whether a message begins with it, as far as that is known.
    pub(super) begins: bool,
}

/// What must be remembered between updates.
#[derive(Debug, Default)]
pub(super) struct Story {
    /// The line that is being said.
    open: String,
    /// Whether a report began with the line that is being said.
    begins: bool,
    /// Secrets that cutting the line must not split.
    secrets: Secrets,
    tools: HashMap<String, (String, &'static str, &'static str)>,
    /// What its session used so far.
    pub(super) account: Account,
}

impl Story {
    /// Returns the story of an agent that was given these secrets.
    pub(super) fn without(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    /// Hears one update. `begins_report` says whether a text begins like the report of a failed model, which is then a line of
    /// its own although the agent was in the middle of another.
    pub(super) fn hear(&mut self, update: SessionUpdate, begins_report: impl Fn(&str) -> bool) -> Told {
        match update {
            SessionUpdate::AgentMessageChunk(chunk) => match chunk.content {
                ContentBlock::Text(text) => self.say(&text.text, begins_report),
                _ => Told::Nothing,
            },
            SessionUpdate::ToolCall(call) => self.tool(call),
            SessionUpdate::ToolCallUpdate(update) => self.tool_update(update),
            SessionUpdate::Plan(plan) => Told::Activity(self.rest(), steps(plan)),
            SessionUpdate::UsageUpdate(update) => self.cost(update.cost),
            // Thoughts, modes and commands are the agent's own business; that they come shows that it lives.
            _ => Told::Nothing,
        }
    }

    /// Returns the line that is being said, as far as it goes.
    pub(super) fn rest(&mut self) -> Option<Said> {
        let open = std::mem::take(&mut self.open);
        if open.trim().is_empty() { None } else { Some(self.said(open.trim_end().to_owned())) }
    }

    fn said(&mut self, line: String) -> Said {
        Said { line, begins: std::mem::take(&mut self.begins) }
    }

    /// Returns title and kind of a tool's use.
    pub(super) fn known(&self, id: &str) -> Option<(String, &'static str)> {
        self.tools.get(id).map(|(title, kind, _)| (title.clone(), *kind))
    }

    /// Tells what the session cost since it last told; what it costs in another unit is not known in dollars.
    fn cost(&mut self, cost: Option<Cost>) -> Told {
        let Some(cost) = cost.filter(|cost| cost.currency == "USD" && cost.amount > 0.0) else {
            return Told::Nothing;
        };
        // The protocol has a fraction; from here on it is counted in whole millionths.
        let micros = (cost.amount * 1e6).round() as u64;
        let more = self.account.cost(micros);
        self.used(more)
    }

    /// Tells how many tokens the session used since it last told.
    pub(super) fn tokens(&mut self, total: u64) -> Told {
        let more = self.account.tokens(total);
        self.used(more)
    }

    fn used(&self, more: SessionUse) -> Told {
        let session = self.account.told();
        if more == SessionUse::default() { Told::Nothing } else { Told::Used { more, session } }
    }

    fn say(&mut self, text: &str, begins_report: impl Fn(&str) -> bool) -> Told {
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
        if lines.is_empty() { Told::Nothing } else { Told::Lines(lines) }
    }

    /// Takes a line that is too long, but for what may be the first part of a secret.
    fn cut(&mut self) -> Said {
        let rest = self.open.split_off(self.open.len() - self.secrets.begun(&self.open));
        let line = std::mem::replace(&mut self.open, rest);
        self.said(line)
    }

    fn tool(&mut self, call: ToolCall) -> Told {
        let (title, kind, status) = (short(&call.title), kind(call.kind), status(call.status));
        let id = short(&call.tool_call_id.to_string());
        self.remember(&id, (title.clone(), kind, status));
        let (paths, diffs) = (paths(&call.locations), diffs(&call.content));
        Told::Activity(self.rest(), Activity::Tool { id, title, kind, status, paths, diffs })
    }

    /// Tells of a use of a tool again only when it came further: its output may come in thousands of pieces.
    fn tool_update(&mut self, update: ToolCallUpdate) -> Told {
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
            return Told::Nothing;
        }
        self.remember(&id, now.clone());
        let (title, kind, status) = now;
        let paths = paths(&fields.locations.unwrap_or_default());
        let diffs = diffs(&fields.content.unwrap_or_default());
        Told::Activity(self.rest(), Activity::Tool { id, title, kind, status, paths, diffs })
    }

    fn remember(&mut self, id: &str, tool: (String, &'static str, &'static str)) {
        if self.tools.len() < TOOLS_MAX || self.tools.contains_key(id) {
            self.tools.insert(id.to_owned(), tool);
        }
    }
}

fn steps(plan: Plan) -> Activity {
    let step = |entry: agent_client_protocol::v1::schema::PlanEntry| Step {
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
