//! The routes of the page. Requests for other paths go to the API.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tower::ServiceExt;

use super::ask::PageState;
use super::opening::{PageGuard, opened};
use super::trouble::PageError;
use super::{asset, backups, board, diff, health, list, locks, log, new, plan, questions};
use crate::http::{RequestMetrics, measured, other_method};

/// Returns the page in front of the API. `api` includes authentication.
pub(crate) fn page(api: Router, requests: RequestMetrics, gate: PageGuard) -> Router {
    let views = Router::new()
        .route("/", get(board::show))
        .route("/plans", get(list::show))
        .route("/plans/{id}", get(plan::show))
        .route("/plans/{id}/diff", get(diff::show))
        .route("/plans/{id}/diff/{file}", get(diff::file))
        .route("/plans/{id}/log", get(log::show))
        .route("/questions", get(questions::show))
        .route("/locks", get(locks::show))
        .route("/backups", get(backups::show))
        .route("/health", get(health::show))
        .route("/new", get(new::show))
        .route_layer(from_fn_with_state(gate, opened))
        .route("/assets/{name}", get(asset::serve))
        .method_not_allowed_fallback(other_method);
    measured(views, requests).fallback(elsewhere).with_state(PageState { api })
}

/// Forwards a request to the API. If that does not know the path either, a person gets an error page.
async fn elsewhere(State(page): State<PageState>, request: Request) -> Response {
    let is_of_api = request.uri().path().starts_with("/api");
    let response = match page.api.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    };
    if response.status() == StatusCode::NOT_FOUND && !is_of_api {
        return PageError::unknown().into_response();
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Config, StoreLocation, TokenPolicy};
    use crate::http::{ConnectionSecurity, Cookie, router};
    use axum::body::Body;
    use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
    use http_body_util::BodyExt;

    async fn desk() -> (tempfile::TempDir, Router) {
        let folder = tempfile::tempdir().unwrap();
        let place = StoreLocation::Default(folder.path().join("drydock.db"));
        let engine = crate::embedded::engine(&place, Config::default()).await.unwrap();
        let gate =
            PageGuard { tokens: TokenPolicy::Optional, cookie: Cookie::of(1, ConnectionSecurity::Plain) };
        (folder, page(router(engine, "test", "test"), RequestMetrics::default(), gate))
    }

    async fn get(router: &Router, path: &str) -> (StatusCode, axum::http::HeaderMap, String) {
        let request = Request::builder().uri(path).body(Body::empty()).unwrap();
        let (head, body) = router.clone().oneshot(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (head.status, head.headers, String::from_utf8(bytes.to_vec()).unwrap())
    }

    /// Breaks if a view of an empty store fails, offers no next step, or needs inline scripts or styles.
    #[tokio::test]
    async fn every_view_of_an_empty_store_is_a_page_that_says_what_to_do_next() {
        let (_folder, router) = desk().await;
        for (path, said) in [
            ("/", "drydock project add"),
            ("/plans", "create one"),
            ("/questions", "No open questions"),
            ("/locks", "No locks"),
            ("/backups", "No backups"),
            ("/health", "Running"),
            ("/new", "drydock project add"),
        ] {
            let (status, headers, text) = get(&router, path).await;
            assert_eq!(status, 200, "{path}: {text}");
            assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
            assert_eq!(headers[CACHE_CONTROL], "no-store", "{path}");
            assert!(text.contains(said), "{path} does not say {said:?}");
            assert!(!text.contains("style=") && !text.contains(" onclick"), "{path}");
            assert_eq!(text.matches("<script").count(), 1, "{path}");
        }
    }

    /// Breaks if a person gets JSON instead of a page, or a program gets a page instead of JSON.
    #[tokio::test]
    async fn what_is_not_there_is_told_in_the_language_of_the_asker() {
        let (_folder, router) = desk().await;
        for path in ["/moon", "/plans/pln-zzz", "/plans/pln-zzz/diff", "/assets/page-0.css", "/plans/%FF"] {
            let (status, headers, text) = get(&router, path).await;
            assert!(status.is_client_error(), "{path}: {status}");
            assert_eq!(headers[CONTENT_TYPE], "text/html; charset=utf-8", "{path}");
            assert!(text.contains("Go to the board"), "{path}: {text}");
        }
        let (status, headers, _) = get(&router, "/api/v1/moon").await;
        assert_eq!(
            (status.as_u16(), headers[CONTENT_TYPE].to_str().unwrap()),
            (404, "application/problem+json")
        );
        let (status, _, text) = get(&router, "/api/v1/plans").await;
        assert_eq!((status.as_u16(), text.as_str()), (200, "{\"plans\":[],\"next\":null}"));
    }

    /// Breaks if a browser requests a cached file again, or caches a file under the path of another one.
    #[tokio::test]
    async fn files_are_kept_for_good_under_the_digest_of_their_bytes() {
        let (_folder, router) = desk().await;
        for path in [asset::style(), asset::script(), asset::mark()] {
            let (status, headers, _) = get(&router, &path).await;
            assert_eq!(status, 200, "{path}");
            assert!(headers[CACHE_CONTROL].to_str().unwrap().contains("immutable"), "{path}");
        }
    }
}
