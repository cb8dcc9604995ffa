//! Calls the API for the user of the page. Each call carries the credentials of the user's request, so authentication
//! and the table of rights apply as for any other client.

use std::sync::OnceLock;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use drydock_api::http::{Request, Response};
use drydock_api::{BodyStream, BoxFuture, Bytes, Client, Transport, TransportError};
use drydock_domain::TokenRole;
use serde::de::DeserializeOwned;

use super::trouble::Trouble;
use crate::http::{Local, Offer, PAGE, offer};

/// The state shared by all views.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) api: Router,
}

/// The named segments of the path.
pub(super) struct Named<T>(pub(super) T);

/// The query of the URL.
pub(super) struct Asked<T>(pub(super) T);

/// A transport that calls the API with the user's credentials.
pub(super) struct Ask {
    local: Local,
    credentials: HeaderMap,
    /// The caller's role as authenticated, known after the first answer.
    role: OnceLock<TokenRole>,
}

impl Ask {
    /// Returns a client that acts for the user of the page.
    pub(super) fn client(&self) -> Client<'_> {
        Client::new(self)
    }

    /// Returns what to offer to the user. Known after the first call.
    pub(super) fn offer(&self) -> Offer {
        offer(self.role.get())
    }

    fn signed(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        for (name, value) in &self.credentials {
            request.headers_mut().append(name, value.clone());
        }
        request
    }
}

impl Transport for Ask {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        let answering = self.local.send(self.signed(request));
        Box::pin(async move {
            let response = answering.await?;
            if let Some(role) = response.extensions().get::<TokenRole>() {
                self.role.get_or_init(|| role.clone());
            }
            Ok(response)
        })
    }

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        self.local.open(self.signed(request))
    }
}

impl FromRequestParts<Page> for Ask {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, page: &Page) -> Result<Self, Self::Rejection> {
        let mut credentials = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE, PAGE] {
            for value in parts.headers.get_all(&name) {
                credentials.append(name.clone(), value.clone());
            }
        }
        Ok(Ask { local: Local::new(page.api.clone()), credentials, role: OnceLock::new() })
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<Page> for Named<T> {
    type Rejection = Trouble;

    async fn from_request_parts(parts: &mut Parts, page: &Page) -> Result<Self, Trouble> {
        let read = Path::<T>::from_request_parts(parts, page).await;
        read.map(|Path(named)| Named(named)).map_err(|error| Trouble::unreadable(&error.body_text()))
    }
}

impl<T: DeserializeOwned> FromRequestParts<Page> for Asked<T> {
    type Rejection = Trouble;

    async fn from_request_parts(parts: &mut Parts, page: &Page) -> Result<Self, Trouble> {
        let read = Query::<T>::from_request_parts(parts, page).await;
        read.map(|Query(asked)| Asked(asked)).map_err(|error| Trouble::unreadable(&error.body_text()))
    }
}
