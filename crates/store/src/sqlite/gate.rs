//! A lock on a file beside the database, taken before every write transaction. SQLite's own waiting lets newcomers
//! overtake sleepers until some processes starve; the kernel queues those who wait here, and frees a dead holder's.
//!
//! It is about taking turns and nothing else: whoever can read the file can hold it, an agent among them, so writers go on
//! without it after a while. SQLite's own lock still lets one write at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use drydock_domain::told;

use super::connection::PRIVATE;

const PAUSE: Duration = Duration::from_millis(2);
/// Longer than any writer of ours holds it.
const TURN_PATIENCE: Duration = Duration::from_secs(2);

/// The file to lock, opened.
#[derive(Debug)]
pub(crate) struct Gate {
    file: Arc<File>,
    /// Set while somebody holds it for too long.
    stuck: Arc<AtomicBool>,
}

/// The lock, let go of when dropped.
pub(crate) struct Pass<'g> {
    gate: &'g Gate,
}

impl Gate {
    /// Returns where the gate of a database is.
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

    /// Waits in the kernel's queue, and for nothing when somebody there does not come to an end. Until it does, nobody waits
    /// again.
    pub(crate) fn pass(&self) -> io::Result<Option<Pass<'_>>> {
        if self.stuck.load(Ordering::Acquire) {
            return Ok(None);
        }
        match self.file.try_lock() {
            Ok(()) => return Ok(Some(Pass { gate: self })),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) => {}
        }
        // Without room in between, so that it is known whether the lock was handed over.
        let (hand_over, turn) = sync_channel(0);
        let (file, stuck) = (Arc::clone(&self.file), Arc::clone(&self.stuck));
        let queue = move || {
            if hand_over.send(file.lock()).is_err() {
                // Nobody waits for it any more. The kernel lets go of it with the file at the latest.
                file.unlock().ok();
                stuck.store(false, Ordering::Release);
            }
        };
        thread::Builder::new().name("drydock-gate".to_owned()).spawn(queue)?;
        match turn.recv_timeout(TURN_PATIENCE) {
            Ok(locked) => locked.map(|()| Some(Pass { gate: self })),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the thread that waits ended")),
            Err(RecvTimeoutError::Timeout) => {
                // Before the other thread can find that nobody waits.
                self.stuck.store(true, Ordering::Release);
                tracing::warn!("somebody holds the gate of the store: writing without taking turns");
                Ok(None)
            }
        }
    }

    /// Waits at most `limit`; nothing when that was not enough.
    pub(crate) fn pass_within(&self, limit: Duration) -> io::Result<Option<Pass<'_>>> {
        let started = Instant::now();
        loop {
            match self.file.try_lock() {
                Ok(()) => return Ok(Some(Pass { gate: self })),
                Err(TryLockError::Error(error)) => return Err(error),
                Err(TryLockError::WouldBlock) if started.elapsed() >= limit => return Ok(None),
                Err(TryLockError::WouldBlock) => sleep(PAUSE),
            }
        }
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if let Err(error) = self.gate.file.unlock() {
            // The kernel lets go of it with the file at the latest.
            tracing::error!(error = %told(&error), "could not unlock the gate of the store");
        }
    }
}
