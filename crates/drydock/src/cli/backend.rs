//! Where a command sends its requests: a server, or the engine in this process behind the same router.

use std::sync::{Mutex, PoisonError};

use drydock_api::http::{Request, Response, StatusCode};
use drydock_api::{BodyStream, BoxFuture, Bytes, HttpTransport, Phase, Problem, Transport, TransportError};

use super::bearer;
use crate::config::{Config, StoreLocation};
use crate::local_token;

/// How a call of [`Backend::drive`] ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DriveOutcome {
    /// The phase has settled; nothing is left to drive in this process.
    Over,
    /// The phase was postponed, e.g. by a rate limit. The caller drives it again when it is due.
    Postponed,
    /// A worker holds the plan and drives it.
    ByWorker,
}

/// Carries requests, and drives plans in this process if no server does.
pub(crate) trait Backend: Send + Sync {
    fn transport(&self) -> &dyn Transport;

    /// Drives this phase of the plan in this process until it settles. Returns none if a server drives plans.
    fn drive(&self, plan: &str, phase: Phase) -> Option<BoxFuture<'static, Result<DriveOutcome, Problem>>>;

    /// Holds a plan that this process drives until a person continues it. Called after the person stopped the
    /// command.
    fn hold_stopped(&self, plan: &str) -> BoxFuture<'_, ()>;

    /// Stops agents, leaves their plans resumable, and releases all locks.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// Opens the engine on a store in this process.
pub(crate) type OpenEmbedded =
    fn(StoreLocation, Config) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>>;

/// A server at an address. It drives plans automatically, so there is nothing to shut down here.
pub(crate) struct RemoteBackend {
    remote: Mutex<HttpTransport>,
    renewal: Renewal,
}

/// Whether to look for another token after the server refused one. Only the token that a server writes for its own
/// machine can be found again: the server creates a new one at each start, and a command that follows a plan outlives
/// a restart of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// Read the token that the server at this address wrote.
    Own(String),
    /// Use the given token only.
    Never,
}

impl RemoteBackend {
    /// Returns the server behind this remote, which carries its token.
    pub(crate) fn new(remote: HttpTransport, renewal: Renewal) -> Self {
        Self { remote: Mutex::new(remote), renewal }
    }

    fn remote(&self) -> HttpTransport {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the server with another token, if this one was refused and another has been written since. The request
    /// may be sent again because a request that is refused for its token has no effect.
    fn renewed(&self, asked: &HttpTransport, status: StatusCode) -> Option<HttpTransport> {
        let Renewal::Own(url) = &self.renewal else { return None };
        if status != StatusCode::UNAUTHORIZED {
            return None;
        }
        let token = bearer::kept(&local_token::find(url)?).ok()?;
        let remote = asked.clone().with_token(&token).filter(|remote| remote != asked)?;
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner) = remote.clone();
        Some(remote)
    }
}

impl Transport for RemoteBackend {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let remote = self.remote();
            let answer = remote.send(request.clone()).await?;
            match self.renewed(&remote, answer.status()) {
                Some(remote) => remote.send(request).await,
                None => Ok(answer),
            }
        })
    }

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<BodyStream>, TransportError>> {
        Box::pin(async move {
            let remote = self.remote();
            let answer = remote.open(request.clone()).await?;
            match self.renewed(&remote, answer.status()) {
                Some(remote) => remote.open(request).await,
                None => Ok(answer),
            }
        })
    }
}

impl Backend for RemoteBackend {
    fn transport(&self) -> &dyn Transport {
        self
    }

    fn drive(&self, _plan: &str, _phase: Phase) -> Option<BoxFuture<'static, Result<DriveOutcome, Problem>>> {
        None
    }

    fn hold_stopped(&self, _plan: &str) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
