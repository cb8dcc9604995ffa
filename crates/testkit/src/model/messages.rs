//! Anthropic's messages, complete and streamed.

use serde_json::{Value, json};

use super::reply::{ModelReply, SseEvent};
use super::script::{Health, ModelQuery, ModelStep, Script};

/// Answers a `POST …/messages`.
pub(super) fn answer(script: &Script, body: &Value, health: Health) -> ModelReply {
    let messages = body["messages"].as_array().into_iter().flatten();
    let blocks = messages.filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result").count();
    let heard = ModelQuery::of(body, "/name", results);
    if let (Health::Failing, Some(status)) = (health, script.failure(&heard)) {
        return ModelReply::Failed(status);
    }
    // A block is streamed as an empty one, followed by its content.
    let (block, empty, delta, reason) = match script.next(&heard) {
        ModelStep::Say(text) => (
            json!({ "type": "text", "text": text }),
            json!({ "type": "text", "text": "" }),
            json!({ "type": "text_delta", "text": text }),
            "end_turn",
        ),
        ModelStep::Call { id, tool, arguments } => (
            json!({ "type": "tool_use", "id": id, "name": tool, "input": arguments }),
            json!({ "type": "tool_use", "id": id, "name": tool, "input": {} }),
            json!({ "type": "input_json_delta", "partial_json": arguments.to_string() }),
            "tool_use",
        ),
    };
    let message = |content: Value, reason: Value| {
        json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 5 },
        })
    };
    if body["stream"] != true {
        return ModelReply::Whole(message(json!([block]), json!(reason)));
    }
    let ended = json!({ "stop_reason": reason, "stop_sequence": null });
    let events = [
        json!({ "type": "message_start", "message": message(json!([]), Value::Null) }),
        json!({ "type": "content_block_start", "index": 0, "content_block": empty }),
        json!({ "type": "content_block_delta", "index": 0, "delta": delta }),
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({ "type": "message_delta", "delta": ended, "usage": { "output_tokens": 5 } }),
        json!({ "type": "message_stop" }),
    ];
    ModelReply::Streamed(events.iter().map(SseEvent::typed).collect())
}
