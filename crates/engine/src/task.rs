//! Named tasks. Each is joined by its starter, or ends by a token that it watches.

use std::future::Future;

use tokio::task::JoinHandle;
use tracing::Instrument;

/// Starts a task under a name that appears in its log lines. The caller keeps the handle and joins or aborts
/// it.
#[must_use = "a task that is not joined can fail unnoticed"]
#[allow(
    clippy::disallowed_methods,
    reason = "this is the engine's one home of tasks; the caller joins or aborts each"
)]
pub(crate) fn start<F>(name: &'static str, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    tokio::spawn(future.instrument(tracing::debug_span!("task", name)))
}

/// Runs blocking work (git, files) off the event loop, and propagates a panic to the caller.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // The span must follow the work to the other thread.
    let span = tracing::Span::current();
    match tokio::task::spawn_blocking(move || span.in_scope(work)).await {
        Ok(value) => value,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime cancels blocking work only during its shutdown, when no caller waits for the result
            // any more.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Runs a future to its end even if the caller is dropped, so that a dropped request cannot leave a lock held
/// or a transition incomplete.
pub async fn shield<F>(future: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    match start("shielded", future.in_current_span()).await {
        Ok(value) => value,
        Err(failure) => match failure.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => std::future::pending().await,
        },
    }
}
