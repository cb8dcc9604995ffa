//! Asking the API on behalf of whoever looks: the request's own credentials go with each question, so the door and the
//! table of rights judge it as they judge any other.

use std::sync::OnceLock;

use axum::Router;
use axum::extract::{FromRequestParts, Path, Query};
use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::request::Parts;
use drydock_api::http::{Request, Response};
use drydock_api::{BoxFuture, Bytes, Client, Flow, Transport, TransportError};
use drydock_domain::Role;
use serde::de::DeserializeOwned;

use super::trouble::Trouble;
use crate::http::{Local, Offer, PAGE, offer};

/// What every view works with.
#[derive(Clone)]
pub(super) struct Page {
    pub(super) api: Router,
}

/// What the address names.
pub(super) struct Named<T>(pub(super) T);

/// What the query asks for.
pub(super) struct Asked<T>(pub(super) T);

/// Asks as whoever looks at the page.
pub(super) struct Ask {
    local: Local,
    credentials: HeaderMap,
    /// The role that the door knew the asker by, from the first answer on.
    role: OnceLock<Role>,
}

impl Ask {
    /// Returns a client that asks as whoever looks.
    pub(super) fn client(&self) -> Client<'_> {
        Client::new(self)
    }

    /// Returns what to offer to whoever looks; known once something was asked.
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
            if let Some(role) = response.extensions().get::<Role>() {
                self.role.get_or_init(|| role.clone());
            }
            Ok(response)
        })
    }

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Flow>, TransportError>> {
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
