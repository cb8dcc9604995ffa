//! A lock on a file beside the database, taken before every write transaction. SQLite's own waiting lets newcomers
//! overtake sleepers until some processes starve; the kernel queues those who wait here, and frees a dead holder's.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(2);

/// The file to lock, opened.
#[derive(Debug)]
pub(crate) struct Gate {
    file: File,
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
        let file = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        Ok(Self { file })
    }

    /// Waits in the kernel's queue. Without a bound: those who wait for the writer give up by themselves.
    pub(crate) fn pass(&self) -> io::Result<Pass<'_>> {
        self.file.lock()?;
        Ok(Pass { gate: self })
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
            tracing::error!(%error, "could not unlock the gate of the store");
        }
    }
}
