//! The connections of one process. One of them is reserved: it is opened first and kept, so that locks are renewed and
//! released even if many others want a connection; when nothing of that is due, it works like the rest. Where a server
//! has few connections, the rest are closed as soon as they are idle, and a server that has none left is waited for.

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
use super::engine::Server;
use super::fault::no_connection;
use crate::{StoreError, task};

/// How long a job waits for a connection that the process has, and for the server to give one.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How soon a server that has no connection left is asked again, by any job of this process.
const REFUSED_PAUSE: Duration = Duration::from_millis(300);
/// How long an idle connection is kept: on a server with few of them, and otherwise.
const IDLE_MAX_CROWDED: Duration = Duration::from_secs(1);
const IDLE_MAX: Duration = Duration::from_secs(60);
/// Below this many connections for all clients, or for this process, there are few.
const FEW_OF_SERVER: i64 = 24;
const FEW_OF_PROCESS: usize = 4;

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Want {
    /// To renew or release a lock, which must not wait behind other work.
    Lock,
    /// For anything else.
    Work,
}

/// The connections of one process.
pub(crate) struct Connections {
    reserved: Pool,
    rest: Pool,
    shown: String,
    /// There are few, or the server once had none left.
    crowded: AtomicBool,
    /// When the server last had none left, and its words.
    refused: Mutex<Option<(Instant, StoreError)>>,
    /// How long a server that has no connection left is waited for.
    patience: Duration,
}

/// The result of an attempt to get a connection.
enum Got {
    Connection(Object),
    /// All that this pool may have are in use.
    InUse,
    /// The server has none left.
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

    /// Says whether connections are few: then none is spent on listening.
    pub(crate) fn is_crowded(&self) -> bool {
        self.crowded.load(Ordering::Relaxed)
    }

    /// Notes that the server has no connection left, or few for all clients.
    pub(crate) fn note_crowded(&self) {
        if !self.crowded.swap(true, Ordering::Relaxed) {
            tracing::info!(place = %self.shown, "connections are few: idle ones are closed, and commits of others are looked for");
        }
    }

    /// Notes how many connections the server has for ordinary users.
    pub(crate) fn note_usable(&self, usable: i64) {
        if usable < FEW_OF_SERVER {
            self.note_crowded();
        }
    }

    /// Returns a connection. One that the process has is waited for, and so is a server that has none left.
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

    /// Waits until a connection of this process is free. A server that just refused is not asked meanwhile.
    async fn wait(&self, refused: bool, until: Instant) -> Result<Option<Object>, StoreError> {
        let left = until.saturating_duration_since(Instant::now());
        // A reserved one that is not there would be asked of the server.
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

    /// Returns the server's refusal where another connection would have to be made and it has just refused one.
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
pub(crate) fn tidy(server: &Arc<Server>) {
    let server = Arc::downgrade(server);
    task::start(async move {
        loop {
            tokio::time::sleep(IDLE_MAX_CROWDED).await;
            let Some(server) = Weak::upgrade(&server) else { return };
            server.connections.close_idle();
        }
    });
}

/// A panic while it was held left nothing half done: it is a plain value.
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
        // Those that are used least become idle and are closed.
        .queue_mode(QueueMode::Lifo)
        .runtime(Runtime::Tokio1)
        .wait_timeout(Some(WAIT_MAX))
        .create_timeout(Some(WAIT_MAX))
        .recycle_timeout(Some(WAIT_MAX))
        .build()
        .map_err(|error| StoreError::database("make a pool of connections", error))
}
