//! The way back to an agent that waits until what it said was dealt with.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// What the receiver of a signal made of it.
type Outcome = Result<(), String>;

/// Answers an agent that waits, once. One that is dropped unused lets the agent go on without a word.
#[derive(Debug, Clone)]
pub struct Reply {
    back: Arc<Mutex<Option<oneshot::Sender<Outcome>>>>,
}

impl Reply {
    pub(crate) fn new() -> (Self, oneshot::Receiver<Outcome>) {
        let (back, heard) = oneshot::channel();
        (Self { back: Arc::new(Mutex::new(Some(back))) }, heard)
    }

    /// Says that it was done, or why not.
    pub fn say(&self, outcome: Result<(), String>) {
        let back = self.back.lock().unwrap_or_else(PoisonError::into_inner).take();
        // An agent that waits no longer needs no answer.
        drop(back.map(|back| back.send(outcome)));
    }
}

impl PartialEq for Reply {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.back, &other.back)
    }
}
