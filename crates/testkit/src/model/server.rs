//! The server: one thread listens, one more handles each connection. Requests are recorded for the test to inspect.

use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::json;

use super::http::{self, ModelRequest, Unread};
use super::reply::ModelReply;
use super::script::{Health, Script};
use super::{chat, messages, responses};

/// The maximum number of requests. An agent that sends more is in a loop.
const REQUESTS_MAX: usize = 200;
const CONNECTIONS_MAX: usize = 32;
/// The maximum time without data on a connection.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// A model that follows a script. It listens until it is dropped.
#[derive(Debug)]
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<ModelState>,
    listening: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct ModelState {
    script: Script,
    asked: Mutex<Vec<ModelRequest>>,
    connections: AtomicUsize,
    stopping: AtomicBool,
    repaired: AtomicBool,
}

impl ScriptedModel {
    /// Starts a model on a free port of loopback.
    pub fn start(script: Script) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
        let address = listener.local_addr().expect("a bound socket has an address");
        let shared = Arc::new(ModelState {
            script,
            asked: Mutex::default(),
            connections: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
            repaired: AtomicBool::new(false),
        });
        let listening = thread::spawn({
            let shared = Arc::clone(&shared);
            move || listen(&listener, &shared)
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// Returns its URL without a path: `http://127.0.0.1:PORT`.
    pub fn link(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Ends the failures of its script.
    pub fn repair(&self) {
        self.shared.repaired.store(true, Ordering::SeqCst);
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.shared.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for ScriptedModel {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // The thread is blocked in `accept`, so this connection wakes it. An error means that the listener is already
        // closed.
        TcpStream::connect(self.address).ok();
        if let Some(listening) = self.listening.take() {
            // A panic of that thread was already printed, and this may run during another panic.
            listening.join().ok();
        }
    }
}

fn listen(listener: &TcpListener, shared: &Arc<ModelState>) {
    for stream in listener.incoming() {
        if shared.stopping.load(Ordering::SeqCst) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if shared.connections.fetch_add(1, Ordering::SeqCst) >= CONNECTIONS_MAX {
            shared.connections.fetch_sub(1, Ordering::SeqCst);
            continue;
        }
        let shared = Arc::clone(shared);
        // Not joined: the thread ends after one answer, or after the read timeout.
        thread::spawn(move || {
            converse(stream, &shared);
            shared.connections.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

/// Answers the one request of a connection. Errors of an agent that disconnected are ignored.
fn converse(stream: TcpStream, shared: &ModelState) {
    if stream.set_read_timeout(Some(SILENCE_MAX)).and(stream.set_write_timeout(Some(SILENCE_MAX))).is_err() {
        return;
    }
    let mut stream = BufReader::new(stream);
    let reply = match http::read(&mut stream) {
        Ok(request) => shared.answer(request),
        Err(Unread::Refused(status, why)) => ModelReply::Refused(status, why),
        Err(Unread::Gone) => return,
    };
    stream.get_mut().write_all(reply.http().as_bytes()).ok();
}

impl ModelState {
    fn answer(&self, request: ModelRequest) -> ModelReply {
        let reply = self.reply(&request);
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if asked.len() >= REQUESTS_MAX {
            return ModelReply::Refused(
                "400 Bad Request",
                format!("request limit reached: at most {REQUESTS_MAX} per test"),
            );
        }
        asked.push(request);
        reply
    }

    fn reply(&self, request: &ModelRequest) -> ModelReply {
        // Some agents expect the version in the configured URL, and others add it.
        let path = request.path.strip_prefix("/v1").unwrap_or(&request.path);
        let repaired = self.repaired.load(Ordering::SeqCst);
        let health = if repaired { Health::Repaired } else { Health::Failing };
        match (request.method.as_str(), path) {
            ("POST", "/chat/completions") => chat::answer(&self.script, &request.body, health),
            ("POST", "/responses") => responses::answer(&self.script, &request.body, health),
            ("POST", "/messages") => messages::answer(&self.script, &request.body, health),
            ("POST", "/messages/count_tokens") => ModelReply::Whole(json!({ "input_tokens": 10 })),
            ("GET", "/models") => {
                let model = json!({
                    "id": "scripted", "object": "model", "type": "model", "created": 1, "owned_by": "drydock",
                    "display_name": "scripted", "created_at": "2026-01-01T00:00:00Z",
                });
                ModelReply::Whole(
                    json!({ "object": "list", "data": [model], "has_more": false, "models": [] }),
                )
            }
            (method, path) => ModelReply::Refused("404 Not Found", format!("no answer to {method} {path}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use serde_json::Value;

    use super::*;

    fn model() -> ScriptedModel {
        ScriptedModel::start(Script::saying("all done").calling("shell", json!({ "command": "ls" })))
    }

    /// Sends bytes and returns everything that is received.
    fn exchange(model: &ScriptedModel, request: &str) -> String {
        let mut stream = TcpStream::connect(model.address).expect("the model listens");
        stream.write_all(request.as_bytes()).expect("the model reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the model answers");
        answer
    }

    fn post(model: &ScriptedModel, path: &str, body: &Value) -> String {
        let body = body.to_string();
        exchange(
            model,
            &format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len()),
        )
    }

    /// One conversation per API: path, tools, and the conversation after the call was performed.
    fn dialects() -> [(&'static str, Value, Value); 3] {
        [
            (
                "/v1/chat/completions",
                json!([{ "type": "function", "function": { "name": "shell" } }]),
                json!({ "messages": [{ "role": "user" }, { "role": "tool", "tool_call_id": "call_1" }] }),
            ),
            (
                "/v1/responses",
                json!([{ "type": "function", "name": "shell" }]),
                json!({ "input": [{ "type": "function_call_output", "call_id": "call_1" }] }),
            ),
            (
                "/v1/messages",
                json!([{ "name": "shell" }]),
                json!({ "messages": [{ "content": [{ "type": "tool_result", "tool_use_id": "call_1" }] }] }),
            ),
        ]
    }

    #[test]
    fn a_task_is_answered_by_a_call_and_its_result_by_the_last_words() {
        for (path, tools, mut after) in dialects() {
            for stream in [false, true] {
                let model = model();
                let first = post(&model, path, &json!({ "tools": tools, "stream": stream }));
                assert!(first.contains("shell") && first.contains("call_1"), "{path} {first}");
                after["tools"] = tools.clone();
                after["stream"] = stream.into();
                let second = post(&model, path, &after);
                assert!(second.contains("all done") && !second.contains("call_1"), "{path} {second}");
                assert_eq!(second.contains("text/event-stream"), stream, "{path} {second}");
                assert_eq!(model.requests().len(), 2);
                assert_eq!(model.requests()[1].body, after);
            }
        }
    }

    /// Breaks if a model fails too early, keeps failing after its repair, or fails requests without tools.
    #[test]
    fn a_model_fails_after_its_calls_until_it_is_repaired() {
        for (path, tools, mut after) in dialects() {
            let call = json!({ "command": "ls" });
            let model =
                ScriptedModel::start(Script::saying("all done").calling("shell", call).failing_after(1, 429));
            let first = post(&model, path, &json!({ "tools": tools }));
            assert!(first.contains("call_1"), "{path} {first}");
            let aside = post(&model, path, &after);
            assert!(aside.starts_with("HTTP/1.1 200"), "{path} {aside}");
            after["tools"] = tools.clone();
            let failed = post(&model, path, &after);
            assert!(
                failed.starts_with("HTTP/1.1 429") && failed.contains("rate_limit_error"),
                "{path} {failed}"
            );
            model.repair();
            assert!(post(&model, path, &after).contains("all done"), "{path}");
        }
    }

    #[test]
    fn a_request_without_the_tool_gets_a_plain_answer() {
        for (path, _, _) in dialects() {
            let answer = post(&model(), path, &json!({ "messages": [] }));
            assert!(answer.starts_with("HTTP/1.1 200") && !answer.contains("shell"), "{path} {answer}");
        }
        let models = exchange(&model(), "GET /v1/models?limit=1 HTTP/1.1\r\nHost: x\r\n\r\n");
        assert!(models.contains("\"scripted\""), "{models}");
    }

    #[test]
    fn what_cannot_be_understood_is_refused_and_not_kept() {
        let model = model();
        for (request, status) in [
            ("POST /v1/messages HTTP/1.1\r\nContent-Length: 3\r\n\r\n{{{", "400"),
            ("POST /v1/messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n", "413"),
            ("POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", "411"),
        ] {
            let answer = exchange(&model, request);
            assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
        }
        assert!(model.requests().is_empty());
        assert!(post(&model, "/v1/songs", &json!({})).starts_with("HTTP/1.1 404"));
        for _ in 0..REQUESTS_MAX {
            post(&model, "/v1/messages", &json!({}));
        }
        assert_eq!(model.requests().len(), REQUESTS_MAX);
    }

    #[test]
    fn a_dropped_model_listens_no_more() {
        let model = model();
        let address = model.address;
        drop(model);
        assert!(TcpStream::connect(address).is_err());
    }
}
