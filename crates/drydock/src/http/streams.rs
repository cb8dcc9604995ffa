//! Streams that outlive the request that opened them: each ends when the token that it was opened with does. One look
//! at the store for each token that has streams, twice a second, however many those are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use drydock_domain::{TokenId, told};
use drydock_engine::Engine;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

/// How often the tokens of open streams are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// How many streams are open, whoever opened them.
#[derive(Debug, Clone, Default)]
pub(super) struct Readers(Arc<AtomicUsize>);

/// One of them.
struct Reader(Readers);

impl Readers {
    /// Counts an answer that is a stream for as long as it is read.
    pub(super) fn counted(&self, response: Response) -> Response {
        if !is_stream(&response) {
            return response;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let reader = Reader(self.clone());
        response.map(|body| {
            Body::from_stream(body.into_data_stream().map(move |part| {
                let _counted = &reader;
                part
            }))
        })
    }

    /// Returns how many there are.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_stream(response: &Response) -> bool {
    let media = response.headers().get(CONTENT_TYPE).map(|media| media.as_bytes());
    media == Some(super::stream::MEDIA_TYPE.as_bytes())
}

/// The streams that are open, by the token that opened them.
#[derive(Debug, Clone, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<TokenId, Open>>>);

#[derive(Debug, Default)]
struct Open {
    count: usize,
    over: CancellationToken,
}

/// A place among the streams of a token.
struct Place {
    streams: Streams,
    token: TokenId,
}

impl Streams {
    /// Lets an answer that is a stream end with its token.
    pub(super) fn bound(&self, token: &TokenId, response: Response) -> Response {
        if !is_stream(&response) {
            return response;
        }
        let (place, over) = self.place(token);
        response.map(|body| {
            let flow = body.into_data_stream().take_until(over.cancelled_owned());
            Body::from_stream(flow.map(move |part| {
                // The place is given up when the stream is.
                let _kept = &place;
                part
            }))
        })
    }

    fn place(&self, token: &TokenId) -> (Place, CancellationToken) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(token.clone()).or_default();
        open.count += 1;
        (Place { streams: self.clone(), token: token.clone() }, open.over.clone())
    }

    fn tokens(&self) -> Vec<TokenId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn end(&self, token: &TokenId) {
        // Left in its place until its streams have gone: one that was let in a moment before ends at once, too.
        if let Some(open) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token) {
            open.over.cancel();
        }
    }

    /// Ends streams whose tokens have ended, until the engine stops.
    pub(super) async fn mind(&self, engine: &Engine) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = engine.stopping().cancelled() => return,
            }
            for token in self.tokens() {
                match engine.token_counts(&token).await {
                    Ok(true) => {}
                    Ok(false) => self.end(&token),
                    Err(error) => {
                        tracing::warn!(error = %told(&error), "could not look whether a token still counts")
                    }
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut streams = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.token) {
            open.count = open.count.saturating_sub(1);
            if open.count == 0 {
                streams.remove(&self.token);
            }
        }
    }
}
