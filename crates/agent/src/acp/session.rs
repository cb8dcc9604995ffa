//! Opens the session of a conversation: loads an earlier one if there is one and the agent supports it,
//! otherwise starts a new one. Messages of an earlier conversation that an agent repeats while loading are
//! ignored.

use std::sync::atomic::Ordering;
use std::time::Duration;

use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    InitializeResponse, LoadSessionRequest, McpServer, NewSessionRequest, SessionId,
};
use agent_client_protocol::{Agent, Error};
use tokio::time::timeout;

use super::account::Account;
use super::converse::AcpRun;
use super::handle::Host;
use crate::signal::Signal;
use crate::task::SessionUsage;

/// A longer session id is not stored.
const SESSION_BYTES_MAX: usize = 1_000;

/// The outcome of opening a session.
pub(super) enum OpenedSession {
    /// A new session was started.
    New(SessionId),
    /// An earlier session was loaded.
    Loaded(SessionId),
    /// The agent did not respond to this method in time.
    Silent(&'static str),
}

/// Opens the session of a conversation. `ask` is called with the name of each method before it is called.
pub(super) async fn open(
    with: &AcpRun<'_>,
    agent: &ConnectionTo<Agent>,
    greeted: &InitializeResponse,
    host: &Host,
    servers: Vec<McpServer>,
    (ask, patience): (impl Fn(&'static str), Duration),
) -> Result<OpenedSession, Error> {
    let loads = greeted.agent_capabilities.load_session;
    let mut why = None;
    if let Some(earlier) = with.task.session.clone().filter(|_| loads) {
        ask("session/load");
        let (earlier, told) = (SessionId::new(earlier.id), earlier.told);
        let load =
            LoadSessionRequest::new(earlier.clone(), with.dirs.worktree.clone()).mcp_servers(servers.clone());
        host.replaying.store(true, Ordering::Release);
        host.open_account(Account::resumed(told));
        let answered = timeout(patience, agent.send_request(load).block_task()).await;
        host.replaying.store(false, Ordering::Release);
        match answered {
            Err(_) => return Ok(OpenedSession::Silent("session/load")),
            Ok(Ok(_)) => {
                tell(host, &earlier, None, told).await;
                return Ok(OpenedSession::Loaded(earlier));
            }
            // The agent may no longer have the session; the prompt then contains the whole task again.
            Ok(Err(error)) => {
                why = Some(super::converse::described(&error));
                host.open_account(Account::default());
            }
        }
    }
    ask("session/new");
    let new = NewSessionRequest::new(with.dirs.worktree.clone()).mcp_servers(servers);
    match timeout(patience, agent.send_request(new).block_task()).await {
        Err(_) => Ok(OpenedSession::Silent("session/new")),
        Ok(Err(error)) => Err(error),
        Ok(Ok(opened)) => {
            if loads {
                let why = why.map_or_else(String::new, |why| {
                    format!("the earlier session could not be loaded: {why}")
                });
                tell(host, &opened.session_id, Some(why), SessionUsage::default()).await;
            }
            Ok(OpenedSession::New(opened.session_id))
        }
    }
}

/// Emits the session's id, so that a later run can resume it; `begun` is the reason for a new one.
async fn tell(host: &Host, session: &SessionId, begun: Option<String>, told: SessionUsage) {
    let id = session.to_string();
    if id.len() <= SESSION_BYTES_MAX {
        host.output.send(Signal::Session { id, begun, told }).await;
    }
}
