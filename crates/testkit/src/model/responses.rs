//! OpenAI's responses, complete and streamed.

use serde_json::{Value, json};

use super::reply::{ModelReply, SseEvent};
use super::script::{Health, ModelQuery, ModelStep, Script};

/// Answers a `POST …/responses`.
pub(super) fn answer(script: &Script, body: &Value, health: Health) -> ModelReply {
    let input = body["input"].as_array().into_iter().flatten();
    let results = input.filter(|item| item["type"] == "function_call_output").count();
    let heard = ModelQuery::of(body, "/name", results);
    if let (Health::Failing, Some(status)) = (health, script.failure(&heard)) {
        return ModelReply::Failed(status);
    }
    let item = match script.next(&heard) {
        ModelStep::Say(text) => {
            let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
            json!({ "type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": content })
        }
        ModelStep::Call { id, tool, arguments } => json!({
            "type": "function_call", "id": format!("fc_{id}"), "status": "completed",
            "call_id": id, "name": tool, "arguments": arguments.to_string(),
        }),
    };
    let response = |status: &str, output: Value, usage: Value| {
        json!({
            "id": "resp_1", "object": "response", "created_at": 1, "status": status,
            "model": body["model"], "output": output, "usage": usage,
        })
    };
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
    });
    let completed = response("completed", json!([item]), usage);
    if body["stream"] != true {
        return ModelReply::Whole(completed);
    }
    let begun = response("in_progress", json!([]), Value::Null);
    let events = [
        json!({ "type": "response.created", "response": begun }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": item }),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "response": completed }),
    ];
    ModelReply::Streamed(events.iter().map(SseEvent::typed).collect())
}
