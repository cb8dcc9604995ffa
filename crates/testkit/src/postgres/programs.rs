//! Finds PostgreSQL's programs, and the user that may run the server (it refuses to run as root).

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Users that may own a private cluster if the tests run as root, in order of preference.
const UNPRIVILEGED: [&str; 2] = ["postgres", "nobody"];

/// The programs that a private cluster needs.
const NEEDED: [&str; 4] = ["initdb", "postgres", "pg_ctl", "psql"];

/// The directory with PostgreSQL's own programs.
#[derive(Debug, Clone)]
pub struct Programs {
    directory: PathBuf,
}

/// No directory has all of PostgreSQL's programs.
#[derive(Debug, Clone, Copy)]
pub struct Missing;

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "PostgreSQL's server programs ({}) were not found", NEEDED.join(", "))
    }
}

impl std::error::Error for Missing {}

impl Programs {
    /// Finds a directory with all programs, and prefers the newest version.
    ///
    /// A distribution's `psql` in the search path may be a wrapper that selects its own cluster, so the directories
    /// of the real programs are tried first and the search path last.
    pub fn find() -> Result<Self, Missing> {
        let holds_all = |directory: &PathBuf| NEEDED.iter().all(|name| directory.join(name).is_file());
        let directory = configured().into_iter().chain(versioned()).chain(searched()).find(holds_all);
        directory.map(|directory| Self { directory }).ok_or(Missing)
    }

    /// Returns the directory of the programs.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

/// The user that a private cluster runs as.
#[derive(Debug, Clone)]
pub(crate) enum Owner {
    /// The current user, which is not root.
    Ourselves,
    /// This user, because the current one is root.
    Other { uid: u32, gid: u32 },
}

impl Owner {
    pub(crate) fn choose() -> Result<Self, String> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::Ourselves);
        }
        let known = UNPRIVILEGED.iter().find_map(|name| Some((id_of(name, "-u")?, id_of(name, "-g")?)));
        match known {
            Some((uid, gid)) => Ok(Self::Other { uid, gid }),
            None => {
                Err(format!("root cannot run PostgreSQL, and none of {} exists", UNPRIVILEGED.join(", ")))
            }
        }
    }

    /// Returns the command prefix that runs a command as this user.
    pub(crate) fn prefix(&self) -> Vec<String> {
        match self {
            Self::Ourselves => Vec::new(),
            Self::Other { uid, gid } => {
                let (uid, gid) = (format!("--reuid={uid}"), format!("--regid={gid}"));
                vec!["setpriv".to_owned(), uid, gid, "--clear-groups".to_owned(), "--".to_owned()]
            }
        }
    }
}

fn id_of(user: &str, which: &str) -> Option<u32> {
    printed_by(Command::new("id").args([which, user]))?.parse().ok()
}

fn configured() -> Option<PathBuf> {
    printed_by(Command::new("pg_config").arg("--bindir")).map(PathBuf::from)
}

/// The directories of Debian and Ubuntu, newest version first.
fn versioned() -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir("/usr/lib/postgresql") else { return Vec::new() };
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let mut found: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found.into_iter().map(|path| path.join("bin")).collect()
}

fn searched() -> Vec<PathBuf> {
    env::var_os("PATH").map(|paths| env::split_paths(&paths).collect()).unwrap_or_default()
}

fn printed_by(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
}
