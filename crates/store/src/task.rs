//! The only file of the store that starts tasks. These tasks must not be cancelled with the request that
//! started them.

use std::future::Future;

use tokio::task::JoinHandle;

#[allow(
    clippy::disallowed_methods,
    reason = "this is the store's one home of tasks; each is joined or ends with its store"
)]
pub(crate) fn start<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(work)
}
