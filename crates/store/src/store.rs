//! The store itself: opens either database and runs jobs and looks on it. What they do is in the other files.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drydock_domain::Timestamp;

use crate::postgres::{Postgres, Want};
use crate::sqlite::Sqlite;
use crate::tx::{BoxFuture, Look, Work};
use crate::wake::{Bell, Watch};
use crate::{CrashPoint, StoreError, StoreUrl};

/// What comes from outside: time, and the faults of tests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The clock that judges locks on SQLite; on PostgreSQL the server's does.
    pub clock: fn() -> Timestamp,
    /// Where in a transition the process dies.
    pub crash_at: Option<CrashPoint>,
    /// Where in a transition its transaction fails.
    pub fail_at: Option<CrashPoint>,
    /// How many transitions pass before the first with a fault.
    pub spared: u32,
    /// How many connections to a server this process may have; one more listens, where there are enough.
    pub connections: usize,
    /// How long a server that has no connection left is waited for: no longer than a lock lasts.
    pub patience: Duration,
}

impl Options {
    /// How many connections a process has unless asked otherwise.
    pub const CONNECTIONS: usize = 16;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns options without faults.
    pub fn new(clock: fn() -> Timestamp) -> Self {
        let (connections, patience) = (Self::CONNECTIONS, Self::PATIENCE);
        Self { clock, crash_at: None, fail_at: None, spared: 0, connections, patience }
    }
}

/// A store of plans and all that belongs to them. Cloning it is cheap and gives the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.shown).finish()
    }
}

/// How commits of other processes become known.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Reach {
    /// The database tells.
    Told,
    /// Whoever waits has to look.
    Polled,
}

#[derive(Debug)]
pub(crate) struct Inner {
    shown: String,
    bell: Bell,
    engine: Engine,
    clock: fn() -> Timestamp,
}

#[derive(Debug)]
pub(crate) enum Engine {
    Sqlite(Box<Sqlite>),
    Postgres(Postgres),
}

impl Inner {
    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    pub(crate) fn reach(&self) -> Reach {
        match &self.engine {
            Engine::Sqlite(_) => Reach::Polled,
            Engine::Postgres(_) => Reach::Told,
        }
    }

    /// Rings the bell when another process has committed, where nobody tells us.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        match &self.engine {
            Engine::Sqlite(sqlite) => sqlite.notice(),
            Engine::Postgres(postgres) => {
                postgres.listen();
                Ok(())
            }
        }
    }
}

impl Store {
    /// Opens a store, making the file or the tables when there are none. Needs a runtime with time.
    pub fn open(url: &StoreUrl, options: Options) -> BoxFuture<'static, Result<Store, StoreError>> {
        let url = url.clone();
        Box::pin(async move {
            let bell = Bell::new();
            let engine = match &url {
                StoreUrl::Sqlite(path) => {
                    Engine::Sqlite(Box::new(Sqlite::open(path, &options, bell.clone())?))
                }
                StoreUrl::Postgres(address) => {
                    Engine::Postgres(Postgres::open(address, &options, bell.clone()).await?)
                }
            };
            let inner = Inner { shown: url.to_string(), bell, engine, clock: options.clock };
            Ok(Store { inner: Arc::new(inner) })
        })
    }

    /// Returns a watch that sees every commit from now on.
    pub fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.inner))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.inner.clock)()
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.inner.engine
    }

    /// The same, for what keeps locks: it does not wait behind other work for a connection.
    pub(crate) async fn write_for_lock<T: Send + 'static>(
        &self,
        work: impl Work<T>,
    ) -> Result<T, StoreError> {
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.write(work).await,
            Engine::Postgres(postgres) => postgres.write(Want::Lock, work).await,
        }
    }

    /// Runs a job in one transaction, to its end even when the caller goes away.
    pub(crate) async fn write<T: Send + 'static>(&self, work: impl Work<T>) -> Result<T, StoreError> {
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.write(work).await,
            Engine::Postgres(postgres) => postgres.write(Want::Work, work).await,
        }
    }

    /// Reads at one point in time.
    pub(crate) async fn read<T: Send + 'static>(&self, look: impl Look<T>) -> Result<T, StoreError> {
        match &self.inner.engine {
            Engine::Sqlite(sqlite) => sqlite.read(look),
            Engine::Postgres(postgres) => postgres.read(look).await,
        }
    }
}
