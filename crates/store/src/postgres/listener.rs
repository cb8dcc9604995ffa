//! Listens for commits of other processes: one connection with `LISTEN`, reconnected when it breaks.
//! Notifications carry no data and can be lost when their sender dies, so every waiting task is also woken at
//! intervals. If connections are few, no connection listens, and waiting tasks are woken more often instead.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::time::Duration;

use drydock_domain::error_chain;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{AsyncMessage, Client, Connection, Error, NoTls};

use super::engine::PgShared;
use super::sequencer::CHANNEL;
use crate::task;
use crate::wake::Notifier;

/// Maximum delay after a lost notification.
const WAKE_EVERY: Duration = Duration::from_secs(2);
/// Polling interval when connections are few.
const POLL_EVERY: Duration = Duration::from_millis(500);
const RECONNECT_AFTER: Duration = Duration::from_secs(1);

/// Starts the listening task; it ends with the store.
pub(crate) fn start(server: &Arc<PgShared>) {
    let (bell, server) = (server.bell.clone(), Arc::downgrade(server));
    task::start(async move {
        while let Some(up) = Weak::upgrade(&server) {
            let address = up.address.clone();
            let crowded = up.connections.is_crowded();
            drop(up);
            if crowded {
                // A connection that only listens would be one less for work.
                tokio::time::sleep(POLL_EVERY).await;
                if bell.is_heard() {
                    bell.notify();
                }
                continue;
            }
            let alive = || server.upgrade().is_some_and(|server| !server.connections.is_crowded());
            let ended = match address.tls {
                None => match address.config.connect(NoTls).await {
                    Ok((client, connection)) => listen(client, connection, &bell, alive).await,
                    Err(error) => Err(error),
                },
                Some(tls) => match address.config.connect(tls).await {
                    Ok((client, connection)) => listen(client, connection, &bell, alive).await,
                    Err(error) => Err(error),
                },
            };
            if let Err(error) = ended {
                if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
                    && let Some(server) = server.upgrade()
                {
                    server.connections.note_crowded();
                }
                tracing::debug!(error = %error_chain(&error), "could not listen for commits of other processes");
            }
            bell.notify();
            tokio::time::sleep(RECONNECT_AFTER).await;
        }
    });
}

async fn listen<S, T>(
    client: Client,
    mut connection: Connection<S, T>,
    bell: &Notifier,
    alive: impl Fn() -> bool,
) -> Result<(), Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let asked = format!("LISTEN {CHANNEL}");
    let mut asking = Box::pin(async move { client.batch_execute(&asked).await.map(|()| client) });
    // The connection must be polled for the response to arrive.
    let client = loop {
        tokio::select! {
            asked = &mut asking => break asked?,
            message = poll_fn(|context| connection.poll_message(context)) => match message {
                Some(message) => drop(message?),
                None => return Ok(()),
            },
        }
    };
    // Wakes watchers for commits that were made before `LISTEN` took effect.
    bell.notify();
    while alive() {
        match timeout(WAKE_EVERY, poll_fn(|context| connection.poll_message(context))).await {
            Ok(Some(Ok(AsyncMessage::Notification(_)))) => bell.notify(),
            Ok(Some(Ok(_))) => {}
            Ok(Some(Err(error))) => return Err(error),
            Ok(None) => return Ok(()),
            Err(_) if bell.is_heard() => bell.notify(),
            Err(_) => {}
        }
    }
    drop(client);
    Ok(())
}
