//! The seam between the client and what carries its requests: a connection to a server, or the router in this process.

use std::error::Error;
use std::pin::Pin;

use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use hyper::{Request, Response};

/// A future behind a pointer, so that what it waits for is not compiled again in every crate that awaits it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Carries one request to a router and brings the answer.
pub trait Transport: Send + Sync {
    /// Sends a request; an answer with an error status is an answer.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>>;

    /// Sends a request whose answer goes on for as long as it is read.
    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Flow>, TransportError>>;
}

/// The body of an answer as it comes.
pub type Flow = UnsyncBoxBody<Bytes, TransportError>;

/// No answer came.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct TransportError {
    text: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl TransportError {
    /// Says what was attempted.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: None }
    }

    /// Says what was attempted and what came in between.
    pub fn caused(text: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { text: text.into(), source: Some(source.into()) }
    }
}
