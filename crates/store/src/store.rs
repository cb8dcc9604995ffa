//! The store handle: opens either database and runs write jobs and reads on it. Other files define those
//! operations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use drydock_domain::Timestamp;

use crate::postgres::{Postgres, Want};
use crate::sqlite::Sqlite;
use crate::tx::{BoxFuture, ReadFn, WriteFn};
use crate::wake::{Notifier, Watch};
use crate::{CrashPoint, StoreError, StoreUrl};

/// Inputs from outside: the clock, connection limits, and the faults of tests.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The clock that determines lock expiry on SQLite; on PostgreSQL it is the server's clock.
    pub clock: fn() -> Timestamp,
    /// The point of a transition at which the process crashes.
    pub crash_at: Option<CrashPoint>,
    /// The point of a transition at which its transaction fails.
    pub fail_at: Option<CrashPoint>,
    /// Number of transitions without a fault before the first one with a fault.
    pub spared: u32,
    /// Maximum number of connections of this process to a server. One additional connection listens, if there
    /// are enough.
    pub connections: usize,
    /// How long to wait for a server without free connections; not longer than a lock lasts.
    pub patience: Duration,
}

impl Options {
    /// Default number of connections of a process.
    pub const CONNECTIONS: usize = 16;
    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns options without faults.
    pub fn new(clock: fn() -> Timestamp) -> Self {
        let (connections, patience) = (Self::CONNECTIONS, Self::PATIENCE);
        Self { clock, crash_at: None, fail_at: None, spared: 0, connections, patience }
    }
}

/// A store of plans and everything that belongs to them. Clones are cheap and share the same store.
#[derive(Clone)]
pub struct Store {
    inner: Arc<StoreInner>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Store").field(&self.inner.shown).finish()
    }
}

/// How commits of other processes are detected.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ChangeSource {
    /// The database sends notifications.
    Told,
    /// Waiting tasks poll.
    Polled,
}

#[derive(Debug)]
pub(crate) struct StoreInner {
    shown: String,
    bell: Notifier,
    engine: StoreEngine,
    clock: fn() -> Timestamp,
}

#[derive(Debug)]
pub(crate) enum StoreEngine {
    Sqlite(Box<Sqlite>),
    Postgres(Postgres),
}

impl StoreInner {
    pub(crate) fn bell(&self) -> &Notifier {
        &self.bell
    }

    pub(crate) fn reach(&self) -> ChangeSource {
        match &self.engine {
            StoreEngine::Sqlite(_) => ChangeSource::Polled,
            StoreEngine::Postgres(_) => ChangeSource::Told,
        }
    }

    /// Wakes the watchers if another process has committed, on a database without notifications.
    pub(crate) fn notice(&self) -> Result<(), StoreError> {
        match &self.engine {
            StoreEngine::Sqlite(sqlite) => sqlite.notice(),
            StoreEngine::Postgres(postgres) => {
                postgres.listen();
                Ok(())
            }
        }
    }
}

impl Store {
    /// Opens a store, and creates the file or the tables if they do not exist. Needs a tokio runtime with
    /// time enabled.
    pub fn open(url: &StoreUrl, options: Options) -> BoxFuture<'static, Result<Store, StoreError>> {
        let url = url.clone();
        Box::pin(async move {
            let bell = Notifier::new();
            let engine = match &url {
                StoreUrl::Sqlite(path) => {
                    StoreEngine::Sqlite(Box::new(Sqlite::open(path, &options, bell.clone())?))
                }
                StoreUrl::Postgres(address) => {
                    StoreEngine::Postgres(Postgres::open(address, &options, bell.clone()).await?)
                }
            };
            let inner = StoreInner { shown: url.to_string(), bell, engine, clock: options.clock };
            Ok(Store { inner: Arc::new(inner) })
        })
    }

    /// Returns a watch that is woken by every commit from now on.
    pub fn watch(&self) -> Watch {
        Watch::new(Arc::clone(&self.inner))
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.inner.clock)()
    }

    pub(crate) fn engine(&self) -> &StoreEngine {
        &self.inner.engine
    }

    /// Like [`Store::write`], for lock renewal and release: does not wait behind other work for a connection.
    pub(crate) async fn write_for_lock<T: Send + 'static>(
        &self,
        work: impl WriteFn<T>,
    ) -> Result<T, StoreError> {
        match &self.inner.engine {
            StoreEngine::Sqlite(sqlite) => sqlite.write(work).await,
            StoreEngine::Postgres(postgres) => postgres.write(Want::Lock, work).await,
        }
    }

    /// Runs a job in one transaction. The job runs to its end even if the caller is dropped.
    pub(crate) async fn write<T: Send + 'static>(&self, work: impl WriteFn<T>) -> Result<T, StoreError> {
        match &self.inner.engine {
            StoreEngine::Sqlite(sqlite) => sqlite.write(work).await,
            StoreEngine::Postgres(postgres) => postgres.write(Want::Work, work).await,
        }
    }

    /// Reads at one point in time.
    pub(crate) async fn read<T: Send + 'static>(&self, look: impl ReadFn<T>) -> Result<T, StoreError> {
        match &self.inner.engine {
            StoreEngine::Sqlite(sqlite) => sqlite.read(look),
            StoreEngine::Postgres(postgres) => postgres.read(look).await,
        }
    }
}
