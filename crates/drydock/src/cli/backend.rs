//! What a command works on: a server, or the engine in this process behind the same router.

use std::sync::{Mutex, PoisonError};

use drydock_api::http::{Request, Response, StatusCode};
use drydock_api::{BoxFuture, Bytes, Flow, Phase, Problem, Remote, Transport, TransportError};

use super::bearer;
use crate::config::{Config, StorePlace};
use crate::local_token;

/// What driving a phase came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driven {
    /// Nothing is left to do here.
    Over,
    /// It was cut short by a limit, and is to be driven again when it is due.
    Postponed,
    /// A worker has the plan, and drives it.
    ByWorker,
}

/// Carries requests, and moves plans when nobody else does.
pub(crate) trait Backend: Send + Sync {
    /// Returns what carries the requests.
    fn transport(&self) -> &dyn Transport;

    /// Drives this phase of the plan in this process until it settles; none when a server does that.
    fn drive(&self, plan: &str, phase: Phase) -> Option<BoxFuture<'static, Result<Driven, Problem>>>;

    /// Holds a plan that is driven here until a person continues it: the person stopped the command.
    fn hold_stopped(&self, plan: &str) -> BoxFuture<'_, ()>;

    /// Stops agents, leaves their plans resumable, and lets go of every lock.
    fn shutdown(&self) -> BoxFuture<'_, ()>;
}

/// Opens the engine on a store in this process.
pub(crate) type OpenEmbedded =
    fn(StorePlace, Config) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>>;

/// A server at an address: it drives plans by itself, and there is nothing to shut down here.
pub(crate) struct Server {
    remote: Mutex<Remote>,
    renewal: Renewal,
}

/// Whether a token that a server refuses can be looked for again. Only that of its own machine can: a server makes it
/// anew when it starts, and a command that follows what happens outlives that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// It can, where the server at this address keeps it.
    Own(String),
    /// It cannot.
    Never,
}

impl Server {
    /// Returns the server behind this remote, which bears its token.
    pub(crate) fn new(remote: Remote, renewal: Renewal) -> Self {
        Self { remote: Mutex::new(remote), renewal }
    }

    fn remote(&self) -> Remote {
        self.remote.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the server with another token, when this one was refused and another is kept by now. A request that was
    /// refused for its token did nothing, so it may be sent again.
    fn renewed(&self, asked: &Remote, status: StatusCode) -> Option<Remote> {
        let Renewal::Own(url) = &self.renewal else { return None };
        if status != StatusCode::UNAUTHORIZED {
            return None;
        }
        let token = bearer::kept(&local_token::find(url)?).ok()?;
        let remote = asked.clone().bearing(&token).filter(|remote| remote != asked)?;
        *self.remote.lock().unwrap_or_else(PoisonError::into_inner) = remote.clone();
        Some(remote)
    }
}

impl Transport for Server {
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

    fn open(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Flow>, TransportError>> {
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

impl Backend for Server {
    fn transport(&self) -> &dyn Transport {
        self
    }

    fn drive(&self, _plan: &str, _phase: Phase) -> Option<BoxFuture<'static, Result<Driven, Problem>>> {
        None
    }

    fn hold_stopped(&self, _plan: &str) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}
