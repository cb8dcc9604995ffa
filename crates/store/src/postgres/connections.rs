//! The connection pool of one process. One connection is reserved: it is opened first and kept, so that locks
//! are renewed and released even if many jobs want a connection. While no lock needs it, it is used for other
//! jobs too. On a server with few connections, the other connections are closed as soon as they are idle, and
//! a job waits for a server that has no free connection.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use deadpool_postgres::{
    Manager, ManagerConfig, Object, Pool, PoolError, QueueMode, RecyclingMethod, Runtime, TimeoutType,
    Timeouts,
};
use tokio::time::{Instant, sleep_until};
use tokio_postgres::NoTls;
use tokio_postgres::error::SqlState;

use super::address::Address;
use super::engine::PgShared;
use super::fault::no_connection;
use crate::{StoreError, task};

/// How long a job waits for a connection of this process to become free, and for the server to open one.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// The pause after a server without free connections refused one. It applies to all jobs of this process.
const REFUSED_PAUSE: Duration = Duration::from_millis(300);
/// How long an idle connection is kept: on a server with few connections, and otherwise.
const IDLE_MAX_CROWDED: Duration = Duration::from_secs(1);
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Connections count as few below these numbers for the whole server, or for this process.
const FEW_OF_SERVER: i64 = 24;
const FEW_OF_PROCESS: usize = 4;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// To renew or release a lock, which must not wait behind other work.
    Lock,
    /// For anything else.
    Work,
}

pub(crate) struct Connections {
    reserved: Pool,
    rest: Pool,
    shown: String,
    /// Whether connections are few, or the server once had none free.
    crowded: AtomicBool,
    /// When the server last had no free connection, and its error.
    refused: Mutex<Option<(Instant, StoreError)>>,
    /// How long to wait for a server without free connections.
    patience: Duration,
}

/// The result of an attempt to get a connection.
enum Got {
    Connection(Object),
    /// All connections of this pool are in use.
    InUse,
    /// The server has no free connection.
    Refused(StoreError),
}

impl Connections {
    pub(crate) fn new(address: &Address, most: usize, patience: Duration) -> Result<Self, StoreError> {
        Ok(Self {
            reserved: pool(address, 1)?,
            rest: pool(address, most.saturating_sub(1))?,
            shown: address.shown.clone(),
            crowded: AtomicBool::new(most < FEW_OF_PROCESS),
            refused: Mutex::default(),
            patience,
        })
    }

    /// Returns true if connections are few: then none is used for listening.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// Records that the server has no free connection, or few for all clients.
    pub(crate) fn note_crowded(&self) {
        if !self.crowded.swap(true, Ordering::Relaxed) {
            tracing::info!(place = %self.shown, "few connections are left: idle ones are closed, and commits of other processes are polled");
        }
    }

    /// Records the number of connections that the server has for ordinary users.
    pub(crate) fn note_usable(&self, usable: i64) {
        if usable < FEW_OF_SERVER {
            self.note_crowded();
        }
    }

    /// Returns a connection. Waits for a connection of this process to become free, or for a server without
    /// free connections.
    pub(crate) async fn get(&self, want: Want) -> Result<Object, StoreError> {
        let began = Instant::now();
        let order = match want {
            Want::Lock => [&self.reserved, &self.rest],
            Want::Work => [&self.rest, &self.reserved],
        };
        loop {
            let mut refused = None;
            for pool in order {
                match self.attempt(pool, Duration::ZERO).await? {
                    Got::Connection(connection) => return Ok(connection),
                    Got::InUse => {}
                    Got::Refused(error) => refused = Some(error),
                }
            }
            let (deadline, look_again) = match &refused {
                None => (began + WAIT_MAX, began + WAIT_MAX),
                Some(_) => (began + self.patience, Instant::now() + REFUSED_PAUSE),
            };
            if let Some(connection) = self.wait(refused.is_some(), look_again.min(deadline)).await? {
                return Ok(connection);
            }
            if Instant::now() >= deadline {
                let reason = "every connection of this process was in use for too long".to_owned();
                return Err(
                    refused.unwrap_or_else(|| StoreError::Unavailable { place: self.shown.clone(), reason })
                );
            }
        }
    }

    /// Waits until a connection of this process is free. Does not ask a server again that has just refused.
    async fn wait(&self, refused: bool, until: Instant) -> Result<Option<Object>, StoreError> {
        let left = until.saturating_duration_since(Instant::now());
        // If the reserved connection is not open, waiting for it would ask the server for one.
        let reserved = !refused || self.reserved.status().size > 0;
        let got = tokio::select! {
            got = self.attempt(&self.reserved, left), if reserved => got?,
            got = self.attempt(&self.rest, left), if !refused => got?,
            () = sleep_until(until) => Got::InUse,
        };
        match got {
            Got::Connection(connection) => Ok(Some(connection)),
            Got::InUse => Ok(None),
            Got::Refused(_) => {
                sleep_until(until.min(Instant::now() + REFUSED_PAUSE)).await;
                Ok(None)
            }
        }
    }

    async fn attempt(&self, pool: &Pool, wait: Duration) -> Result<Got, StoreError> {
        if let Some(error) = self.refused_before(pool) {
            return Ok(Got::Refused(error));
        }
        let timeouts = Timeouts { wait: Some(wait), ..pool.timeouts() };
        match pool.timeout_get(&timeouts).await {
            Ok(connection) => Ok(Got::Connection(connection)),
            Err(PoolError::Timeout(TimeoutType::Wait)) => Ok(Got::InUse),
            Err(PoolError::Backend(error)) if error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS) => {
                self.note_crowded();
                let error = no_connection(&self.shown, PoolError::Backend(error));
                *lock(&self.refused) = Some((Instant::now(), error.clone()));
                Ok(Got::Refused(error))
            }
            Err(error) => Err(no_connection(&self.shown, error)),
        }
    }

    /// Returns the server's recent refusal if getting a connection from this pool would open another one.
    fn refused_before(&self, pool: &Pool) -> Option<StoreError> {
        let status = pool.status();
        if status.available > 0 || status.size >= status.max_size {
            return None;
        }
        let refused = lock(&self.refused);
        let (at, error) = refused.as_ref()?;
        (at.elapsed() < REFUSED_PAUSE).then(|| error.clone())
    }

    fn close_idle(&self) {
        let most = if self.is_crowded() { IDLE_MAX_CROWDED } else { IDLE_MAX };
        self.rest.retain(|_, metrics| metrics.last_used() < most);
    }
}

/// Starts the task that closes idle connections; it ends with the store.
pub(crate) fn tidy(server: &Arc<PgShared>) {
    let server = Arc::downgrade(server);
    task::start(async move {
        loop {
            tokio::time::sleep(IDLE_MAX_CROWDED).await;
            let Some(server) = Weak::upgrade(&server) else { return };
            server.connections.close_idle();
        }
    });
}

/// Ignores poisoning: the mutex protects a plain value, which a panic cannot leave half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool(address: &Address, most: usize) -> Result<Pool, StoreError> {
    let how = ManagerConfig { recycling_method: RecyclingMethod::Fast };
    let manager = match &address.tls {
        Some(tls) => Manager::from_config(address.config.clone(), tls.clone(), how),
        None => Manager::from_config(address.config.clone(), NoTls, how),
    };
    Pool::builder(manager)
        .max_size(most)
        // With LIFO order, the least used connections become idle and are closed.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT_MAX))
        .create_timeout(Some(WAIT_MAX))
        .recycle_timeout(Some(WAIT_MAX))
        .build()
        .map_err(|error| StoreError::database("create a connection pool", error))
}
