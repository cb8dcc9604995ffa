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

use super::trouble::PageError;
use crate::http::{Local, PAGE, PageAccess, offer};

/// The state shared by all views.
#[derive(Clone)]
pub(super) struct PageState {
    pub(super) api: Router,
}

/// The named segments of the path.
pub(super) struct PagePath<T>(pub(super) T);

/// The query of the URL.
pub(super) struct PageQuery<T>(pub(super) T);

/// A transport that calls the API with the user's credentials.
pub(super) struct PageClient {
    local: Local,
    credentials: HeaderMap,
    /// The caller's role as authenticated, known after the first answer.
    role: OnceLock<TokenRole>,
}

impl PageClient {
    /// Returns a client that acts for the user of the page.
    pub(super) fn client(&self) -> Client<'_> {
        Client::new(self)
    }

    /// Returns what to offer to the user. Known after the first call.
    pub(super) fn offer(&self) -> PageAccess {
        offer(self.role.get())
    }

    fn signed(&self, mut request: Request<Bytes>) -> Request<Bytes> {
        for (name, value) in &self.credentials {
            request.headers_mut().append(name, value.clone());
        }
        request
    }
}

impl Transport for PageClient {
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

impl FromRequestParts<PageState> for PageClient {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, page: &PageState) -> Result<Self, Self::Rejection> {
        let mut credentials = HeaderMap::new();
        for name in [AUTHORIZATION, COOKIE, PAGE] {
            for value in parts.headers.get_all(&name) {
                credentials.append(name.clone(), value.clone());
            }
        }
        Ok(PageClient { local: Local::new(page.api.clone()), credentials, role: OnceLock::new() })
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<PageState> for PagePath<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, page: &PageState) -> Result<Self, PageError> {
        let read = Path::<T>::from_request_parts(parts, page).await;
        read.map(|Path(named)| PagePath(named)).map_err(|error| PageError::unreadable(&error.body_text()))
    }
}

impl<T: DeserializeOwned> FromRequestParts<PageState> for PageQuery<T> {
    type Rejection = PageError;

    async fn from_request_parts(parts: &mut Parts, page: &PageState) -> Result<Self, PageError> {
        let read = Query::<T>::from_request_parts(parts, page).await;
        read.map(|Query(asked)| PageQuery(asked)).map_err(|error| PageError::unreadable(&error.body_text()))
    }
}
