//! The reply to an agent that waits until its message was handled.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// The receiver's result for a signal.
type ReplyResult = Result<(), String>;

/// Replies once to an agent that waits. If it is dropped unused, the agent continues without a reply.
#[derive(Debug, Clone)]
pub struct Reply {
    back: Arc<Mutex<Option<oneshot::Sender<ReplyResult>>>>,
}

impl Reply {
    pub(crate) fn new() -> (Self, oneshot::Receiver<ReplyResult>) {
        let (back, heard) = oneshot::channel();
        (Self { back: Arc::new(Mutex::new(Some(back))) }, heard)
    }

    /// Sends success, or the reason for the failure.
    pub fn say(&self, outcome: Result<(), String>) {
        let back = self.back.lock().unwrap_or_else(PoisonError::into_inner).take();
        // The send fails if the agent no longer waits; then no reply is needed.
        drop(back.map(|back| back.send(outcome)));
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.back, &other.back)
    }
}
