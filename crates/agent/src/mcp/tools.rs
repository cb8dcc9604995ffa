//! The tools offered to an agent, and the message for each. Messages are validated by their receiver.

use serde_json::{Map, Value, json};

use super::door::McpCaller;

pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The kind of message that a call becomes.
    kind: &'static str,
    about: &'static str,
    schema: fn() -> Value,
    /// The result that the agent reads after success.
    pub(super) heard: &'static str,
}

static TOOLS: [Tool; 7] = [
    Tool {
        name: "record_choice",
        kind: "choice",
        about: "Record a decision that you made, with the alternatives you considered and the reason.",
        schema: || {
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let sure = json!({"type": "number", "minimum": 0, "maximum": 1});
            let of = json!({"question": text("The question to decide"), "chosen": text("The decision"),
                "alternatives": texts, "rationale": text("Why"), "confidence": sure,
                "id": text("The id for `under` of later choices; needed only if two choices have the same \
                            question"),
                "under": text("The choice it depends on, by id or question; omit if it depends on none")});
            object(of, &["question", "chosen"])
        },
        heard: "recorded",
    },
    Tool {
        name: "ask_human",
        kind: "ask",
        about: "Ask a person a question that only a person can decide. This ends your run: the work so far \
                is kept, and a later run gets the answer.",
        schema: || {
            let option =
                object(json!({"id": text("Short"), "label": text("The text to show")}), &["id", "label"]);
            let options = json!({"type": "array", "items": option,
                "description": "Answers to choose from; omit to allow any text"});
            object(json!({"question": text("The question"), "options": options}), &["question"])
        },
        heard: "a person is asked; stop working now: this run ends, and a later run gets the answer",
    },
    Tool {
        name: "report_progress",
        kind: "progress",
        about: "Report your progress to the people who watch the plan.",
        schema: || {
            let percent = json!({"type": "number", "minimum": 0, "maximum": 100});
            object(json!({"text": text("The current activity"), "percent": percent}), &["text"])
        },
        heard: "reported",
    },
    Tool {
        name: "checkpoint",
        kind: "checkpoint",
        about: "Save the current state of the worktree as a checkpoint.",
        schema: || object(json!({"label": text("The label")}), &["label"]),
        heard: "saved",
    },
    Tool {
        name: VERDICT,
        kind: "verdict",
        about: "Give your verdict on the version that you review. Your last verdict counts, and only for \
                this version.",
        schema: || {
            let verdict = json!({"type": "string", "enum": ["ack", "refuse"],
                "description": "ack: accept it as it is; refuse: reject it"});
            let of = json!({"verdict": verdict, "reason": text("The reason; for refuse, the problems to fix"),
                "version": text("The version number, to make sure that the verdict is for the right \
                                 version")});
            object(of, &["verdict"])
        },
        heard: "verdict recorded; it counts when your run ends",
    },
    Tool {
        name: "spawn_subplan",
        kind: "subplan",
        about: "In Strategize only: request a subplan, which does part of the task as a separate plan in \
                its own worktree. Its result is merged into this plan's.",
        schema: || {
            let texts =
                |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
            let of = json!({"name": text("Its name among its siblings"), "task": text("The task as text; alternatively give an action"),
                "action": text("An action instead of a task"), "project": text("Another project; default: this one"),
                "agent": text("Another agent; default: this plan's"), "after": texts("Siblings that must finish first"),
                "paths": texts("Paths that it will change")});
            object(of, &["name"])
        },
        heard: "recorded; it is checked together with the strategy when your run ends",
    },
    Tool {
        name: "plan_status",
        kind: STATUS,
        about: "Show the plan that you work on: its task, phase, rules, choices of earlier runs and \
                feedback.",
        schema: || object(json!({}), &[]),
        heard: "",
    },
];

/// The tool that only reviewers have.
const VERDICT: &str = "give_verdict";
/// The kind of the only call that is a query instead of a message.
pub(super) const STATUS: &str = "status";

/// Returns the tools of a caller.
pub(super) fn offered(caller: McpCaller) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(move |tool| tool.name != VERDICT || caller == McpCaller::Reviewer)
}

/// Returns the result of `tools/list`.
pub(super) fn list(caller: McpCaller) -> Value {
    let told =
        |tool: &Tool| json!({"name": tool.name, "description": tool.about, "inputSchema": (tool.schema)()});
    json!({ "tools": offered(caller).map(told).collect::<Vec<_>>() })
}

/// Returns the message for a call of this tool.
pub(super) fn message(tool: &Tool, mut arguments: Map<String, Value>) -> Value {
    arguments.insert("drydock".to_owned(), tool.kind.into());
    arguments.into()
}

fn text(about: &str) -> Value {
    json!({"type": "string", "description": about})
}

fn object(properties: Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required})
}
