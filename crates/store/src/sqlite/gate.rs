//! A lock on a file beside the database, acquired before every write transaction. SQLite's busy handler
//! polls, so that new writers overtake sleeping ones until some processes starve. The kernel instead queues
//! the processes that wait for this lock, and releases the lock of a dead process.
//!
//! The lock only provides fairness. Any process that can read the file can hold it, including an agent. So
//! after a timeout writers continue without it; SQLite's own lock still permits only one writer at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use drydock_domain::error_chain;

use super::connection::PRIVATE;

const PAUSE: Duration = Duration::from_millis(2);
/// Longer than any of our writers holds the lock.
const TURN_PATIENCE: Duration = Duration::from_secs(2);

/// The opened lock file.
#[derive(Debug)]
pub(crate) struct WriteQueue {
    file: Arc<File>,
    /// Set while another process holds the lock for too long.
    stuck: Arc<AtomicBool>,
}

/// The held lock, released when dropped.
pub(crate) struct WriteQueueGuard<'g> {
    gate: &'g WriteQueue,
}

impl WriteQueue {
    /// Returns the path of the lock file of a database.
    pub(crate) fn beside(database: &Path) -> PathBuf {
        let mut name = database.as_os_str().to_owned();
        name.push("-gate");
        PathBuf::from(name)
    }

    pub(crate) fn open(database: &Path) -> io::Result<Self> {
        let path = Self::beside(database);
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .mode(PRIVATE)
            .open(path)?;
        Ok(Self { file: Arc::new(file), stuck: Arc::default() })
    }

    /// Waits in the kernel's queue. Returns `None` if another process holds the lock for too long; until that
    /// process releases it, further calls return `None` immediately.
    pub(crate) fn wait_turn(&self) -> io::Result<Option<WriteQueueGuard<'_>>> {
        if self.stuck.load(Ordering::Acquire) {
            return Ok(None);
        }
        match self.file.try_lock() {
            Ok(()) => return Ok(Some(WriteQueueGuard { gate: self })),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        // A rendezvous channel: `send` succeeds only if the receiver has taken the lock.
        let (hand_over, turn) = sync_channel(0);
        let (file, stuck) = (Arc::clone(&self.file), Arc::clone(&self.stuck));
        let queue = move || {
            if hand_over.send(file.lock()).is_err() {
                // The receiver has given up. If unlocking fails, the kernel releases the lock when the file
                // is closed.
                file.unlock().ok();
                stuck.store(false, Ordering::Release);
            }
        };
        thread::Builder::new().name("drydock-gate".to_owned()).spawn(queue)?;
        match turn.recv_timeout(TURN_PATIENCE) {
            Ok(locked) => locked.map(|()| Some(WriteQueueGuard { gate: self })),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that waits ended")),
            Err(RecvTimeoutError::Timeout) => {
                // Set before the receiver is dropped, so that the other thread clears the flag only
                // afterwards.
                self.stuck.store(true, Ordering::Release);
                tracing::warn!(
                    "another process holds the write gate of the store for too long; writing \
                                without it"
                );
                Ok(None)
            }
        }
    }

    /// Waits at most `limit`; returns `None` after that.
    pub(crate) fn pass_within(&self, limit: Duration) -> io::Result<Option<WriteQueueGuard<'_>>> {
        let started = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Some(WriteQueueGuard { gate: self })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if started.elapsed() >= limit => return Ok(None),
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
            }
        }
    }
}

impl Drop for WriteQueueGuard<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.gate.file.unlock() {
            // The kernel releases the lock when the file is closed.
            tracing::error!(error = %error_chain(&error), "could not unlock the write gate of the store");
        }
    }
}
