//! The feed as a stream: parses server-sent events. After a broken connection a client continues from the last event
//! it received; a partial event is ignored.

use std::time::Duration;

use http_body_util::BodyExt;
use hyper::Response;
use tokio::time::timeout;

use crate::client::{read, request_flow};
use crate::{BodyStream, Client, ClientError, Event, FeedEnd, TransportError};

/// The maximum time without data. The server sends a heartbeat every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(45);
/// The maximum size of an event.
const EVENT_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A message of a stream.
#[derive(Debug, Clone, PartialEq)]
pub enum StreamItem {
    /// A new event.
    Event(Event),
    /// The requested position is beyond the end of the feed. Only new events follow.
    End(FeedEnd),
}

/// A stream of events.
pub struct EventStream {
    asked: String,
    flow: BodyStream,
    unread: Vec<u8>,
}

impl EventStream {
    pub(crate) async fn open(client: &Client<'_>, path: String) -> Result<Self, ClientError> {
        let asked = format!("GET {path}");
        let request = request_flow(&path)
            .map_err(|error| TransportError::caused(format!("could not send {asked}"), error))?;
        let (head, flow) = client.transport().open(request).await?.into_parts();
        if head.status.is_success() {
            return Ok(Self { asked, flow, unread: Vec::new() });
        }
        let body = flow.collect().await?.to_bytes();
        match read::<serde_json::Value>(&asked, &Response::from_parts(head, body)) {
            Err(error) => Err(error),
            Ok(_) => unreachable!("an error status is never parsed as a response"),
        }
    }

    /// Returns the next message, or none if the server ended the stream. Cancel safe: dropping the future loses
    /// nothing.
    pub async fn next(&mut self) -> Result<Option<StreamItem>, ClientError> {
        let unreadable =
            |asked: &str, reason: String| ClientError::Unreadable { request: asked.to_owned(), reason };
        loop {
            while let Some(block) = cut(&mut self.unread) {
                if let Some(text) = told(&block) {
                    let heard = if is_end(&block) {
                        serde_json::from_str(&text).map(StreamItem::End)
                    } else {
                        serde_json::from_str(&text).map(StreamItem::Event)
                    };
                    return heard.map(Some).map_err(|error| unreadable(&self.asked, error.to_string()));
                }
            }
            if self.unread.len() > EVENT_BYTES_MAX {
                return Err(unreadable(
                    &self.asked,
                    format!("an event has more than {EVENT_BYTES_MAX} bytes"),
                ));
            }
            match timeout(SILENCE_MAX, self.flow.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Ok(bytes) = frame.into_data() {
                        self.unread.extend_from_slice(&bytes);
                    }
                }
                Ok(Some(Err(error))) => return Err(error.into()),
                Ok(None) => return Ok(None),
                Err(_) => return Err(TransportError::new("the server stopped sending").into()),
            }
        }
    }
}

/// Removes and returns the first complete block, which ends with an empty line.
fn cut(unread: &mut Vec<u8>) -> Option<String> {
    let end = unread.windows(2).position(|pair| pair == b"\n\n")?;
    let block = String::from_utf8_lossy(&unread[..end]).into_owned();
    unread.drain(..end + 2);
    Some(block)
}

/// Returns true if a block reports the end of the feed.
fn is_end(block: &str) -> bool {
    block.lines().filter_map(|line| line.strip_prefix("event:")).any(|kind| kind.trim() == FeedEnd::EVENT)
}

/// Returns the data of a block, or none for a heartbeat.
fn told(block: &str) -> Option<String> {
    let lines = block.lines().filter_map(|line| line.strip_prefix("data:"));
    let lines: Vec<_> = lines.map(|line| line.strip_prefix(' ').unwrap_or(line)).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks if an event is returned before it is complete, or a heartbeat is taken for one.
    #[test]
    fn only_whole_blocks_with_data_are_told() {
        let mut unread = b": heartbeat\n\nid: 1\nevent: alert\ndata: {}\n\nid: 2\nda".to_vec();
        let blocks: Vec<_> = std::iter::from_fn(|| cut(&mut unread)).map(|block| told(&block)).collect();
        assert_eq!(blocks, [None, Some("{}".to_owned())]);
        assert_eq!(unread, b"id: 2\nda");
        assert_eq!(told("data: a\ndata:b"), Some("a\nb".to_owned()));
    }
}
