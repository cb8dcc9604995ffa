//! Reads the processes of this machine from `/proc`, and kills whole trees of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::time::Duration;

use drydock_domain::error_chain;
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, kill_process_group, waitpid};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// Ended, but not yet reaped.
    zombie: bool,
}

/// Sends SIGKILL to every descendant of this process and returns those that were alive.
///
/// Signals go to whole process groups as well as to single processes: the kernel signals a group in one step,
/// so a process that forks faster than we read `/proc` cannot escape. The group of a descendant contains only
/// descendants, because the keeper leads its own session and groups do not cross sessions. A pid could in
/// theory be reused before the signal is sent, but only if all pids were used up within those microseconds.
pub(crate) fn kill_descendants() -> io::Result<Vec<i32>> {
    let processes = all()?;
    let own = own(&processes)?;
    kill_alive(descendants(&processes, own.pid), own)
}

/// Sends SIGKILL to every child of this process in another session that is not in `known`, and to all its
/// descendants. Returns how many were alive. Children that have ended are reaped, because nothing else does.
pub(crate) fn kill_unknown_children(known: &[i32]) -> io::Result<usize> {
    let processes = all()?;
    let own = own(&processes)?;
    let strange = processes.iter().filter(|process| {
        process.parent == own.pid && process.session != own.session && !known.contains(&process.pid)
    });
    let mut killed = 0;
    for child in strange {
        let mut tree = descendants(&processes, child.pid);
        tree.push(*child);
        killed += kill_alive(tree, own)?.len();
        match waitpid(Pid::from_raw(child.pid), WaitOptions::NOHANG) {
            // A child that is still ending is reaped in the next scan.
            Ok(_) | Err(_) => {}
        }
    }
    Ok(killed)
}

/// Reaps every child of this process that has ended and is not `spared`, and returns their number.
pub(crate) fn reap_children(spared: impl Fn(i32) -> bool) -> io::Result<usize> {
    let own = std::process::id().cast_signed();
    // If the kernel lists children, there is no need to read the whole of `/proc`.
    let children = children(own).or_else(|_| {
        let below = |process: &Process| (process.parent == own).then_some(process.pid);
        all().map(|processes| processes.iter().filter_map(below).collect())
    })?;
    let mut reaped = 0;
    for child in children.into_iter().filter(|child| !spared(*child)) {
        // Living children are not affected, and a child that was reaped meanwhile no longer exists.
        reaped += usize::from(matches!(waitpid(Pid::from_raw(child), WaitOptions::NOHANG), Ok(Some(_))));
    }
    Ok(reaped)
}

/// Returns this process.
///
/// In a container its session and group can be 0, which is how `/proc` and the kernel show one from outside
/// the container; rustix assumes that they are never 0.
fn own(processes: &[Process]) -> io::Result<Process> {
    let pid = std::process::id().cast_signed();
    let own = processes.iter().find(|process| process.pid == pid);
    own.copied().ok_or_else(|| io::Error::other("this process is not in /proc"))
}

fn kill_alive(found: Vec<Process>, own: Process) -> io::Result<Vec<i32>> {
    let alive: Vec<Process> = found.into_iter().filter(|found| !found.zombie).collect();
    let groups: BTreeSet<i32> =
        alive.iter().map(|process| process.group).filter(|group| *group != own.group).collect();
    for group in groups {
        deliver(group, kill_process_group)?;
    }
    for process in &alive {
        deliver(process.pid, kill_process)?;
    }
    Ok(alive.iter().map(|process| process.pid).collect())
}

/// Returns the living descendants of this process, or slightly more than `most` of them.
///
/// Reads the kernel's list of children for each process, so the cost depends on the size of the run, not of
/// the machine; without such a list all of `/proc` is read. Processes that fork or end meanwhile may be
/// missed: this is for limits, not for killing.
pub(crate) fn living_descendants(most: u64) -> io::Result<Vec<i32>> {
    let own = std::process::id().cast_signed();
    let mut found = BTreeSet::new();
    let mut parents = vec![own];
    while let Some(parent) = parents.pop() {
        // A fork bomb grows while it is counted; it is enough to know that there are too many.
        if found.len() as u64 > most {
            break;
        }
        match children(parent) {
            Ok(children) => parents.extend(children.into_iter().filter(|child| found.insert(*child))),
            Err(error) if parent == own => {
                tracing::trace!(error = %error_chain(&error), "the kernel does not list children");
                let alive = descendants(&all()?, own).into_iter().filter(|process| !process.zombie);
                return Ok(alive.map(|process| process.pid).collect());
            }
            // The process ended since it was listed.
            Err(_) => {}
        }
    }
    Ok(found.into_iter().collect())
}

/// Returns the CPU time of a process's descendants, including those that have ended and were reaped.
pub(crate) fn computed_below(root: u32) -> Duration {
    let mut ticks = 0;
    let mut parents = vec![root.cast_signed()];
    let mut seen = BTreeSet::new();
    while let Some(parent) = parents.pop() {
        // A process that ends meanwhile is counted by the parent that reaps it.
        parents.extend(children(parent).unwrap_or_default().into_iter().filter(|child| seen.insert(*child)));
        let stat = fs::read(format!("/proc/{parent}/stat")).unwrap_or_default();
        ticks += parse_ticks(&String::from_utf8_lossy(&stat)).unwrap_or(0);
    }
    Duration::from_millis(ticks.saturating_mul(1_000) / clock_ticks_per_second().max(1))
}

