//! Idle connections: open connections without a request in progress. They have not sent the whole head of a request
//! yet, or their last answer has been sent. When the limit of connections is reached, the one that has been idle
//! longest is closed. A connection with a request or a stream in progress is never idle, so it is not closed for
//! another one.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// The idle connections, in the order in which they became idle.
#[derive(Debug, Clone, Default)]
pub(super) struct IdleConnections(Arc<Mutex<IdleQueue>>);

#[derive(Debug, Default)]
struct IdleQueue {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

/// A connection, and whether it is idle.
#[derive(Debug)]
pub(super) struct ConnectionSlot {
    crowd: IdleConnections,
    /// Cancelled when the connection must be closed to make room.
    pub(super) put_off: CancellationToken,
    standing: Mutex<ConnectionActivity>,
}

/// State of a connection. Only the connection's own task changes it.
#[derive(Debug, Clone, Copy)]
enum ConnectionActivity {
    /// Idle, with this number in the list of idle connections.
    Silent(u64),
    /// A request is in progress.
    Asking,
    /// The answer is complete but may not have been sent entirely.
    Answered,
}

impl IdleConnections {
    /// Returns the state of a new connection, which starts idle.
    pub(super) fn place(&self) -> ConnectionSlot {
        let put_off = CancellationToken::new();
        let standing = Mutex::new(ConnectionActivity::Silent(self.enter(&put_off)));
        ConnectionSlot { crowd: self.clone(), put_off, standing }
    }

    /// Closes the connection that has been idle longest. Returns false if none is idle.
    pub(super) fn make_room(&self) -> bool {
        let mut silent = self.lock();
        let first = silent.waiting.pop_first();
        // Cancelled while the lock is held: a connection that starts a request concurrently must see it.
        first.inspect(|(_, put_off)| put_off.cancel()).is_some()
    }

    fn enter(&self, put_off: &CancellationToken) -> u64 {
        let mut silent = self.lock();
        let number = silent.next;
        silent.next += 1;
        silent.waiting.insert(number, put_off.clone());
        number
    }

    fn leave(&self, number: u64) {
        self.lock().waiting.remove(&number);
    }

    fn lock(&self) -> MutexGuard<'_, IdleQueue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionSlot {
    /// Marks the connection as busy with a request. Returns false if the request must not be handled because the
    /// connection was just chosen to be closed, which would drop the work with it.
    pub(super) fn ask(&self) -> bool {
        if let ConnectionActivity::Silent(number) =
            std::mem::replace(&mut *self.standing(), ConnectionActivity::Asking)
        {
            self.crowd.leave(number);
        }
        !self.put_off.is_cancelled()
    }

    /// Called when all written bytes have been sent. A connection whose answer is complete becomes idle again.
    pub(super) fn flushed(&self) {
        let mut standing = self.standing();
        if let ConnectionActivity::Answered = *standing {
            *standing = ConnectionActivity::Silent(self.crowd.enter(&self.put_off));
        }
    }

    fn answered(&self) {
        *self.standing() = ConnectionActivity::Answered;
    }

    fn standing(&self) -> MutexGuard<'_, ConnectionActivity> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        if let ConnectionActivity::Silent(number) = *self.standing() {
            self.crowd.leave(number);
        }
    }
}

/// The body of an answer. It is dropped after its last byte was written, which marks the answer as complete.
pub(super) struct TrackedBody {
    body: Body,
    place: Arc<ConnectionSlot>,
}

impl TrackedBody {
    /// Returns the body of an answer on this connection.
    pub(super) fn new(body: Body, place: Arc<ConnectionSlot>) -> Self {
        Self { body, place }
    }
}

impl Drop for TrackedBody {
    fn drop(&mut self) {
        self.place.answered();
    }
}

impl hyper::body::Body for TrackedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
