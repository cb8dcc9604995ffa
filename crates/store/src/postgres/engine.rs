//! The PostgreSQL store, as used by the rest of the crate: write, read, listen, number the feed.

use std::fmt;
use std::sync::{Arc, Once};

use deadpool_postgres::Object;
use tokio::sync::Notify;

use super::address::Address;
use super::connections::{self, Connections, Want};
use super::session::{Begin, OnSession, Session};
use super::{limits, listener, schema, sequencer};
use crate::crash::{CrashPoint, Faults};
use crate::tx::{Look, Noise, Tx, Verdict, Work};
use crate::wake::Bell;
use crate::{Options, StoreError, task};

#[derive(Debug)]
pub(crate) struct Postgres {
    server: Arc<Server>,
    listening: Once,
}

/// State shared by the tasks of a store.
pub(crate) struct Server {
    pub(crate) address: Address,
    pub(crate) bell: Bell,
    pub(crate) nudge: Arc<Notify>,
    pub(crate) connections: Connections,
    faults: Faults,
    numbering: Once,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.address.shown).finish()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Wakes the numbering task, so that it notices that the store is gone and ends.
        self.nudge.notify_one();
    }
}

impl Postgres {
    pub(crate) async fn open(url: &str, options: &Options, bell: Bell) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let server = Server {
            connections: Connections::new(&address, options.connections, options.patience)?,
            address,
            bell,
            nudge: Arc::new(Notify::new()),
            faults: Faults::new(options),
            numbering: Once::new(),
        };
        // The reserved connection is opened first, so that this process always has one.
        let client = server.client(Want::Lock).await?;
        let checked = async {
            server.connections.note_usable(limits::check(&server.address, &client).await?);
            schema::settle(&server.address.shown, &client).await
        };
        if let Err(error) = checked.await {
            // A failed migration must not leave its open transaction in the pool.
            drop(Object::take(client));
            return Err(error);
        }
        drop(client);
        let server = Arc::new(server);
        connections::tidy(&server);
        Ok(Self { server, listening: Once::new() })
    }

    /// Runs a job in a separate task, which cannot be cancelled halfway by the caller.
    pub(crate) async fn write<T: Send + 'static>(
        &self,
        want: Want,
        work: impl Work<T>,
    ) -> Result<T, StoreError> {
        let server = Arc::clone(&self.server);
        let job = task::start(async move { server.transact(want, work).await });
        job.await.unwrap_or_else(|stopped| Err(StoreError::database("write", stopped)))
    }

    pub(crate) async fn read<T>(&self, look: impl Look<T>) -> Result<T, StoreError> {
        let client = self.server.client(Want::Work).await?;
        let mut session = Session::new(client, Begin::Look, &self.server.address.shown);
        let seen = {
            let mut tx = Tx::new(Box::new(OnSession { session: &mut session }), Faults::default());
            look(&mut tx).await
        };
        session.roll_back().await?;
        seen
    }

    /// Numbers the events that were committed before this call.
    pub(crate) async fn number_pending(&self) -> Result<(), StoreError> {
        if sequencer::is_pending(&self.server).await? {
            sequencer::number(&self.server).await?;
        }
        Ok(())
    }

    /// Starts listening for commits of other processes.
    pub(crate) fn listen(&self) {
        self.listening.call_once(|| listener::start(&self.server));
    }
}

impl Server {
    pub(crate) async fn client(&self, want: Want) -> Result<Object, StoreError> {
        self.connections.get(want).await
    }

    async fn transact<T>(self: Arc<Self>, want: Want, work: impl Work<T>) -> Result<T, StoreError> {
        let client = self.client(want).await?;
        let mut session = Session::new(client, Begin::Write, &self.address.shown);
        let (done, noise, armed) = {
            let mut tx = Tx::new(Box::new(OnSession { session: &mut session }), self.faults.clone());
            let done = match work(&mut tx).await {
                Ok(Verdict::Keep(value)) => tx.point(CrashPoint::BeforeCommit).map(|()| Verdict::Keep(value)),
                other => other,
            };
            (done, tx.noise(), tx.is_armed())
        };
        match done {
            Ok(Verdict::Keep(value)) => {
                session.commit().await?;
                drop(session);
                if armed {
                    self.faults.hit(CrashPoint::AfterCommit)?;
                }
                self.announce(noise);
                Ok(value)
            }
            Ok(Verdict::Undo(value)) => session.roll_back().await.map(|()| value),
            Err(error) => {
                // The caller needs the original error, so a failed rollback is ignored; the connection is
                // then closed.
                session.roll_back().await.ok();
                Err(error)
            }
        }
    }

    fn announce(self: &Arc<Self>, noise: Noise) {
        match noise {
            Noise::Quiet => {}
            Noise::Loud => {
                self.numbering.call_once(|| sequencer::start(self));
                self.nudge.notify_one();
                self.bell.ring();
            }
        }
    }
}
