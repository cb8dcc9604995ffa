//! The run's side of its socket: accepts connections that know the run's secret, and handles messages from
//! there like lines of output.
//!
//! Guarantees: the socket is in a directory of this user only and is removed with the run; a secret is valid
//! for one run; every message counts as sent by this run's agent. An agent that removes or replaces its
//! socket only loses this channel.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use drydock_domain::error_chain;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use super::lines::{BoundedLines, McpLine};
use super::socket::{SECRET, SOCKET, Short};
use super::tools::STATUS;
use crate::error::StartError;
use crate::message::{self, Message, ParsedLine};
use crate::output::{SignalOutcome, SignalSink};
use crate::signal::Signal;
use crate::task::AgentTask;

/// Maximum length of a message, as for a line of output.
const MESSAGE_MAX: usize = 64 * 1024;
/// Maximum number of concurrent connections per run; others wait.
const GUESTS_MAX: usize = 8;
/// Maximum number of calls per run; further calls are refused.
const CALLS_MAX: usize = 1_000;
/// How long a call waits until it was handled; a checkpoint of a large worktree takes a while.
const CALL_PATIENCE: Duration = Duration::from_secs(60);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The run's response to a line.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum McpReply {
    /// Response to the secret, with the kind of the caller.
    Welcome {
        caller: McpCaller,
    },
    Heard,
    Status(Value),
    Refused(String),
}

/// The kind of a run's agent, which determines its tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum McpCaller {
    Worker,
    Reviewer,
}

/// A run's open socket, removed on drop.
pub(crate) struct RunSocket {
    listener: UnixListener,
    path: PathBuf,
    secret: String,
    task: Value,
    /// The version under review, if the agent is a reviewer.
    proposal: Option<usize>,
    calls: AtomicUsize,
}

/// Serves the socket, if there is one, until every process of the run has ended.
pub(crate) async fn attend(door: Option<&RunSocket>, output: &SignalSink, over: &CancellationToken) {
    if let Some(door) = door {
        door.attend(output, over).await;
    }
}

impl RunSocket {
    /// Opens a socket with an unused name in the run's temporary directory.
    pub(crate) fn open(temp: &Path, task: &AgentTask) -> Result<Self, StartError> {
        let failed = |source: io::Error| StartError::Directory { path: temp.to_owned(), source };
        let path = temp.join(format!("mcp-{}.sock", random::<8>().map_err(failed)?));
        let listener = Short::of(&path).and_then(|short| UnixListener::bind(short.path())).map_err(failed)?;
        let proposal = task.proposal.as_ref().map(|proposal| proposal.version);
        let task =
            serde_json::to_value(task).expect("a task has only text keys and no numbers that JSON lacks");
        let (secret, calls) = (random::<32>().map_err(failed)?, AtomicUsize::new(0));
        Ok(Self { listener, path, secret, task, proposal, calls })
    }

