//! The PostgreSQL store, as used by the rest of the crate: write, read, listen, number the feed.

use std::fmt;
use std::sync::{Arc, Once};

use deadpool_postgres::Object;
use tokio::sync::Notify;

use super::address::Address;
use super::connections::{self, Connections, Want};
use super::session::{PgConnection, PgTx, TxKind};
use super::{limits, listener, schema, sequencer};
use crate::crash::{CrashPoint, Faults};
use crate::tx::{ReadFn, Tx, TxOutcome, WakeMode, WriteFn};
use crate::wake::Notifier;
use crate::{Options, StoreError, task};

#[derive(Debug)]
pub(crate) struct Postgres {
    server: Arc<PgShared>,
    listening: Once,
}

/// State shared by the tasks of a store.
pub(crate) struct PgShared {
    pub(crate) address: Address,
    pub(crate) bell: Notifier,
    pub(crate) nudge: Arc<Notify>,
    pub(crate) connections: Connections,
    faults: Faults,
    numbering: Once,
}

impl fmt::Debug for PgShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Server").field(&self.address.shown).finish()
    }
}

impl Drop for PgShared {
    fn drop(&mut self) {
        // Wakes the numbering task, so that it notices that the store is gone and ends.
        self.nudge.notify_one();
    }
}

impl Postgres {
    pub(crate) async fn open(url: &str, options: &Options, bell: Notifier) -> Result<Self, StoreError> {
        let address = Address::parse(url)?;
        let server = PgShared {
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
            schema::ensure(&server.address.shown, &client).await
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
        work: impl WriteFn<T>,
    ) -> Result<T, StoreError> {
        let server = Arc::clone(&self.server);
        let job = task::start(async move { server.transact(want, work).await });
        job.await.unwrap_or_else(|stopped| Err(StoreError::database("write", stopped)))
    }

    pub(crate) async fn read<T>(&self, look: impl ReadFn<T>) -> Result<T, StoreError> {
        let client = self.server.client(Want::Work).await?;
        let mut session = PgConnection::new(client, TxKind::Look, &self.server.address.shown);
        let seen = {
            let mut tx = Tx::new(Box::new(PgTx { session: &mut session }), Faults::default());
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

impl PgShared {
    pub(crate) async fn client(&self, want: Want) -> Result<Object, StoreError> {
        self.connections.get(want).await
    }

    async fn transact<T>(self: Arc<Self>, want: Want, work: impl WriteFn<T>) -> Result<T, StoreError> {
        let client = self.client(want).await?;
        let mut session = PgConnection::new(client, TxKind::Write, &self.address.shown);
        let (done, noise, armed) = {
            let mut tx = Tx::new(Box::new(PgTx { session: &mut session }), self.faults.clone());
            let done = match work(&mut tx).await {
                Ok(TxOutcome::Keep(value)) => {
                    tx.point(CrashPoint::BeforeCommit).map(|()| TxOutcome::Keep(value))
                }
                other => other,
            };
            (done, tx.noise(), tx.is_armed())
        };
        match done {
            Ok(TxOutcome::Keep(value)) => {
                session.commit().await?;
                drop(session);
                if armed {
                    self.faults.hit(CrashPoint::AfterCommit)?;
                }
                self.announce(noise);
                Ok(value)
            }
            Ok(TxOutcome::Undo(value)) => session.roll_back().await.map(|()| value),
            Err(error) => {
                // The caller needs the original error, so a failed rollback is ignored; the connection is
                // then closed.
                session.roll_back().await.ok();
                Err(error)
            }
        }
    }

    fn announce(self: &Arc<Self>, noise: WakeMode) {
        match noise {
            WakeMode::Quiet => {}
            WakeMode::Loud => {
                self.numbering.call_once(|| sequencer::start(self));
                self.nudge.notify_one();
                self.bell.notify();
            }
        }
    }
}
