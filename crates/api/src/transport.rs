//! The interface between the client and its transport: a connection to a server, or the router in this process.

use std::error::Error;
use std::pin::Pin;

use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Bytes;
use hyper::{Request, Response};

/// A boxed future, so that the code it awaits is not compiled again in every crate that uses it.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Carries one request to a router and returns the answer.
pub trait Transport: Send + Sync {
    /// Sends a request. A response with an error status is a success of the transport.
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>>;

    /// Sends a request whose response is a stream.
    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>>;
}

/// The body of a streamed response.
pub type BodyStream = UnsyncBoxBody<Bytes, TransportError>;

/// No answer was received.
#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub struct TransportError {
    text: String,
    #[source]
    source: Option<Box<dyn Error + Send + Sync>>,
}

impl TransportError {
    /// Returns an error with a text about the attempt.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), source: None }
    }

    /// Returns an error with a text about the attempt and its cause.
    pub fn caused(text: impl Into<String>, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { text: text.into(), source: Some(source.into()) }
    }
}
