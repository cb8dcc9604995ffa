//! OpenAI's chat completions, complete and streamed.

use serde_json::{Value, json};

use super::reply::{ModelReply, SseEvent};
use super::script::{Health, ModelQuery, ModelStep, Script};

/// Answers a `POST …/chat/completions`.
pub(super) fn answer(script: &Script, body: &Value, health: Health) -> ModelReply {
    let messages = body["messages"].as_array().into_iter().flatten();
    let results = messages.filter(|message| message["role"] == "tool").count();
    let heard = ModelQuery::of(body, "/function/name", results);
    if let (Health::Failing, Some(status)) = (health, script.failure(&heard)) {
        return ModelReply::Failed(status);
    }
    let (mut message, finish) = match script.next(&heard) {
        ModelStep::Say(text) => (json!({ "role": "assistant", "content": text }), "stop"),
        ModelStep::Call { id, tool, arguments } => {
            let function = json!({ "name": tool, "arguments": arguments.to_string() });
            let call = json!({ "index": 0, "id": id, "type": "function", "function": function });
            (json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")
        }
    };
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 });
    let envelope = |object: &str, choices: Value, usage: Value| json!({ "id": "chatcmpl-1", "object": object, "created": 1, "model": body["model"], "choices": choices, "usage": usage });
    if body["stream"] != true {
        if let Some(call) = message.pointer_mut("/tool_calls/0").and_then(Value::as_object_mut) {
            call.remove("index");
        }
        let choice = json!([{ "index": 0, "message": message, "finish_reason": finish }]);
        return ModelReply::Whole(envelope("chat.completion", choice, usage));
    }
    let part = |delta: Value, finish: Option<&str>| {
        let choice = json!([{ "index": 0, "delta": delta, "finish_reason": finish }]);
        SseEvent::plain(envelope("chat.completion.chunk", choice, Value::Null))
    };
    ModelReply::Streamed(vec![
        part(message, None),
        part(json!({}), Some(finish)),
        SseEvent::plain(envelope("chat.completion.chunk", json!([]), usage)),
        SseEvent::plain("[DONE]"),
    ])
}
