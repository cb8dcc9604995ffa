//! A private PostgreSQL cluster in a temporary directory, which is removed with the process that requested it.
//!
//! A destructor does not run on `kill -9`, and statics are never dropped. So a small shell script, `keeper.sh`, owns
//! the server. Its stdin is a pipe whose other end only this process holds. When the kernel closes that end, the
//! script stops the server and removes the directory.

use std::io::{self, BufRead, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::programs::{Owner, Programs};

/// How often to try another port: another process may take the free port before the server does.
const STARTS_MAX: usize = 5;

/// A running server. It stops when this value is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct Cluster {
    port: u16,
    keeper: Child,
}

impl Cluster {
    /// Starts a server on a free port of the loopback interface.
    pub(crate) fn start(programs: &Programs) -> Result<Self, String> {
        let owner = Owner::choose()?;
        let mut complaints = String::new();
        for _ in 0..STARTS_MAX {
            match Self::start_on(free_port()?, programs, &owner)? {
                Started::Ready(cluster) => return Ok(cluster),
                Started::Refused(complaint) if complaint.contains("Address already in use") => {
                    complaints = complaint
                }
                Started::Refused(complaint) => return Err(complaint),
            }
        }
        Err(complaints)
    }

    /// Returns the URL of the server's own database.
    pub(crate) fn admin_url(&self) -> String {
        format!("postgres://drydock@127.0.0.1:{}/postgres", self.port)
    }

    fn start_on(port: u16, programs: &Programs, owner: &Owner) -> Result<Started, String> {
        let said = |what: &'static str| move |error: io::Error| format!("could not {what}: {error}");
        let directory = TempDir::with_prefix("drydock-pg-").map_err(said("create a temporary directory"))?;
        if let Owner::Other { uid, gid } = *owner {
            chown(directory.path(), Some(uid), Some(gid))
                .map_err(said("change the owner of the cluster's directory"))?;
        }
        let mut keeper = Command::new("sh")
            .args(["-c", include_str!("keeper.sh"), "keeper"])
            .args([directory.path(), programs.directory()])
            .arg(port.to_string())
            .args(owner.prefix())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Its own process group: a signal sent to ours, by a terminal or a test runner, must not stop the
            // cleanup.
            .process_group(0)
            .spawn()
            .map_err(said("start the keeper of a PostgreSQL cluster"))?;
        // The script removes the directory from here on.
        let directory = directory.keep();

        let mut said_first = String::new();
        let mut lines = BufReader::new(keeper.stdout.take().expect("it was asked for above"));
        lines.read_line(&mut said_first).map_err(said("read from the keeper of a PostgreSQL cluster"))?;
        if said_first == "ready\n" {
            return Ok(Started::Ready(Self { port, keeper }));
        }
        lines
            .read_to_string(&mut said_first)
            .map_err(said("read from the keeper of a PostgreSQL cluster"))?;
        keeper.wait().map_err(said("wait for the keeper of a PostgreSQL cluster"))?;
        Ok(Started::Refused(format!("no PostgreSQL cluster in {}:\n{said_first}", directory.display())))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        // This fails only if the child was already waited for; either way it has ended.
        self.keeper.wait().ok();
    }
}

enum Started {
    Ready(Cluster),
    Refused(String),
}

fn free_port() -> Result<u16, String> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| format!("could not find a free port: {error}"))
}
