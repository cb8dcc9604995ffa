//! The client: serializes a typed request, and parses an answer into a typed value or a problem. The routes
//! themselves are in `routes.rs`.

use drydock_domain::error_chain;
use hyper::body::Bytes;
use hyper::header::{ACCEPT, CONTENT_TYPE, HeaderValue, IF_MATCH};
use hyper::{Method, Request, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::word::words;
use crate::{Code, Phase, Problem, Transport, TransportError};

const JSON: &str = "application/json";
const EVENT_STREAM: &str = "text/event-stream";
const TEXT_SHOWN_MAX: usize = 200;

/// Sends requests to a drydock router over any transport.
#[derive(Clone, Copy)]
pub struct Client<'t> {
    transport: &'t dyn Transport,
}

/// Why a request returned no value.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The server refused the request or failed.
    #[error(transparent)]
    Problem(Box<Problem>),
    /// No answer was received.
    #[error(transparent)]
    Unreachable(#[from] TransportError),
    /// The answer is not one of a drydock server.
    #[error("could not parse the response to {request}: {reason}")]
    Unreadable {
        /// The request, for the message.
        request: String,
        /// The error in the answer.
        reason: String,
    },
}

words! {
    /// The commands that request a phase of a plan.
    PlanMove {
        /// Start or continue Strategize.
        Strategize = "strategize",
        /// Continue to Execute.
        Execute = "execute",
        /// Continue to Apply.
        Apply = "apply",
    }
}

impl PlanMove {
    /// Returns the phase that it requests.
    pub fn phase(self) -> Phase {
        match self {
            PlanMove::Strategize => Phase::Strategize,
            PlanMove::Execute => Phase::Execute,
            PlanMove::Apply => Phase::Apply,
        }
    }

    /// Returns the command that requests a phase.
    pub fn to(phase: Phase) -> Self {
        match phase {
            Phase::Strategize => PlanMove::Strategize,
            Phase::Execute => PlanMove::Execute,
            Phase::Apply => PlanMove::Apply,
        }
    }
}

/// Conditions on a request that changes something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestOptions {
    /// The revision that the plan must still have.
    pub if_match: Option<i64>,
    /// The idempotency key: under the same key, the request is performed once.
    pub idempotency_key: Option<String>,
}

impl<'t> Client<'t> {
    /// Returns a client over a transport.
    pub fn new(transport: &'t dyn Transport) -> Self {
        Self { transport }
    }

    pub(crate) fn transport(&self) -> &'t dyn Transport {
        self.transport
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        self.exchange(Method::GET, path, None, &RequestOptions::default()).await
    }

    pub(crate) async fn delete<T: DeserializeOwned>(&self, path: String) -> Result<T, ClientError> {
        self.exchange(Method::DELETE, path, None, &RequestOptions::default()).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: String,
        body: &impl Serialize,
        terms: &RequestOptions,
    ) -> Result<T, ClientError> {
        let body = serde_json::to_vec(body).expect("requests are structs of text, numbers and words");
        self.exchange(Method::POST, path, Some(Bytes::from(body)), terms).await
    }

    /// Returns an answer that is not JSON.
    pub(crate) async fn fetch(&self, path: String) -> Result<Response<Bytes>, ClientError> {
        let asked = format!("GET {path}");
        if let Some(problem) = unnamed(&path) {
            return Err(ClientError::Problem(Box::new(problem)));
        }
        let request = request(Method::GET, &path, None, &RequestOptions::default())
            .map_err(|error| TransportError::caused(format!("could not send {asked}"), error))?;
        let response = self.transport.send(request).await?;
        if response.status().is_success() {
            return Ok(response);
        }
        match read::<serde_json::Value>(&asked, &response) {
            Err(error) => Err(error),
            Ok(_) => unreachable!("an error status is never parsed as a response"),
        }
    }

    async fn exchange<T: DeserializeOwned>(
        &self,
        method: Method,
        path: String,
        body: Option<Bytes>,
        terms: &RequestOptions,
    ) -> Result<T, ClientError> {
        let asked = format!("{method} {path}");
        if let Some(problem) = unnamed(&path) {
            return Err(ClientError::Problem(Box::new(problem)));
        }
        let request = request(method, &path, body, terms)
            .map_err(|error| TransportError::caused(format!("could not send {asked}"), error))?;
        let response = self.transport.send(request).await?;
        read(&asked, &response)
    }
}

/// Returns an error if a name in the path is empty: the path would be that of another route, or of none.
fn unnamed(path: &str) -> Option<Problem> {
    let path = path.split('?').next().unwrap_or(path);
    let empty = path.split('/').skip(1).any(str::is_empty);
    empty.then(|| Problem::new(Code::NotFound, "the id or name is empty").hint("pass an id or a name"))
}

/// Returns the request for a stream.
pub(crate) fn request_flow(path: &str) -> Result<Request<Bytes>, hyper::http::Error> {
    let mut request = request(Method::GET, path, None, &RequestOptions::default())?;
    request.headers_mut().insert(ACCEPT, HeaderValue::from_static(EVENT_STREAM));
    Ok(request)
}

fn request(
    method: Method,
    path: &str,
    body: Option<Bytes>,
    terms: &RequestOptions,
) -> Result<Request<Bytes>, hyper::http::Error> {
    let mut request = Request::builder().method(method).uri(format!("/api/v1{path}")).header(ACCEPT, JSON);
    if body.is_some() {
        request = request.header(CONTENT_TYPE, JSON);
    }
    if let Some(revision) = terms.if_match {
        request = request.header(IF_MATCH, revision.to_string());
    }
    if let Some(key) = &terms.idempotency_key {
        request = request.header("Idempotency-Key", key);
    }
    request.body(body.unwrap_or_default())
}

pub(crate) fn read<T: DeserializeOwned>(asked: &str, response: &Response<Bytes>) -> Result<T, ClientError> {
    let (status, body) = (response.status(), response.body());
    let unreadable = |reason: String| ClientError::Unreadable { request: asked.to_owned(), reason };
    if !status.is_success() {
        return Err(match serde_json::from_slice::<Problem>(body) {
            Ok(problem) => ClientError::Problem(Box::new(problem)),
            Err(_) => unreadable(format!("status {status} with {}", shown(body))),
        });
    }
    // A route without an answer sends no body, which is parsed as the empty object.
    let body: &[u8] = if status == StatusCode::NO_CONTENT || body.is_empty() { b"{}" } else { body };
    serde_json::from_slice(body).map_err(|error| unreadable(format!("{error} in {}", shown(body))))
}

/// Returns the start of a body for an error message.
fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut short: String = text.chars().take(TEXT_SHOWN_MAX).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    format!("{short:?}")
}

impl From<Problem> for ClientError {
    fn from(problem: Problem) -> Self {
        ClientError::Problem(Box::new(problem))
    }
}

impl From<ClientError> for Problem {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Problem(problem) => *problem,
            ClientError::Unreachable(error) => Problem::new(Code::ServerUnreachable, error_chain(&error))
                .hint("check the address and that `drydock serve` is running there"),
            ClientError::Unreadable { .. } => Problem::new(Code::ServerUnreachable, error.to_string())
                .hint("check that the address is a drydock server of the same version"),
        }
    }
}

impl From<ClientError> for Box<Problem> {
    fn from(error: ClientError) -> Self {
        Box::new(error.into())
    }
}
