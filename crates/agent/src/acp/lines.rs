//! The two streams of a conversation as lines. The agent's messages are limited in length and must be JSON
//! before the protocol's crate gets them; the first violation is kept as text.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{Sink, Stream, sink, stream};
use serde::Deserialize;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_util::sync::CancellationToken;

use crate::output::{self, Drain};

/// Maximum length of a quoted line that cannot be parsed.
const QUOTED_MAX: usize = 200;
/// The supported protocol version.
const VERSION: u64 = 1;
/// Maximum delay between the end of an agent's input and the end of its output.
const CLOSING_PATIENCE: Duration = Duration::from_secs(2);

/// Why reading of an agent's messages ended.
#[derive(Debug, Clone, Default)]
pub(super) struct Fault {
    seen: Arc<Mutex<Option<String>>>,
    /// Cancelled when nothing more will be read.
    closed: CancellationToken,
}

impl Fault {
    /// Returns the violation, if any; the text follows the agent's name in a sentence.
    pub(super) fn seen(&self) -> Option<String> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn closed(&self) -> &CancellationToken {
        &self.closed
    }

    fn set(&self, what: String) -> io::Error {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| what.clone());
        self.closed.cancel();
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

/// Reader of an agent's messages.
pub(super) struct Incoming<R> {
    drain: Drain<R>,
    output: Arc<output::SignalSink>,
    fault: Fault,
    message_max: usize,
    partial: Vec<u8>,
    /// Length of the part of `partial` already searched for a line ending.
    searched: usize,
    /// Whether the agent has sent its protocol version.
    greeted: bool,
}

/// The part of the `initialize` response that is needed here.
#[derive(Deserialize)]
struct Greeting {
    result: Chosen,
}

#[derive(Deserialize)]
struct Chosen {
    #[serde(rename = "protocolVersion")]
    version: u64,
}

impl<R: AsyncRead + Unpin + Send + 'static> Incoming<R> {
    pub(super) fn new(
        from: R,
        over: &CancellationToken,
        output: Arc<output::SignalSink>,
        fault: Fault,
        message_max: usize,
    ) -> Self {
        let drain = Drain::new(from, over);
        Self { drain, output, fault, message_max, partial: Vec::new(), searched: 0, greeted: false }
    }

    /// Returns the messages as they arrive, until the end or the first invalid one.
    pub(super) fn messages(self) -> impl Stream<Item = io::Result<String>> + Send + 'static {
        // After an error the stream has ended and returns nothing more.
        Box::pin(stream::unfold(Some(self), async |state| {
            let mut incoming = state?;
            match incoming.next().await {
                Some(Ok(line)) => Some((Ok(line), Some(incoming))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        }))
    }

    async fn next(&mut self) -> Option<io::Result<String>> {
        loop {
            if let Some(line) = self.line() {
                if line.iter().all(u8::is_ascii_whitespace) {
                    continue;
                }
                return Some(self.checked(line));
            }
            if self.partial.len() > self.message_max {
                let what = format!("sent a message of more than {} bytes", self.message_max);
                return Some(Err(self.fault.set(what)));
            }
            match self.drain.next().await {
                Some(chunk) => {
                    self.output.count(chunk.len());
                    self.partial.extend_from_slice(chunk);
                }
                None if self.partial.is_empty() => {
                    self.fault.closed.cancel();
                    return None;
                }
                None => {
                    let what =
                        format!("ended in the middle of a message, after {} bytes", self.partial.len());
                    return Some(Err(self.fault.set(what)));
                }
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        match self.partial[self.searched..].iter().position(|byte| *byte == b'\n') {
            Some(found) => {
                let rest = self.partial.split_off(self.searched + found + 1);
                let mut line = std::mem::replace(&mut self.partial, rest);
                line.pop();
                self.searched = 0;
                Some(line)
            }
            None => {
                self.searched = self.partial.len();
                None
            }
        }
    }

    /// Rejects another protocol version before any further field is parsed.
    fn understood(&mut self, text: String) -> io::Result<String> {
        if !self.greeted
            && let Ok(greeting) = serde_json::from_str::<Greeting>(&text)
        {
            self.greeted = true;
            let version = greeting.result.version;
            if version != VERSION {
                let what = format!("uses protocol version {version}, and drydock supports version {VERSION}");
                return Err(self.fault.set(what));
            }
        }
        Ok(text)
    }

    fn checked(&mut self, line: Vec<u8>) -> io::Result<String> {
        if line.len() > self.message_max {
            let what =
                format!("sent a message of {} bytes, more than the {} allowed", line.len(), self.message_max);
            return Err(self.fault.set(what));
        }
        let text = String::from_utf8_lossy(&line).into_owned();
        if !text.trim_start().starts_with('{') {
            return Err(self.fault.set(format!("sent a line that is not a message: {}", quoted(&text))));
        }
        match serde_json::from_str::<IgnoredAny>(&text) {
            Ok(_) => self.understood(text),
            Err(error) => Err(self
                .fault
                .set(format!("sent a message that is not valid JSON ({error}): {}", quoted(&text)))),
        }
    }
}

fn quoted(text: &str) -> String {
    let shown: String = text.chars().take(QUOTED_MAX).collect();
    let cut = if shown.len() < text.len() { "…" } else { "" };
    format!("{shown:?}{cut}")
}

/// Writes messages to an agent, one per line.
pub(super) fn outgoing<W>(to: W, fault: Fault) -> impl Sink<String, Error = io::Error> + Send + 'static
where
    W: AsyncWrite + Unpin + Send + 'static,
{
    Box::pin(sink::unfold((to, fault), async |(mut to, fault), mut line: String| {
        line.push('\n');
        let written = match to.write_all(line.as_bytes()).await {
            Ok(()) => to.flush().await,
            Err(error) => Err(error),
        };
        match written {
            Ok(()) => Ok((to, fault)),
            Err(error) => {
                // The agent most likely exited; then the end of its output is reported, which is more
                // informative.
                if tokio::time::timeout(CLOSING_PATIENCE, fault.closed.cancelled()).await.is_err() {
                    return Err(fault.set(format!("does not read its input: {error}")));
                }
                Ok((to, fault))
            }
        }
    }))
}
