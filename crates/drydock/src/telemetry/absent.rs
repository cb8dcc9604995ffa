//! The stub for a program that was built without traces.

use std::path::Path;

use axum::http::HeaderMap;
use drydock_api::Problem;
use tracing::Span;
use tracing_subscriber::{Layer, Registry};

/// The export of traces. It has no value because nothing is exported.
#[derive(Debug)]
pub(crate) enum Traces {}

impl Traces {
    /// Does nothing: a configuration with traces is refused when it is read.
    pub(crate) fn begin(_config: Option<&Path>) -> Result<Option<Self>, Box<Problem>> {
        Ok(None)
    }

    /// Returns the layer that collects spans.
    pub(crate) fn layer(&self) -> Box<dyn Layer<Registry> + Send + Sync> {
        match *self {}
    }

    pub(crate) fn end(self) {
        match self {}
    }
}

/// Does nothing; with traces, it makes a span part of the trace in a request's headers.
pub(crate) fn continued(_span: &Span, _headers: &HeaderMap) {}
