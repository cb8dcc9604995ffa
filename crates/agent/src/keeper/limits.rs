//! The resource limits of a run, enforced by its keeper. Limits per process are set in the system; limits of
//! the whole run are checked by counting.
//!
//! The system's process limit counts all processes of a user, including drydock's and the desktop's, and does
//! not apply to root. Control groups would be better, but drydock rarely has the right to use them. The
//! keeper therefore counts many times per second and ensures that a fork bomb cannot starve it: root's keeper
//! gets the highest priority, and any other user's run also has a hard limit above the number of threads the
//! user had when it started.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource as Limited, Rlimit, geteuid, getrlimit, setpriority_process, setrlimit};

use super::processes;
use crate::sandbox::{Resource, Resources};

/// Pause between two checks of a run's usage.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The highest priority; only root may set it.
const FIRST: i32 = -20;

/// Assumed maximum of threads per process on average; the process count is the stricter limit.
const THREADS_EACH: u64 = 4;

/// Lowers the limits of this process, which its children inherit. The keeper itself needs almost nothing.
pub(super) fn lower(resources: &Resources) -> io::Result<()> {
    // Limits the data of a process, not its address space: runtimes reserve far more addresses than they use.
    let limits = [
        (Limited::Data, resources.memory_max),
        (Limited::Nofile, resources.files_max),
        (Limited::Nproc, processes_hard_max(resources)),
    ];
    for (limited, max) in limits {
        let Some(max) = max else { continue };
        let max = getrlimit(limited).maximum.map_or(max, |hard| hard.min(max));
        setrlimit(limited, Rlimit { current: Some(max), maximum: Some(max) })?;
    }
    Ok(())
}

/// Sets the highest priority for the calling thread, if allowed.
pub(super) fn take_precedence() {
    match setpriority_process(None, FIRST) {
        // Users other than root are not allowed to, and have the hard limit instead.
        Ok(()) | Err(_) => {}
    }
}

/// Returns the hard limit of threads. The system counts the threads of all processes of the user, so those
/// already running are added.
fn processes_hard_max(resources: &Resources) -> Option<u64> {
    if geteuid().is_root() {
        return None;
    }
    let running = processes::threads_of(geteuid().as_raw()).ok()?;
    Some(running.saturating_add(resources.processes_max.saturating_mul(THREADS_EACH)))
}

/// Returns the resource whose limit the run exceeds.
pub(super) fn exceeded(resources: &Resources) -> Option<Resource> {
    // If the processes cannot be read, the limit is not enforced until the next check, a moment later.
    let alive = processes::living_descendants(resources.processes_max).ok()?;
    if alive.len() as u64 > resources.processes_max {
        return Some(Resource::Processes);
    }
    let max = resources.memory_max?;
    let sum = |of: fn(i32) -> Option<u64>| alive.iter().filter_map(|pid| of(*pid)).sum::<u64>();
    // The first sum is cheap, but counts shared memory once per process. The second is computed only if the
    // first is too large.
    (sum(held_bytes) > max && sum(shared_out_bytes) > max).then_some(Resource::Memory)
}

/// Returns the memory of a process without file-backed pages, because programs and libraries would be counted
/// once per process.
fn held_bytes(pid: i32) -> Option<u64> {
    fields_bytes(&format!("/proc/{pid}/status"), ["RssAnon:", "RssShmem:"])
}

/// Returns the same memory, with shared pages divided among the processes that share them.
fn shared_out_bytes(pid: i32) -> Option<u64> {
    fields_bytes(&format!("/proc/{pid}/smaps_rollup"), ["Pss_Anon:", "Pss_Shmem:"])
        .or_else(|| held_bytes(pid))
}

/// Adds up fields that the kernel prints in units of 1024 bytes.
fn fields_bytes(file: &str, names: [&str; 2]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    Some((field(names[0])? + field(names[1])?) * 1024)
}
