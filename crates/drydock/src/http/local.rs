//! The router called in this process. The command line uses it if no server is given.

use std::sync::atomic::{AtomicBool, Ordering};

use axum::Router;
use axum::body::Body;
use axum::http::Method;
use drydock_api::http::{Request, Response};
use drydock_api::{BodyStream, BoxFuture, Bytes, Transport, TransportError};
use http_body_util::BodyExt;
use tower::ServiceExt;

/// Sends requests to a router without a socket.
pub(crate) struct Local {
    router: Router,
    changed: AtomicBool,
}

impl Local {
    pub(crate) fn new(router: Router) -> Self {
        Self { router, changed: AtomicBool::new(false) }
    }

    /// Returns true if a request was sent that may change something.
    pub(crate) fn has_changed_things(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }
}

impl Transport for Local {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let answering = self.open(request);
        Box::pin(async move {
            let (parts, flow) = answering.await?.into_parts();
            Ok(Response::from_parts(parts, flow.collect().await?.to_bytes()))
        })
    }

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        let router = self.router.clone();
        if request.method() != Method::GET {
            self.changed.store(true, Ordering::Relaxed);
        }
        Box::pin(async move {
            let answered = router.oneshot(request.map(Body::from)).await;
            let (parts, body) = match answered {
                Ok(response) => response.into_parts(),
                Err(never) => match never {},
            };
            let failed = |error| TransportError::caused("could not read the response", error);
            Ok(Response::from_parts(parts, body.map_err(failed).boxed_unsync()))
        })
    }
}