/// Adds up the times of a process and its children: `utime stime cutime cstime`, the 12th to 15th field after
/// the name.
fn parse_ticks(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(") ")?;
    let times = rest.split_ascii_whitespace().skip(11).take(4);
    times.map(|time| time.parse::<u64>().ok()).sum()
}

/// Returns the number of threads of a user.
pub(crate) fn threads_of(user: u32) -> io::Result<u64> {
    let mut threads = 0;
    for process in all()? {
        // The process ended meanwhile.
        let Ok(status) = fs::read_to_string(format!("/proc/{}/status", process.pid)) else { continue };
        let field = |name: &str| {
            status.lines().find_map(|line| {
                line.strip_prefix(name)?.split_ascii_whitespace().next()?.parse::<u64>().ok()
            })
        };
        if field("Uid:") == Some(u64::from(user)) {
            threads += field("Threads:").unwrap_or(1);
        }
    }
    Ok(threads)
}

fn children(pid: i32) -> io::Result<Vec<i32>> {
    let mut children = Vec::new();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let listed = fs::read_to_string(thread?.path().join("children"))?;
        children.extend(listed.split_ascii_whitespace().filter_map(|number| number.parse::<i32>().ok()));
    }
    Ok(children)
}

/// Sends SIGKILL to every process whose initial environment contained `entry`, and returns their number.
///
/// Used for descendants of a killed keeper: they are no longer descendants of this process.
pub(crate) fn kill_marked(entry: &str) -> io::Result<usize> {
    let mut found = 0;
    for process in all()?.into_iter().filter(|process| !process.zombie) {
        // Processes of other users cannot be read, and a process may just have ended; neither must be killed.
        let Ok(environment) = fs::read(format!("/proc/{}/environ", process.pid)) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes()) {
            found += 1;
            deliver(process.pid, kill_process)?;
        }
    }
    Ok(found)
}

/// Sends SIGKILL. A process that has ended or belongs to another user is ignored.
fn deliver(raw: i32, kill: impl Fn(Pid, Signal) -> rustix::io::Result<()>) -> io::Result<()> {
    // 0 is invalid for rustix and means "my own group" for the kernel; `/proc` shows it for kernel threads
    // and for groups from outside a container.
    let Some(pid) = Pid::from_raw(raw) else { return Ok(()) };
    match kill(pid, Signal::KILL) {
        Ok(()) | Err(Errno::SRCH | Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

fn all() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let entry = entry?;
        let is_process = entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit);
        // A process may end after it was listed.
        if is_process && let Ok(stat) = fs::read(entry.path().join("stat")) {
            processes.extend(parse_stat(&String::from_utf8_lossy(&stat)));
        }
    }
    Ok(processes)
}

/// Parses `pid (name) state parent group session …`; the name may contain spaces and parentheses.
fn parse_stat(stat: &str) -> Option<Process> {
    let (pid, rest) = stat.split_once(" (")?;
    let (_, rest) = rest.rsplit_once(") ")?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    Some(Process { pid: pid.parse().ok()?, parent, group, session, zombie: matches!(state, "Z" | "X" | "x") })
}

fn descendants(processes: &[Process], root: i32) -> Vec<Process> {
    let mut children: BTreeMap<i32, Vec<Process>> = BTreeMap::new();
    for process in processes {
        children.entry(process.parent).or_default().push(*process);
    }
    let mut found = Vec::new();
    let mut parents = vec![root];
    // Each list is removed once, so the walk ends even if the listing, which is not atomic, contains a cycle.
    while let Some(parent) = parents.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            parents.push(child.pid);
            found.push(child);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Process, descendants, parse_stat, parse_ticks};

    fn process(pid: i32, parent: i32) -> Process {
        Process { pid, parent, group: pid, session: pid, zombie: false }
    }

    #[test]
    fn a_name_full_of_parentheses_does_not_hide_a_process() {
        let seen = parse_stat("42 (a) S 1 1 ) (b) Z 7 9 9 0 -1");
        assert_eq!(seen, Some(Process { pid: 42, parent: 7, group: 9, session: 9, zombie: true }));
        assert_eq!(parse_stat("nonsense"), None);
    }

    #[test]
    fn the_times_of_a_process_and_its_children_are_added_up() {
        let stat = "42 (a) S 1 2 3 4 5 6 7 8 9 10 100 20 3 1 20 0";
        assert_eq!(parse_ticks(stat), Some(124));
        assert_eq!(parse_ticks("nonsense"), None);
    }

    #[test]
    fn the_walk_finds_all_below_the_root_and_ends_on_a_cycle() {
        let processes =
            [process(2, 1), process(3, 2), process(4, 3), process(9, 1), process(5, 6), process(6, 5)];
        let mut found: Vec<i32> = descendants(&processes, 2).iter().map(|found| found.pid).collect();
        found.sort_unstable();
        assert_eq!(found, [3, 4]);
        assert_eq!(descendants(&processes, 5).len(), 2);
    }
}
