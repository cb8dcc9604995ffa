//! The tools that an agent sees, and the message that each of them is. What a message may hold is judged where it is heard.

use serde_json::{Map, Value, json};

/// One tool.
pub(super) struct Tool {
    pub(super) name: &'static str,
    /// The kind of message that a call becomes.
    kind: &'static str,
    about: &'static str,
    schema: fn() -> Value,
    /// What the agent reads when it was heard.
    pub(super) heard: &'static str,
}

/// All tools. A subplan is refused where it is heard, and not offered.
pub(super) const TOOLS: [Tool; 5] = [
    Tool {
        name: "record_choice",
        kind: "choice",
        about: "Record a decision that you took by yourself, with what else you considered and why.",
        schema: || {
            let texts = json!({"type": "array", "items": {"type": "string"}});
            let sure = json!({"type": "number", "minimum": 0, "maximum": 1});
            let of = json!({"question": text("What was to be decided"), "chosen": text("What you decided"),
                "alternatives": texts, "rationale": text("Why"), "confidence": sure});
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
        about: "Keep the state of the worktree as it is about now.",
        schema: || object(json!({"label": text("What to call it")}), &["label"]),
        heard: "it is being kept; what you change in the next moment may be in it",
    },
    Tool {
        name: "plan_status",
        kind: STATUS,
        about: "Look at the plan that you work for: its task, phase, rules, choices of earlier runs and what people said.",
        schema: || object(json!({}), &[]),
        heard: "",
    },
];

/// The kind of the one call that is no message but a look.
pub(super) const STATUS: &str = "status";
/// What is refused, by a name that agents may know.
pub(super) const SUBPLAN: &str = "spawn_subplan";

/// Returns what `tools/list` tells.
pub(super) fn list() -> Value {
    let told =
        |tool: &Tool| json!({"name": tool.name, "description": tool.about, "inputSchema": (tool.schema)()});
    json!({ "tools": TOOLS.iter().map(told).collect::<Vec<_>>() })
}

/// Returns the message that a call of this tool is.
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
