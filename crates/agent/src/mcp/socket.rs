//! Location of a run's socket: the environment variables, and a path that is short enough.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// Variable with the path of the run's socket.
pub(crate) const SOCKET: &str = "DRYDOCK_MCP_SOCKET";
/// Variable with the secret that a connection must send first.
pub(crate) const SECRET: &str = "DRYDOCK_MCP_SECRET";

/// A short path to a socket, valid while this value lives. The system accepts at most 107 bytes, and a run's
/// temporary directory may have a longer path.
pub(super) struct Short {
    directory: OwnedFd,
    name: PathBuf,
}

impl Short {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "it is not a file path");
        let (above, name) = path.parent().zip(path.file_name()).ok_or_else(unusable)?;
        let directory = open(above, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { directory, name: name.into() })
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(&self.name)
    }
}
