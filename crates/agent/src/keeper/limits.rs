//! The limits of a run, held by its keeper: what the system can hold per process it is told to, and what only the whole
//! run can exceed is counted.
//!
//! The system's own limit of processes counts all those of a user, drydock's and the desktop's included, and does not
//! bind root; control groups would be right and are rarely ours to use. So the keeper counts, many times a second, and
//! sees to it that a bomb cannot starve it: root's keeper takes precedence over what it keeps, and any other user's run
//! has a hard limit as well, above what the user had running when it began.

use std::fs;
use std::io;
use std::time::Duration;

use rustix::process::{Resource as Limited, Rlimit, geteuid, getrlimit, setpriority_process, setrlimit};

use super::processes;
use crate::sandbox::{Resource, Resources};

/// The pause between two looks at what a run uses.
pub(super) const LOOK_PAUSE: Duration = Duration::from_millis(50);

/// The highest precedence there is; only root may take it.
const FIRST: i32 = -20;

/// How many threads a process has on average at the most; the count of processes is the finer limit.
const THREADS_EACH: u64 = 4;

/// Lowers the limits of this process, which whatever it starts inherits. The keeper itself needs next to nothing.
pub(super) fn lower(resources: &Resources) -> io::Result<()> {
    // The data of a process, not its address space: runtimes reserve far more addresses than they ever use.
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

/// Lets the calling thread run before everything else, where that is allowed.
pub(super) fn take_precedence() {
    match setpriority_process(None, FIRST) {
        // Anybody but root is refused, and has the hard limit instead.
        Ok(()) | Err(_) => {}
    }
}

/// The system counts the threads of all processes of the user, so those that run already come on top.
fn processes_hard_max(resources: &Resources) -> Option<u64> {
    if geteuid().is_root() {
        return None;
    }
    let running = processes::threads_of(geteuid().as_raw()).ok()?;
    Some(running.saturating_add(resources.processes_max.saturating_mul(THREADS_EACH)))
}

/// Returns what the run uses too much of.
pub(super) fn exceeded(resources: &Resources) -> Option<Resource> {
    // Without a look there is no limit, and the next look comes in a moment.
    let alive = processes::living_descendants(resources.processes_max).ok()?;
    if alive.len() as u64 > resources.processes_max {
        return Some(Resource::Processes);
    }
    let max = resources.memory_max?;
    let sum = |of: fn(i32) -> Option<u64>| alive.iter().filter_map(|pid| of(*pid)).sum::<u64>();
    // The first look is cheap and counts what processes share once for each; the second is made when that is too much.
    (sum(held_bytes) > max && sum(shared_out_bytes) > max).then_some(Resource::Memory)
}

/// The memory of a process that no file backs: pages of programs and libraries would be counted once per process.
fn held_bytes(pid: i32) -> Option<u64> {
    fields_bytes(&format!("/proc/{pid}/status"), ["RssAnon:", "RssShmem:"])
}

/// The same with what it shares with others divided among them.
fn shared_out_bytes(pid: i32) -> Option<u64> {
    fields_bytes(&format!("/proc/{pid}/smaps_rollup"), ["Pss_Anon:", "Pss_Shmem:"])
        .or_else(|| held_bytes(pid))
}

/// Adds up fields that the kernel gives in units of 1024 bytes.
fn fields_bytes(file: &str, names: [&str; 2]) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()
    };
    Some((field(names[0])? + field(names[1])?) * 1024)
}
