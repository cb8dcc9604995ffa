//! Closes streams when the token that opened them ends, because a stream outlives the request that was authenticated.
//! Each token with open streams is checked in the store twice a second, once for all of its streams.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use drydock_domain::{TokenId, error_chain};
use drydock_engine::Engine;
use futures_util::StreamExt;
use tokio_util::sync::CancellationToken;

/// How often the tokens of open streams are checked.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The number of open streams of all callers.
#[derive(Debug, Clone, Default)]
pub(super) struct StreamCounter(Arc<AtomicUsize>);

/// Decrements the number when its stream is dropped.
struct CountedStream(StreamCounter);

impl StreamCounter {
    /// Counts a response that is a stream until it is dropped.
    pub(super) fn counted(&self, response: Response) -> Response {
        if !is_stream(&response) {
            return response;
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        let reader = CountedStream(self.clone());
        response.map(|body| {
            Body::from_stream(body.into_data_stream().map(move |part| {
                let _counted = &reader;
                part
            }))
        })
    }

    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn is_stream(response: &Response) -> bool {
    let media = response.headers().get(CONTENT_TYPE).map(|media| media.as_bytes());
    media == Some(super::stream::MEDIA_TYPE.as_bytes())
}

/// The open streams by token.
#[derive(Debug, Clone, Default)]
pub(super) struct TokenStreams(Arc<Mutex<HashMap<TokenId, OpenStreams>>>);

#[derive(Debug, Default)]
struct OpenStreams {
    count: usize,
    over: CancellationToken,
}

/// An entry for one stream of a token, removed on drop.
struct StreamGuard {
    streams: TokenStreams,
    token: TokenId,
}

impl TokenStreams {
    /// Makes a response that is a stream end together with its token.
    pub(super) fn bound(&self, token: &TokenId, response: Response) -> Response {
        if !is_stream(&response) {
            return response;
        }
        let (place, over) = self.place(token);
        response.map(|body| {
            let flow = body.into_data_stream().take_until(over.cancelled_owned());
            Body::from_stream(flow.map(move |part| {
                // The entry is dropped together with the stream.
                let _kept = &place;
                part
            }))
        })
    }

    fn place(&self, token: &TokenId) -> (StreamGuard, CancellationToken) {
        let mut streams = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(token.clone()).or_default();
        open.count += 1;
        (StreamGuard { streams: self.clone(), token: token.clone() }, open.over.clone())
    }

    fn tokens(&self) -> Vec<TokenId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    fn end(&self, token: &TokenId) {
        // The entry stays until its streams have ended, so a stream that was admitted just before is closed at once,
        // too.
        if let Some(open) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(token) {
            open.over.cancel();
        }
    }

    /// Closes streams whose tokens have ended, until the engine stops.
    pub(super) async fn close_revoked(&self, engine: &Engine) {
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
                        tracing::warn!(error = %error_chain(&error), "could not check whether a token is still valid")
                    }
                }
            }
        }
    }
}

impl Drop for StreamGuard {
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
