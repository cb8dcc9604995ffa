//! The server that an agent starts, `drydock mcp`: the Model Context Protocol on its standard streams, one
//! request at a time, connected to the run's socket. It implements only the few methods that a server with
//! tools needs. It makes no decisions, so it need not be trusted.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::door::{McpCaller, McpReply};
use super::lines::{BoundedLines, McpLine};
use super::socket::{SECRET, SOCKET, Short};
use super::tools;

/// Maximum length of a request.
const REQUEST_MAX: usize = 256 * 1024;
/// Maximum length of the run's response; a task may be long.
const ANSWER_MAX: usize = 16 * 1024 * 1024;
/// Supported protocol versions, newest first; tools work the same in all of them.
const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

const PARSE_ERROR: i32 = -32700;
const INVALID_REQUEST: i32 = -32600;
const METHOD_NOT_FOUND: i32 = -32601;
const INVALID_PARAMS: i32 = -32602;

/// Why the server cannot run.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The server was not started inside a run.
    #[error("this command is for agents inside a run: {variable} is not set")]
    NoRun {
        /// The missing variable.
        variable: &'static str,
    },
    /// The run's socket could not be reached.
    #[error("could not reach the run at {}", path.display())]
    Unreachable {
        /// Path of the run's socket.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// The run rejected the secret.
    #[error("the run refused: {reason}")]
    Refused {
        /// The run's message.
        reason: String,
    },
    /// The agent's streams or the run's socket broke.
    #[error("could not continue")]
    Broken(#[source] io::Error),
}

/// Serves the agent on these streams for the run that the environment names, until either ends.
pub async fn serve_mcp<R, W>(input: R, mut output: W) -> Result<(), McpError>
where
    R: AsyncRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let mut run = RunConnection::reach().await?;
    let mut requests = BoundedLines::new(input, REQUEST_MAX);
    loop {
        let line = tokio::select! {
            line = requests.next() => line.map_err(McpError::Broken)?,
            // The run sends nothing unless requested, so this is its end, and the server ends too.
            _ = run.answers.ready() => return Ok(()),
        };
        let answer = match line {
            None => return Ok(()),
            Some(McpLine::TooLong) => {
                let text = format!("a request is at most {REQUEST_MAX} bytes");
                Some(failure(&Value::Null, INVALID_REQUEST, &text))
            }
            Some(McpLine::Text(text)) if text.trim().is_empty() => None,
            Some(McpLine::Text(text)) => answered(&mut run, &text).await.map_err(McpError::Broken)?,
        };
        if let Some(answer) = answer {
            let line = format!("{answer}\n");
            output.write_all(line.as_bytes()).await.map_err(McpError::Broken)?;
            output.flush().await.map_err(McpError::Broken)?;
        }
    }
}

/// Returns the response to one line, if it needs one.
async fn answered(run: &mut RunConnection, line: &str) -> io::Result<Option<Value>> {
    let request = match serde_json::from_str::<Value>(line) {
        Ok(Value::Object(request)) => request,
        Ok(_) => {
            return Ok(Some(failure(&Value::Null, INVALID_REQUEST, "a request must be one JSON object")));
        }
        Err(error) => return Ok(Some(failure(&Value::Null, PARSE_ERROR, &error.to_string()))),
    };
    // Without an id it is a notification, without a method a response; neither gets a response.
    let (Some(id), Some(method)) = (request.get("id"), request.get("method").and_then(Value::as_str)) else {
        return Ok(None);
    };
    let params = request.get("params").unwrap_or(&Value::Null);
    let success = |result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    Ok(Some(match method {
        "initialize" => success(greeting(params)),
        "ping" => success(json!({})),
        "tools/list" => success(tools::list(run.caller)),
        "tools/call" => match call(run, params).await? {
            Ok(result) => success(result),
            Err(text) => failure(id, INVALID_PARAMS, &text),
        },
        other => failure(id, METHOD_NOT_FOUND, &format!("unknown method {other:?}")),
    }))
}

fn greeting(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str();
    let version = VERSIONS.into_iter().find(|version| asked == Some(*version)).unwrap_or(VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": { "tools": {} },
        "serverInfo": { "name": "drydock", "version": env!("CARGO_PKG_VERSION") },
        "instructions": "You work on a drydock plan. Record the decisions you make; ask a person about \
                         decisions that are not yours to make.",
    })
}

/// Calls a tool. An invalid call is an error; a refused call is a result with `isError`.
async fn call(run: &mut RunConnection, params: &Value) -> io::Result<Result<Value, String>> {
    let name = params["name"].as_str().unwrap_or_default();
    let arguments = match &params["arguments"] {
        Value::Null => Map::new(),
        Value::Object(arguments) => arguments.clone(),
        _ => return Ok(Err("the arguments of a tool must be a JSON object".to_owned())),
    };
    let Some(tool) = tools::offered(run.caller).find(|tool| tool.name == name) else {
        return Ok(Err(format!("unknown tool {name:?}")));
    };
    Ok(Ok(match run.say(&tools::message(tool, arguments).to_string()).await? {
        McpReply::Heard | McpReply::Welcome { .. } => result(tool.heard),
        McpReply::Status(status) => result(&status.to_string()),
        McpReply::Refused(reason) => refusal(&reason),
    }))
}

fn result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "isError": false})
}

fn refusal(reason: &str) -> Value {
    json!({"content": [{"type": "text", "text": reason}], "isError": true})
}

fn failure(id: &Value, code: i32, text: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
}

/// The connection to the run's drydock process.
struct RunConnection {
    caller: McpCaller,
    answers: BoundedLines<OwnedReadHalf>,
    messages: OwnedWriteHalf,
}

impl RunConnection {
    async fn reach() -> Result<Self, McpError> {
        let path = PathBuf::from(variable(SOCKET)?);
        let secret = variable(SECRET)?.to_string_lossy().into_owned();
        let reached = match Short::of(&path) {
            Ok(short) => UnixStream::connect(short.path()).await,
            Err(error) => Err(error),
        };
        let (reader, messages) =
            reached.map_err(|source| McpError::Unreachable { path, source })?.into_split();
        let answers = BoundedLines::new(reader, ANSWER_MAX);
        let mut run = Self { caller: McpCaller::Worker, answers, messages };
        match run.say(&secret).await.map_err(McpError::Broken)? {
            McpReply::Refused(reason) => Err(McpError::Refused { reason }),
            McpReply::Welcome { caller } => Ok(Self { caller, ..run }),
            McpReply::Heard | McpReply::Status(_) => Ok(run),
        }
    }

    /// Sends one line and returns the run's response.
    async fn say(&mut self, line: &str) -> io::Result<McpReply> {
        let line = format!("{line}\n");
        self.messages.write_all(line.as_bytes()).await?;
        match self.answers.next().await? {
            Some(McpLine::Text(text)) => serde_json::from_str(&text).map_err(io::Error::other),
            Some(McpLine::TooLong) => {
                Ok(McpReply::Refused(format!("the answer is longer than {ANSWER_MAX} bytes")))
            }
            None => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the run has ended")),
        }
    }
}

fn variable(name: &'static str) -> Result<OsString, McpError> {
    std::env::var_os(name).ok_or(McpError::NoRun { variable: name })
}
