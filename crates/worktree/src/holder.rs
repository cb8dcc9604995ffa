//! The holder of the repository's lock, and how a waiter deals with one whose fence is over.
//!
//! The lock file names plan, fence and process. A process that is frozen keeps the lock of the operating system, though its
//! plan was given to another. So a waiter that has seen the same holder for the length of a lease asks whether that fence is
//! over. If it is, and the holder is a process of this machine, the waiter ends it; a holder elsewhere is reported (BUG-11).

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

/// How long a process that was killed may take to end.
const END_MAX: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(10);
/// A lock file that is longer was not written by us.
const FILE_MAX: u64 = 64 * 1024;

/// The holder of the repository's lock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LockHolder {
    /// The plan on whose behalf, and the fence under which; nothing where it is not about one plan.
    pub plan: Option<(String, Fence)>,
    /// The process.
    pub process: ProcessIdentity,
    /// The attempt, for people.
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
    /// It may, or that is unknown.
    Current,
    /// Its fence is over: it can commit nothing more.
    Over,
}

/// Looks up whether a holder's fence is over.
pub type Judge = Arc<dyn Fn(&LockHolder) -> Standing + Send + Sync>;

/// Under which terms a repository's lock is taken and waited for.
#[derive(Clone, Default)]
pub(crate) struct Terms {
    pub(crate) plan: Option<(String, Fence)>,
    /// The judge, and how long a waiter sees the same holder before it asks.
    pub(crate) judge: Option<(Judge, Duration)>,
}

impl Terms {
    /// Writes into the lock file whose it is.
    pub(crate) fn sign(&self, mut file: &File, attempt: &str) -> std::io::Result<()> {
        let (plan, process) = (self.plan.clone(), this_process());
        let holder = LockHolder { plan, process, attempt: attempt.to_owned() };
        file.set_len(0)?;
        file.seek(SeekFrom::Start(0))?;
        file.write_all(&serde_json::to_vec(&holder)?)
    }
}

/// Reads whose a lock file is. None while it is being written, and for one of an earlier version.
pub(crate) fn read(path: &Path) -> Option<LockHolder> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_MAX).read_to_end(&mut bytes).ok()?;
    serde_json::from_slice(&bytes).ok()
}

/// A waiter's view of the holder.
#[derive(Default)]
pub(crate) struct Watch {
    seen: Option<(LockHolder, Instant)>,
    /// Whether the look before found the holder's fence over.
    over: bool,
}

impl Watch {
    /// Looks at the holder. Returns it when its fence is over and this process cannot end it.
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
        // A holder that was about to finish has released the lock by the next look.
        if !std::mem::replace(&mut self.over, true) {
            return None;
        }
        if !can_end(&holder.process) {
            return Some(holder);
        }
        tracing::warn!(%holder, "ending the process that holds the repository's lock after its plan's lock has run out");
        end(&holder.process);
        None
    }
}

/// Tells whether a process runs here, and is another than this one.
fn can_end(process: &ProcessIdentity) -> bool {
    let here = this_process();
    process.is_visible_to(&here)
        && process.pid != here.pid
        && matches!(at_pid(process.pid), AtPid::Started(at) if Some(at) == process.started)
}

/// Ends a process and the gits that it started, which would continue without it.
fn end(process: &ProcessIdentity) {
    let gits = gits_of(process.pid);
    let Some(pid) = i32::try_from(process.pid).ok().and_then(Pid::from_raw) else { return };
    // It may have ended since we looked; then there is nothing to signal.
    kill_process(pid, Signal::KILL).ok();
    let deadline = Instant::now() + END_MAX;
    while !is_gone(process) && Instant::now() < deadline {
        thread::sleep(PAUSE);
    }
    for (git, identity) in gits {
        // Each leads a group of its own. Asked first, git removes its lock files.
        kill_process_group(git, Signal::TERM).ok();
        while !is_gone(&identity) && Instant::now() < deadline {
            thread::sleep(PAUSE);
        }
        if !is_gone(&identity) {
            kill_process_group(git, Signal::KILL).ok();
        }
    }
}

/// Returns the children of a process that are git.
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
