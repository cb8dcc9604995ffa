//! The sandbox of the kernel: what there is of Landlock and of the filter beside it (`calls`), and locking the calling thread
//! in for good.
//!
//! Rights in Landlock only add up: what lies below a path that may be written cannot be taken out again. So the
//! repository's own `.git` is protected by never lying below one, and a run is granted its worktree and its temporary
//! directory, nothing above them. Devices cannot be made even there: root could otherwise make a disk and write to it.
//!
//! Beyond files, a confined process can send signals only to what is confined with it, so not to its keeper and not to
//! drydock; cannot look into the memory or the environment of a process outside; and cannot connect to an abstract socket
//! of one. What Landlock does not control: changing the mode, owner, times or attributes of a file that can be seen,
//! connecting to a socket that is a file, and the network.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::OnceLock;
use std::thread;

use landlock::{
    ABI, Access, AccessFs, BitFlags, LandlockStatus, PathBeneath, PathFd, PathFdError, RestrictionStatus,
    Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use serde::{Deserialize, Serialize};

use super::calls::{self, Filtered};
use super::powers;

/// The rights of files that we know: all that existed when ioctl on devices became one.
const FILES: ABI = ABI::V5;
/// The version that scopes signals and abstract sockets.
const SCOPES: ABI = ABI::V6;
/// The first version under which nothing outside can be changed: before it, a file could be cut short.
const WRITES_HELD: i32 = 3;

/// What an agent can do where there is no filter.
const UNFILTERED: &str = "has no seccomp beside it: an agent can end drydock by setting its limits";

/// Devices that are no way out and that every program expects to write.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// What this kernel has of Landlock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landlock {
    /// All that the sandbox needs.
    Full {
        /// The version of the kernel's interface.
        abi: i32,
    },
    /// A part of it.
    Partial {
        /// The version of the kernel's interface.
        abi: i32,
        /// What is missing, to go on after its name.
        lacks: &'static str,
    },
    /// Nothing.
    Absent {
        /// Why.
        reason: String,
    },
    /// It is there and cannot be used, which is no reason to do without.
    Broken {
        /// What happened.
        reason: String,
    },
}

/// Where a run may write, and read if not everywhere. Not paths but their bytes: a path need not be text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Cage {
    pub(crate) writes: Vec<OsString>,
    pub(crate) reads: Option<Vec<OsString>>,
}

/// Returns what this kernel has of Landlock. Looked at once: on a thread that locks itself in and ends.
pub fn landlock() -> &'static Landlock {
    static SEEN: OnceLock<Landlock> = OnceLock::new();
    SEEN.get_or_init(|| {
        let everything = Cage { writes: vec!["/".into()], reads: None };
        let broken = |reason: String| Landlock::Broken { reason };
        let look = move || Ok::<_, io::Error>((restrict(&everything)?, calls::filter()?));
        match thread::spawn(look).join() {
            Ok(Ok((status, filtered))) => judge(status.landlock, filtered),
            Ok(Err(error)) => broken(format!("Landlock could not be used: {error}")),
            Err(_) => broken("Landlock could not be used: looking for it failed".to_owned()),
        }
    })
}

fn judge(status: LandlockStatus, filtered: Filtered) -> Landlock {
    let absent = |reason: &str| Landlock::Absent { reason: reason.to_owned() };
    match status {
        LandlockStatus::NotEnabled => absent("Landlock is switched off in this kernel"),
        LandlockStatus::NotImplemented => absent("this kernel has no Landlock"),
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            match kernel_abi.unwrap_or(effective_abi as i32) {
                abi if abi < WRITES_HELD => {
                    Landlock::Partial { abi, lacks: "cannot stop a file from being cut short" }
                }
                abi => match filtered {
                    Filtered::Yes => Landlock::Full { abi },
                    Filtered::Unknown => Landlock::Partial { abi, lacks: UNFILTERED },
                },
            }
        }
    }
}

/// Locks the calling thread in, and with it every process it starts; there is no way back. Fails when nothing could
/// be enforced.
pub(crate) fn confine(cage: &Cage) -> io::Result<()> {
    powers::give_up()?;
    let status = restrict(cage)?;
    match calls::filter()? {
        // Whoever asked for a cage has been told what there is of it.
        Filtered::Yes | Filtered::Unknown => {}
    }
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => Ok(()),
        _ => Err(io::Error::other("the kernel enforced nothing")),
    }
}

fn restrict(cage: &Cage) -> io::Result<RestrictionStatus> {
    let told = |error: RulesetError| io::Error::other(error.to_string());
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(FILES))
        .and_then(|rules| rules.scope(Scope::from_all(SCOPES)))
        .and_then(Ruleset::create)
        .map_err(told)?;
    let mut allow = |path: &Path, access: BitFlags<AccessFs>| -> io::Result<()> {
        let opened = PathFd::new(path).map_err(|error| unopened(path, &error))?;
        // Rights of directories mean nothing on a file, and are refused there.
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(FILES) };
        (&mut rules).add_rule(PathBeneath::new(opened, access)).map(drop).map_err(told)
    };
    let write = AccessFs::from_all(FILES) & !(AccessFs::MakeChar | AccessFs::MakeBlock);
    for path in &cage.writes {
        allow(Path::new(path), write)?;
    }
    for path in DEVICES.iter().map(Path::new).filter(|path| path.exists()) {
        allow(path, AccessFs::from_file(FILES))?;
    }
    let read = AccessFs::from_read(FILES);
    match &cage.reads {
        None => allow(Path::new("/"), read)?,
        Some(paths) => paths.iter().try_for_each(|path| allow(Path::new(path), read))?,
    }
    rules.restrict_self().map_err(told)
}

fn unopened(path: &Path, error: &PathFdError) -> io::Error {
    io::Error::other(format!("{} cannot be opened: {error}", path.display()))
}