    /// Returns the variables with which a server finds the socket.
    pub(crate) fn variables(&self) -> [(&'static str, &OsStr); 2] {
        [(SOCKET, self.path.as_os_str()), (SECRET, OsStr::new(&self.secret))]
    }

    /// Returns the secret that a connection must send first.
    pub(crate) fn secret(&self) -> &str {
        &self.secret
    }

    async fn attend(&self, output: &SignalSink, over: &CancellationToken) {
        let mut guests = FuturesUnordered::new();
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                accepted = self.listener.accept(), if guests.len() < GUESTS_MAX => match accepted {
                    Ok((guest, _)) => guests.push(self.hear(guest, output)),
                    Err(error) => {
                        tracing::warn!(error = %error_chain(&error), "could not accept the connection of an MCP server");
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
                Some(ended) = guests.next() => if let Err(error) = ended {
                    tracing::debug!(error = %error_chain(&error), "an MCP server disconnected during a call");
                },
            }
        }
    }

    async fn hear(&self, guest: UnixStream, output: &SignalSink) -> io::Result<()> {
        let (reader, mut writer) = guest.into_split();
        let mut lines = BoundedLines::new(reader, MESSAGE_MAX);
        match lines.next().await? {
            Some(McpLine::Text(first)) if same(&first, &self.secret) => {
                let caller = if self.proposal.is_some() { McpCaller::Reviewer } else { McpCaller::Worker };
                send(&mut writer, &McpReply::Welcome { caller }).await?
            }
            _ => {
                let reason = "wrong secret for this run".to_owned();
                return send(&mut writer, &McpReply::Refused(reason)).await;
            }
        }
        while let Some(line) = lines.next().await? {
            let (bytes, answer) = match line {
                McpLine::Text(text) => (text.len(), self.answer(&text, output).await),
                McpLine::TooLong => {
                    (MESSAGE_MAX, McpReply::Refused(format!("a message is at most {MESSAGE_MAX} bytes")))
                }
            };
            // These messages are output of the run like any other: they are signs of life and count against
            // the limit.
            output.count(bytes);
            send(&mut writer, &answer).await?;
        }
        Ok(())
    }

    /// Sets a verdict's version to the version under review. Returns an error for an agent that is not a
    /// reviewer.
    fn bound(&self, message: Message) -> Result<Message, String> {
        let Message::Verdict { verdict, version, reason } = message else { return Ok(message) };
        let proposed = self.proposal.ok_or("only reviewers can give verdicts")?.to_string();
        match version {
            Some(version) if version != proposed => {
                Err(format!("you review version {proposed}, not version {version}"))
            }
            Some(_) | None => Ok(Message::Verdict { verdict, version: Some(proposed), reason }),
        }
    }

    async fn answer(&self, line: &str, output: &SignalSink) -> McpReply {
        if self.calls.fetch_add(1, Ordering::Relaxed) >= CALLS_MAX {
            return McpReply::Refused(format!("message limit reached: at most {CALLS_MAX} per run"));
        }
        if serde_json::from_str::<Value>(line).is_ok_and(|value| value["drydock"] == STATUS) {
            return McpReply::Status(self.task.clone());
        }
        match message::read(line) {
            ParsedLine::Message(Message::Subplan(_)) if self.task["phase"] != "strategize" => {
                McpReply::Refused("subplans can be requested only in Strategize".to_owned())
            }
            ParsedLine::Message(message) => match self.bound(message) {
                Ok(message) => dealt(output.ask(|reply| Signal::Called(message, reply), CALL_PATIENCE).await),
                Err(reason) => McpReply::Refused(reason),
            },
            ParsedLine::Garbled { reason } => McpReply::Refused(reason),
            ParsedLine::Log => McpReply::Refused("not a valid message".to_owned()),
        }
    }
}

/// Converts the outcome of a call into a response.
fn dealt(dealt: SignalOutcome) -> McpReply {
    match dealt {
        SignalOutcome::Done => McpReply::Heard,
        SignalOutcome::Refused(reason) => McpReply::Refused(reason),
        SignalOutcome::Nobody => McpReply::Refused("the run is ending".to_owned()),
        SignalOutcome::Late => {
            let seconds = CALL_PATIENCE.as_secs();
            McpReply::Refused(format!("not confirmed within {seconds} s; it may still take effect"))
        }
    }
}

impl Drop for RunSocket {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_file(&self.path) {
            tracing::debug!(error = %error_chain(&error), path = %self.path.display(), "the socket of a run was already removed");
        }
    }
}

async fn send(to: &mut OwnedWriteHalf, answer: &McpReply) -> io::Result<()> {
    let mut line = serde_json::to_string(answer).map_err(io::Error::other)?;
    line.push('\n');
    to.write_all(line.as_bytes()).await
}

fn random<const BYTES: usize>() -> io::Result<String> {
    let mut bytes = [0; BYTES];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a text takes whatever is written");
        text
    }))
}

/// Compares in constant time, so that the time does not reveal where the texts differ.
fn same(said: &str, secret: &str) -> bool {
    let differing = said.bytes().zip(secret.bytes()).fold(0, |seen, (one, other)| seen | (one ^ other));
    said.len() == secret.len() && differing == 0
}
