//! What a command works on: a server, or the engine in this process behind the same router.

use drydock_api::{BoxFuture, Problem, Remote, Transport};

use crate::config::{Config, StorePlace};

/// What driving a phase came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// Nothing is left to do here.
    Over,
    /// It was cut short by a limit, and is to be driven again when it is due.
    Postponed,
}

/// Carries requests, and moves plans when nobody else does.
pub(crate) trait Backend: Send + Sync {
    /// Returns what carries the requests.
    fn transport(&self) -> &dyn Transport;

    /// Drives the plan's queued phase in this process until it settles; none when a server does that.
    fn drive(&self, plan: &str) -> Option<BoxFuture<'static, Result<Driven, Problem>>>;

    /// Stops agents, leaves their plans resumable, and lets go of every lock.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// Opens the engine on a store in this process.
pub(crate) type OpenEmbedded =
    fn(StorePlace, Config) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>>;

/// A server at an address: it drives plans by itself, and there is nothing to shut down here.
pub(crate) struct Server(pub(crate) Remote);

impl Backend for Server {
    fn transport(&self) -> &dyn Transport {
        &self.0
    }

    fn drive(&self, _plan: &str) -> Option<BoxFuture<'static, Result<Driven, Problem>>> {
        None
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
