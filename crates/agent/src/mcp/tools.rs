//! The tools offered to an agent, and the message for each. Messages are validated by their receiver.

use serde_json::{Map, Value, json};

use super::door::Caller;

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
        about: "Record a decision that you took by yourself, with what else you considered and why.",
        schema: || {
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let sure = json!({"type": "number", "minimum": 0, "maximum": 1});
            let of = json!({"question": text("What was to be decided"), "chosen": text("What you decided"),
                "alternatives": texts, "rationale": text("Why"), "confidence": sure,
                "id": text("What later choices call it in `under`; needed only where two have the same question"),
                "under": text("The choice it follows from, by its id or its question; none if it stands by itself")});
            object(of, &["question", "chosen"])
        },
        heard: "recorded",
    },
    Tool {
        name: "ask_human",
        kind: "ask",
        about: "Ask a person what only a person can decide. This ends your run: the work so far is kept, and a later run \
                is told the answer.",
        schema: || {
            let option =
                object(json!({"id": text("Short"), "label": text("What is read")}), &["id", "label"]);
            let options = json!({"type": "array", "items": option,
                "description": "Answers to choose from; none when any text will do"});
            object(json!({"question": text("The question"), "options": options}), &["question"])
        },
        heard: "a person is asked; stop working now: this run ends, and a later one is told the answer",
    },
    Tool {
        name: "report_progress",
        kind: "progress",
        about: "Tell the people who watch how far you are.",
        schema: || {
            let percent = json!({"type": "number", "minimum": 0, "maximum": 100});
            object(json!({"text": text("What you are doing"), "percent": percent}), &["text"])
        },
        heard: "told",
    },
    Tool {
        name: "checkpoint",
        kind: "checkpoint",
        about: "Keep the state of the worktree as it is now.",
        schema: || object(json!({"label": text("What to call it")}), &["label"]),
        heard: "kept",
    },
    Tool {
        name: VERDICT,
        kind: "verdict",
        about: "Say what you think of the version that you review. Your last word counts, for this version alone.",
        schema: || {
            let verdict = json!({"type": "string", "enum": ["ack", "refuse"],
                "description": "ack: it may go on as it is; refuse: it must not"});
            let of = json!({"verdict": verdict, "reason": text("Why; what must be mended"),
                "version": text("The number of the version, if you want to be sure")});
            object(of, &["verdict"])
        },
        heard: "your verdict is taken; it counts when you end",
    },
    Tool {
        name: "spawn_subplan",
        kind: "subplan",
        about: "While you strategize: have a piece of the task done as a plan of its own, in a worktree of its own. Its result is \
                merged into this plan's.",
        schema: || {
            let texts =
                |about: &str| json!({"type": "array", "items": {"type": "string"}, "description": about});
            let of = json!({"name": text("Its name among its siblings"), "task": text("What is to be done, in words; or name an action"),
                "action": text("An action instead of a task"), "project": text("Another project than this one"),
                "agent": text("Another agent than this plan's"), "after": texts("The siblings that come before it"),
                "paths": texts("What it will touch")});
            object(of, &["name"])
        },
        heard: "noted; it is checked with the whole strategy when you are done",
    },
    Tool {
        name: "plan_status",
        kind: STATUS,
        about: "Look at the plan that you work for: its task, phase, rules, choices of earlier runs and what people said.",
        schema: || object(json!({}), &[]),
        heard: "",
    },
];

/// The tool that only reviewers have.
const VERDICT: &str = "give_verdict";
/// The kind of the only call that is a query instead of a message.
pub(super) const STATUS: &str = "status";

/// Returns the tools of a caller.
pub(super) fn offered(caller: Caller) -> impl Iterator<Item = &'static Tool> {
    TOOLS.iter().filter(move |tool| tool.name != VERDICT || caller == Caller::Reviewer)
}

/// Returns the result of `tools/list`.
pub(super) fn list(caller: Caller) -> Value {
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
