//! `Idempotency-Key`: a client that does not know whether a request arrived sends it again under the same key, and it
//! is performed once. The answer is stored for a day and returned again. A request that was interrupted by a crash is
//! performed again only if that cannot have a second effect; otherwise the client gets an error that asks it to
//! check.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, IF_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use drydock_api::{Code, Problem};
use drydock_domain::{Token, error_chain};
use drydock_engine::shield;
use drydock_store::{IdempotencyClaim, KeyState, StoreError, StoredResponse};
use ring::digest::{Context, SHA256};

use super::extract::{ApiError, refused, whole};
use super::router::{AppState, ROOT};
use super::tokens::NOT_KEPT;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
const KEY_MAX: usize = 200;
/// How long an answer is stored.
const KEPT: Duration = Duration::from_secs(24 * 60 * 60);
/// The lifetime of a claim on a key, and how often it is renewed while the request runs. A short lifetime makes a
/// crash visible soon.
const CLAIM_TTL: Duration = Duration::from_secs(15);
const CLAIM_RENEW: Duration = Duration::from_secs(3);
/// The largest answer that is stored.
const ANSWER_MAX: usize = 16 * 1024 * 1024;

/// A random value that is the same each time a request is performed under one key.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(pub(super) u128);

/// Performs a request that changes something once, even if it is sent several times under its key.
pub(super) async fn idempotent(State(shared): State<AppState>, request: Request, next: Next) -> Response {
    match key(request.headers()) {
        Ok(None) => next.run(request).await,
        // Runs to its end even if the client disconnects, so that the answer is there when the client retries.
        Ok(Some(key)) => {
            let answered = shield(async move { once(&shared, key, request, next).await }).await;
            answered.unwrap_or_else(IntoResponse::into_response)
        }
        Err(refused) => refused.into_response(),
    }
}

fn key(headers: &HeaderMap) -> Result<Option<String>, ApiError> {
    let mut given = headers.get_all(KEY).iter();
    let wrong = || {
        let text = format!("Idempotency-Key is not a single value of 1 to {KEY_MAX} ASCII characters");
        refused(Code::Unparsable, text, "send a random value, such as a UUID, and a new one for each request")
    };
    match (given.next(), given.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(wrong()),
        (Some(value), None) => {
            let text = value.to_str().map_err(|_| wrong())?.trim();
            if text.is_empty() || text.len() > KEY_MAX { Err(wrong()) } else { Ok(Some(text.to_owned())) }
        }
    }
}

async fn once(shared: &AppState, key: String, request: Request, next: Next) -> Result<Response, ApiError> {
    let (head, body) = request.into_parts();
    let body = whole(body).await?;
    let asker = head.extensions.get::<Token>().map(|token| token.id.as_str()).unwrap_or_default();
    let path = head.uri.path().strip_prefix(ROOT).unwrap_or_default();
    let fingerprint = fingerprint(asker, &head.method, path, head.uri.query(), &head.headers, &body);
    // Only a plan's id is derived from the seed, so only the creation of a plan can be repeated without a duplicate.
    let is_repeatable = head.method == Method::POST && path == "/plans";
    let store = shared.engine.store();
    let asked = shared.engine.keyed_request(key, fingerprint);
    let claim = match store.idempotency_claim(asked, CLAIM_TTL, KEPT).await? {
        KeyState::New(claim) => claim,
        KeyState::CutShort(claim) if is_repeatable => claim,
        KeyState::CutShort(claim) => {
            store.idempotency_abandon(claim).await?;
            return Err(unknown());
        }
        KeyState::Answered(answer) => return Ok(replayed(answer)),
        KeyState::UnderWay => {
            let text = "a request with this key is still running";
            return Err(refused(
                Code::RequestUnderWay,
                text,
                "send it again in a second to get its response",
            ));
        }
        KeyState::Taken => {
            let text =
                "this key was used for another request: the token, method, URL, If-Match or body differ";
            return Err(refused(Code::KeyReused, text, "use a new key for a new request"));
        }
    };
    let mut request = Request::from_parts(head, Body::from(body));
    request.extensions_mut().insert(Seed(claim.seed));
    let response = tokio::select! {
        response = next.run(request) => response,
        never = keep(shared, &claim) => match never {},
    };
    settle(shared, claim, response).await
}

/// Renews a claim while it is polled.
async fn keep(shared: &AppState, claim: &IdempotencyClaim) -> Infallible {
    loop {
        tokio::time::sleep(CLAIM_RENEW).await;
        if let Err(error) = shared.engine.store().idempotency_renew(claim, CLAIM_TTL).await {
            tracing::warn!(error = %error_chain(&error), "could not renew the claim on an idempotency key");
        }
    }
}

fn unknown() -> ApiError {
    let text = "an earlier request with this key was interrupted, and it is unknown whether it took effect";
    refused(Code::OutcomeUnknown, text, "check whether it did; if not, send it with a new key")
}

