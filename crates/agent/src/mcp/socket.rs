//! Where a run's socket is: the variables that lead to it, and a name for it that is short enough.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, open};

/// The variable with the path of the run's socket.
pub(crate) const SOCKET: &str = "DRYDOCK_MCP_SOCKET";
/// The variable with what must be said there first.
pub(crate) const SECRET: &str = "DRYDOCK_MCP_SECRET";

/// Another name for a socket, good as long as this lives: the system takes at most 107 bytes, and a run's temporary
/// directory may have a longer name than that.
pub(super) struct Short {
    directory: OwnedFd,
    name: PathBuf,
}

impl Short {
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let unusable = || io::Error::new(io::ErrorKind::InvalidInput, "it is no path of a file");
        let (above, name) = path.parent().zip(path.file_name()).ok_or_else(unusable)?;
        let directory = open(above, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Self { directory, name: name.into() })
    }

    pub(super) fn path(&self) -> PathBuf {
        Path::new("/proc/self/fd").join(self.directory.as_raw_fd().to_string()).join(&self.name)
    }
}
