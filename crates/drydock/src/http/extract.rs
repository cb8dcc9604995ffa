//! Parses requests and writes answers. A body or query that cannot be parsed becomes a problem document, not plain
//! text.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{CONTENT_TYPE, IF_MATCH, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use drydock_api::{Code, Problem};
use drydock_domain::{Authority, Token};
use drydock_engine::{Caller, EngineError};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::problem::problem;
use super::router::{AppState, BODY_MAX};

/// The maximum time to receive the body of a request.
const BODY_TIME: Duration = Duration::from_secs(30);

/// A request that was refused, with the reason.
pub(crate) struct ApiError(pub(super) Box<Problem>);

/// Return type of a handler.
pub(super) type ApiResult<T> = Result<JsonResponse<T>, ApiError>;

/// Serializes a value as JSON.
pub(super) struct JsonResponse<T>(pub(super) T);

/// A value that is already serialized as JSON.
pub(super) struct RawJson(pub(super) Bytes);

pub(super) struct JsonBody<T>(pub(super) T);

/// The named segments of the path. By default there is one.
pub(super) struct Path<T = String>(pub(super) T);

pub(super) struct Query<T>(pub(super) T);

/// The authority with which the caller reads.
pub(super) struct As(pub(super) Authority);

/// The caller, and the revision it expects.
pub(super) struct RequestCaller(pub(super) Caller);

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, [(CONTENT_TYPE, Problem::MEDIA_TYPE)], json(&self.0)).into_response();
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        ApiError(Box::new(problem(&error)))
    }
}

impl From<drydock_store::StoreError> for ApiError {
    fn from(error: drydock_store::StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl<T: Serialize> IntoResponse for JsonResponse<T> {
    fn into_response(self) -> Response {
        RawJson(json(&self.0).into()).into_response()
    }
}

impl IntoResponse for RawJson {
    fn into_response(self) -> Response {
        let mut response = Response::new(self.0.into());
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

pub(super) fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("wire types have text keys and finite numbers")
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, _: &S) -> Result<Self, ApiError> {
        let typed = is_json(request.headers());
        let bytes = whole(request.into_body()).await?;
        if bytes.is_empty() {
            return read(b"{}");
        }
        // A browser may send a form to any origin without a preflight request, but not JSON.
        if !typed {
            let text = "the body has no JSON content type";
            return Err(refused(Code::Unparsable, text, "send it with Content-Type: application/json"));
        }
        read(&bytes)
    }
}

/// Reads a body to its end, within [`BODY_TIME`] and the maximum size.
pub(super) async fn whole(body: axum::body::Body) -> Result<Bytes, ApiError> {
    let read = Limited::new(body, BODY_MAX).collect();
    match tokio::time::timeout(BODY_TIME, read).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!("the body is longer than {BODY_MAX} bytes");
            Err(refused(Code::TooLarge, text, "send a smaller JSON object"))
        }
        Ok(Err(error)) => {
            let text = format!("the body could not be read: {error}");
            Err(refused(Code::Unparsable, text, "send one JSON object"))
        }
        Err(_) => {
            let text = format!("the body was not received within {} seconds", BODY_TIME.as_secs());
            Err(refused(Code::TooSlow, text, "send the request again without pauses"))
        }
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<JsonBody<T>, ApiError> {
    if has_nul(bytes) {
        let text = "the body: a text contains the character NUL, which git and PostgreSQL cannot store";
        return Err(refused(Code::Invalid, text, "remove it"));
    }
    serde_json::from_slice(bytes).map(JsonBody).map_err(|error| {
        let text = format!("the body: {error}");
        if error.is_data() {
            refused(Code::Invalid, text, "fix the named field")
        } else {
            refused(Code::Unparsable, text, "send one JSON object")
        }
    })
}

/// Returns true if any string of a JSON document contains the character NUL.
fn has_nul(json: &[u8]) -> bool {
    fn within(value: &Value) -> bool {
        match value {
            Value::String(text) => text.contains('\0'),
            Value::Array(values) => values.iter().any(within),
            Value::Object(fields) => fields.iter().any(|(name, value)| name.contains('\0') || within(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    // In JSON, NUL is always escaped. Only parsing shows whether the backslash itself is escaped.
    json.windows(6).any(|six| six == b"\\u0000")
        && serde_json::from_slice(json).is_ok_and(|value| within(&value))
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Path(segments)| Path(segments)).map_err(|error: PathRejection| {
            let hint = "escape names and ids as UTF-8 with %XX";
            refused(Code::Unparsable, format!("the URL: {}", error.body_text()), hint)
        })
    }
}

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let read = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        read.map(|axum::extract::Query(query)| Query(query))
            .map_err(|error| refused(Code::Invalid, error.body_text(), "fix or remove the named parameter"))
    }
}

impl FromRequestParts<AppState> for As {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, shared: &AppState) -> Result<Self, Infallible> {
        Ok(As(shared.caller(parts.extensions.get::<Token>(), None).authority))
    }
}

impl FromRequestParts<AppState> for RequestCaller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, shared: &AppState) -> Result<Self, ApiError> {
        let expected = expected(&parts.headers)?;
        Ok(RequestCaller(shared.caller(parts.extensions.get::<Token>(), expected)))
    }
}

fn expected(headers: &HeaderMap) -> Result<Option<i64>, ApiError> {
    let Some(value) = headers.get(IF_MATCH) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim_matches('"');
    let revision = text.parse().map_err(|_| {
        let text = format!("If-Match is {text:?}, but a revision is a number");
        refused(Code::Unparsable, text, "send the `revision` of the plan as you read it")
    })?;
    Ok(Some(revision))
}

/// Returns a refusal with a hint.
pub(super) fn refused(code: Code, text: impl Into<String>, hint: &str) -> ApiError {
    ApiError(Box::new(Problem::new(code, text.into()).hint(hint)))
}

/// Returns a refusal of an invalid value, with a hint.
pub(super) fn invalid(text: impl Into<String>, hint: &str) -> ApiError {
    refused(Code::Invalid, text, hint)
}

/// Returns the page size. A larger request is reduced to the maximum; the page's `next` shows that there is more.
pub(super) fn limit(asked: Option<u32>, default: u32, most: u32) -> Result<u32, ApiError> {
    match asked {
        Some(0) => Err(invalid("the limit is 0", "use a limit of 1 or more")),
        Some(asked) => Ok(asked.min(most)),
        None => Ok(default.min(most)),
    }
}
