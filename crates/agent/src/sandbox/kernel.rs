//! The kernel's sandbox: detects Landlock and the seccomp filter (`calls`), and confines the calling thread
//! permanently.
//!
//! Landlock rights only add up: a path below a writable one cannot be excluded. The repository's own `.git`
//! is protected because it is never below a writable path: a run may write to its worktree and its temporary
//! directory, and to nothing above them. Devices cannot be created even there, because root could otherwise
//! create a disk device and write to it.
//!
//! Besides files, a confined process can only signal processes in the same sandbox, so neither its keeper nor
//! drydock. It cannot read the memory or environment of a process outside, or connect to its abstract
//! sockets. Landlock does not control changes to the mode, owner, times or attributes of visible files,
//! connections to sockets in the file system, or the network.

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

/// The file rights in use: all up to the version that added ioctl on devices.
const FILES: ABI = ABI::V5;
/// The version that scopes signals and abstract sockets.
const SCOPES: ABI = ABI::V6;
/// The first version under which nothing outside can be changed: before it, a file could be truncated.
const WRITES_HELD: i32 = 3;

/// The remaining risk without the filter.
const UNFILTERED: &str = "has no seccomp filter: an agent can kill drydock by changing its resource limits";

/// Harmless devices that programs expect to be writable.
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];

/// Landlock support of this kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Landlock {
    /// Everything that the sandbox needs.
    Full {
        /// ABI version of the kernel.
        abi: i32,
    },
    /// A part of it.
    Partial {
        /// ABI version of the kernel.
        abi: i32,
        /// The missing part; the text follows "Landlock" in a sentence.
        lacks: &'static str,
    },
    /// No support.
    Absent {
        /// Why it is not supported.
        reason: String,
    },
    /// Supported but failing. The run must not start without it.
    Broken {
        /// The error.
        reason: String,
    },
}

/// Where a run may write, and where it may read if reads are restricted. Bytes instead of paths, because a
/// path need not be text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxPaths {
    pub(crate) writes: Vec<OsString>,
    pub(crate) reads: Option<Vec<OsString>>,
}

/// Returns the Landlock support of this kernel. Detected once, on a thread that confines itself and ends.
pub fn landlock() -> &'static Landlock {
    static SEEN: OnceLock<Landlock> = OnceLock::new();
    SEEN.get_or_init(|| {
        let everything = SandboxPaths { writes: vec!["/".into()], reads: None };
        let broken = |reason: String| Landlock::Broken { reason };
        let look = move || Ok::<_, io::Error>((restrict(&everything)?, calls::filter()?));
        match thread::spawn(look).join() {
            Ok(Ok((status, filtered))) => judge(status.landlock, filtered),
            Ok(Err(error)) => broken(format!("Landlock could not be used: {error}")),
            Err(_) => broken("Landlock could not be used: the check for it failed".to_owned()),
        }
    })
}

fn judge(status: LandlockStatus, filtered: Filtered) -> Landlock {
    let absent = |reason: &str| Landlock::Absent { reason: reason.to_owned() };
    match status {
        LandlockStatus::NotEnabled => absent("Landlock is disabled in this kernel"),
        LandlockStatus::NotImplemented => absent("this kernel has no Landlock"),
        LandlockStatus::Available { effective_abi, kernel_abi } => {
            match kernel_abi.unwrap_or(effective_abi as i32) {
                abi if abi < WRITES_HELD => {
                    Landlock::Partial { abi, lacks: "cannot prevent files from being truncated" }
                }
                abi => match filtered {
                    Filtered::Yes => Landlock::Full { abi },
                    Filtered::Unknown => Landlock::Partial { abi, lacks: UNFILTERED },
                },
            }
        }
    }
}

/// Permanently confines the calling thread and every process it starts. Fails if nothing could be enforced.
pub(crate) fn confine(cage: &SandboxPaths) -> io::Result<()> {
    powers::give_up()?;
    let status = restrict(cage)?;
    match calls::filter()? {
        // Already checked: callers know the kernel's support from [`landlock`].
        Filtered::Yes | Filtered::Unknown => {}
    }
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced if status.no_new_privs => Ok(()),
        _ => Err(io::Error::other("the kernel enforced nothing")),
    }
}

fn restrict(cage: &SandboxPaths) -> io::Result<RestrictionStatus> {
    let told = |error: RulesetError| io::Error::other(error.to_string());
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(FILES))
        .and_then(|rules| rules.scope(Scope::from_all(SCOPES)))
        .and_then(Ruleset::create)
        .map_err(told)?;
    let mut allow = |path: &Path, access: BitFlags<AccessFs>| -> io::Result<()> {
        let opened = PathFd::new(path).map_err(|error| unopened(path, &error))?;
        // Directory rights are meaningless on a file, and the kernel rejects them there.
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
