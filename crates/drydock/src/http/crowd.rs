//! The crowd: connections that are open and wait for nothing from us. They have not said yet what they want, or were
//! answered and ask no more. When there is no room, the one of them that has been silent longest makes it. A connection
//! with a request or a stream under way is not among them, and nothing that is being done for it is cut short.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use axum::body::Body;
use hyper::body::{Bytes, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

/// Those who wait for nothing, by the order in which they fell silent.
#[derive(Debug, Clone, Default)]
pub(super) struct Crowd(Arc<Mutex<Silent>>);

#[derive(Debug, Default)]
struct Silent {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

/// A connection, and whether it is among them.
#[derive(Debug)]
pub(super) struct Place {
    crowd: Crowd,
    /// Called off when the connection has to make room.
    pub(super) put_off: CancellationToken,
    standing: Mutex<Standing>,
}

/// What a connection is about. Only its own task changes it.
#[derive(Debug, Clone, Copy)]
enum Standing {
    /// Nothing; it is in the crowd under this number.
    Silent(u64),
    /// It has asked.
    Asking,
    /// The answer is complete, and may not all have been sent.
    Answered,
}

impl Crowd {
    /// Returns the place of a connection that has just been made.
    pub(super) fn place(&self) -> Place {
        let put_off = CancellationToken::new();
        let standing = Mutex::new(Standing::Silent(self.enter(&put_off)));
        Place { crowd: self.clone(), put_off, standing }
    }

    /// Puts off the one that has been silent longest; says whether there was one.
    pub(super) fn make_room(&self) -> bool {
        let mut silent = self.lock();
        let first = silent.waiting.pop_first();
        // Before the lock is let go: whoever begins to ask now must see it.
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

    fn lock(&self) -> MutexGuard<'_, Silent> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Leaves the crowd with a request; says whether it may be answered. One that was put off a moment before may not: the
    /// connection is about to be dropped, and the work with it.
    pub(super) fn ask(&self) -> bool {
        if let Standing::Silent(number) = std::mem::replace(&mut *self.standing(), Standing::Asking) {
            self.crowd.leave(number);
        }
        !self.put_off.is_cancelled()
    }

    /// Notes that all that was written has been sent: whoever has its answer is in the crowd again.
    pub(super) fn flushed(&self) {
        let mut standing = self.standing();
        if let Standing::Answered = *standing {
            *standing = Standing::Silent(self.crowd.enter(&self.put_off));
        }
    }

    fn answered(&self) {
        *self.standing() = Standing::Answered;
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Standing::Silent(number) = *self.standing() {
            self.crowd.leave(number);
        }
    }
}

/// The body of an answer. It is let go when the last of it has been written.
pub(super) struct Answer {
    body: Body,
    place: Arc<Place>,
}

impl Answer {
    /// Returns the body of an answer to the connection at this place.
    pub(super) fn new(body: Body, place: Arc<Place>) -> Self {
        Self { body, place }
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.place.answered();
    }
}

impl hyper::body::Body for Answer {
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