/// Stores the answer of a request that succeeded or was refused permanently. After an internal failure, the outcome
/// stays unknown.
async fn settle(
    shared: &AppState,
    claim: IdempotencyClaim,
    response: Response,
) -> Result<Response, ApiError> {
    let (head, body) = response.into_parts();
    let store = shared.engine.store();
    let Ok(body) = to_bytes(body, ANSWER_MAX).await else {
        if let Err(error) = store.idempotency_abandon(claim).await {
            tracing::warn!(error = %error_chain(&error), "could not release an idempotency key whose response is too long");
        }
        let text = format!(
            "the request took effect, but its response is longer than the {ANSWER_MAX} bytes that can be stored"
        );
        return Err(refused(Code::OutcomeUnknown, text, "check its effect; do not send it again"));
    };
    let media = head.headers.get(CONTENT_TYPE).and_then(|media| media.to_str().ok()).unwrap_or_default();
    let is_secret = head.headers.get(CACHE_CONTROL) == Some(&NOT_KEPT);
    let settled: Result<(), StoreError> = match fate(head.status, &body) {
        // A secret is not stored. If the request is repeated, the name of the token is taken, or another link is
        // created and only one of them is used.
        ReplayPolicy::Final if is_secret => store.idempotency_forget(claim).await,
        ReplayPolicy::Final => {
            let body = String::from_utf8_lossy(&body).into_owned();
            let answer = StoredResponse { status: head.status.as_u16(), media: media.to_owned(), body };
            store.idempotency_keep(claim, answer).await
        }
        ReplayPolicy::Passing => store.idempotency_forget(claim).await,
        ReplayPolicy::Unknown => store.idempotency_abandon(claim).await,
    };
    if let Err(error) = settled {
        tracing::warn!(error = %error_chain(&error), "could not store a response; a repeated request with its key counts as interrupted");
    }
    Ok(Response::from_parts(head, Body::from(body)))
}

/// How a repeated request is handled after an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReplayPolicy {
    /// Return the same answer again.
    Final,
    /// Nothing was done; the request may succeed later.
    Passing,
    /// A failure; the request may have taken effect.
    Unknown,
}

fn fate(status: StatusCode, body: &Bytes) -> ReplayPolicy {
    if status.is_server_error() {
        return ReplayPolicy::Unknown;
    }
    let code = serde_json::from_slice::<Problem>(body).ok().map(|problem| problem.code);
    match code {
        Some(Code::LockHeld | Code::StaleRevision) => ReplayPolicy::Passing,
        Some(Code::LeaseLost | Code::Interrupted | Code::Terminated) => ReplayPolicy::Unknown,
        Some(_) | None => ReplayPolicy::Final,
    }
}

fn replayed(answer: StoredResponse) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = (status, answer.body).into_response();
    response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    if let Ok(media) = HeaderValue::from_str(&answer.media) {
        response.headers_mut().insert(CONTENT_TYPE, media);
    }
    response
}

/// Returns a digest that identifies a request. Each part is prefixed with its length, so that no two different
/// requests are concatenated to the same bytes.
fn fingerprint(
    asker: &str,
    method: &Method,
    path: &str,
    query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> String {
    let expected = headers.get(IF_MATCH).map(HeaderValue::as_bytes).unwrap_or_default();
    let mut digest = Context::new(&SHA256);
    let query = query.unwrap_or_default();
    let named = [asker, method.as_str(), path, query].map(str::as_bytes);
    for part in named.into_iter().chain([expected, body]) {
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    digest.finish().as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_a_request_makes_it_another() {
        let none = HeaderMap::new();
        let expecting = HeaderMap::from_iter([(IF_MATCH, HeaderValue::from_static("1"))]);
        let all = [
            fingerprint("", &Method::POST, "/a", None, &none, b""),
            fingerprint("", &Method::PUT, "/a", None, &none, b""),
            fingerprint("", &Method::POST, "/", Some("a"), &none, b""),
            fingerprint("", &Method::POST, "/a", None, &expecting, b""),
            fingerprint("", &Method::POST, "/a", None, &none, b"1"),
            fingerprint("tok-1", &Method::POST, "/a", None, &none, b""),
        ];
        for (place, one) in all.iter().enumerate() {
            assert_eq!(all.iter().position(|other| other == one), Some(place));
        }
    }

    #[test]
    fn only_what_is_final_is_kept() {
        let problem = |code: Code| {
            let body = Bytes::from(serde_json::to_vec(&Problem::new(code.clone(), "x")).unwrap());
            fate(StatusCode::from_u16(code.status()).unwrap(), &body)
        };
        assert_eq!(fate(StatusCode::OK, &Bytes::from_static(b"{}")), ReplayPolicy::Final);
        assert_eq!(problem(Code::UnknownOption), ReplayPolicy::Final);
        assert_eq!(problem(Code::LockHeld), ReplayPolicy::Passing);
        assert_eq!(problem(Code::StoreBusy), ReplayPolicy::Unknown);
        assert_eq!(problem(Code::LeaseLost), ReplayPolicy::Unknown);
    }
}
