//! The holder of the repository lock, and the takeover of the lock from a holder whose fence has expired.
//!
//! The lock file names plan, fence and process. A frozen process keeps the operating system's lock even after
//! its plan was given to another worker. A waiter that has seen the same holder for the duration of a lease
//! therefore checks whether that fence has expired. If it has and the holder is a process on this machine,
//! the waiter kills it. A holder on another machine is reported (BUG-11).

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use drydock_domain::{AtPid, Fence, ProcessIdentity};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde::{Deserialize, Serialize};

use crate::process::{at_pid, is_gone, this_process};

/// Time that a killed process gets to end.
const END_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
/// A longer lock file was not written by drydock.
const FILE_MAX: u64 = 64 * 1024;

/// The holder of the repository's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The plan and fence that the holder works for, or `None` if the operation does not concern a single
    /// plan.
    pub plan: Option<(String, Fence)>,
    /// The process that took the lock.
    pub process: ProcessIdentity,
    /// Description of the operation, for messages.
    pub attempt: String,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "process {} on {}", self.process.pid, self.process.host)?;
        if let Some((plan, fence)) = &self.plan {
            write!(f, " for {plan} under fence {}", fence.0)?;
        }
        write!(f, ", to {}", self.attempt)
    }
}

/// Whether a holder may still hold the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// The fence is current, or this is unknown.
    Current,
    /// The fence has expired: the holder can no longer commit.
    Over,
}

/// Checks whether a holder's fence has expired.
pub type Judge = Arc<dyn Fn(&LockHolder) -> Standing + Send + Sync>;

/// Settings for taking and waiting for a repository lock.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) plan: Option<(String, Fence)>,
    /// The check, and how long a waiter sees the same holder before it runs the check.
    pub(crate) judge: Option<(Judge, Duration)>,
}

impl Terms {
    /// Writes the holder into the lock file.
    pub(crate) fn sign(&self, mut file: &File, attempt: &str) -> std::io::Result<()> {
        let (plan, process) = (self.plan.clone(), this_process());
        let holder = LockHolder { plan, process, attempt: attempt.to_owned() };
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&serde_json::to_vec(&holder)?)
    }
}

/// Reads the holder from a lock file. Returns `None` while the file is being written, and for a file of an
/// earlier version.
pub(crate) fn read(path: &Path) -> Option<LockHolder> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// State of a waiter that watches the holder.
#[derive(Default)]
pub(crate) struct HolderWatch {
    seen: Option<(LockHolder, Instant)>,
    /// Whether the previous poll found the holder's fence expired.
    over: bool,
}

impl HolderWatch {
    /// Polls the holder. Returns it if its fence has expired and this process cannot kill it.
    pub(crate) fn look(&mut self, path: &Path, terms: &Terms) -> Option<LockHolder> {
        let (judge, lease) = terms.judge.as_ref()?;
        let holder = read(path);
        let waited = match (&self.seen, &holder) {
            (Some((seen, since)), Some(holder)) if seen == holder => since.elapsed() >= *lease,
            _ => {
                *self = Self { seen: holder.map(|holder| (holder, Instant::now())), over: false };
                return None;
            }
        };
        let holder = holder.filter(|_| waited)?;
        if judge(&holder) == Standing::Current || is_gone(&holder.process) {
            *self = Self { seen: Some((holder, Instant::now())), over: false };
            return None;
        }
        // Wait for one more poll: a holder that was about to finish has released the lock by then.
        if !std::mem::replace(&mut self.over, true) {
            return None;
        }
        if !can_end(&holder.process) {
            return Some(holder);
        }
        tracing::warn!(%holder, "killing the process that holds the repository's lock after its plan's \
                                 lock expired");
        end(&holder.process);
        None
    }
}

/// Returns true if the process runs on this machine and is not this process.
fn can_end(process: &ProcessIdentity) -> bool {
    let here = this_process();
    process.is_visible_to(&here)
        && process.pid != here.pid
        && matches!(at_pid(process.pid), AtPid::Started(at) if Some(at) == process.started)
}

/// Kills a process and the git processes that it started, which would otherwise continue.
fn end(process: &ProcessIdentity) {
    let gits = gits_of(process.pid);
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    // The process may have ended since the check; then there is nothing to signal.
    kill_process(pid, Signal::KILL).ok();
    let deadline = Instant::now() + END_MAX;
    while !is_gone(process) && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
    for (git, identity) in gits {
        // Each git process leads its own group. SIGTERM comes first because git then removes its lock files.
        kill_process_group(git, Signal::TERM).ok();
        while !is_gone(&identity) && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
        if !is_gone(&identity) {
            kill_process_group(git, Signal::KILL).ok();
        }
    }
}

/// Returns the child processes that are git.
fn gits_of(pid: u32) -> Vec<(Pid, ProcessIdentity)> {
    let mut children = BTreeSet::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten() {
        let listed = fs::read_to_string(thread.path().join("children")).unwrap_or_default();
        children.extend(listed.split_ascii_whitespace().filter_map(|number| number.parse::<u32>().ok()));
    }
    let is_git =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "git");
    let identified = |pid: u32| match at_pid(pid) {
        AtPid::Started(at) => {
            let identity = ProcessIdentity { pid, started: Some(at), ..this_process() };
            Some((Pid::from_raw(i32::try_from(pid).ok()?)?, identity))
        }
        AtPid::Nothing | AtPid::Unreadable => None,
    };
    children.into_iter().filter(is_git).filter_map(identified).collect()
}
