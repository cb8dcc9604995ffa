//! Reads process identities: of this process, and of the process with a given pid.

use std::fs;
use std::sync::OnceLock;

use drydock_domain::{AtPid, ProcessIdentity};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Returns the identity of this process. It is cached, and read again in a forked process.
pub fn this_process() -> ProcessIdentity {
    static READ: OnceLock<ProcessIdentity> = OnceLock::new();
    let read = READ.get_or_init(read_this);
    if read.pid == std::process::id() { read.clone() } else { read_this() }
}

/// Returns true if a process has provably ended, as seen from this process.
pub fn is_gone(process: &ProcessIdentity) -> bool {
    process.is_gone(&this_process(), at_pid(process.pid))
}

fn read_this() -> ProcessIdentity {
    let pid = std::process::id();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Processes are looked up in /proc by pid; /proc may belong to another pid namespace.
    let ours = fs::read_link("/proc/self").is_ok_and(|link| link.as_os_str() == pid.to_string().as_str());
    let namespace = fs::read_link("/proc/self/ns/pid").ok().filter(|_| ours);
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    ProcessIdentity {
        host,
        pid,
        boot: boot.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()),
        pid_namespace: namespace.map(|link| link.to_string_lossy().into_owned()),
        started: match stat(pid) {
            Some(Stat { started, .. }) if ours => Some(started),
            Some(_) | None => None,
        },
    }
}

/// Returns the state of a pid. Whether a process exists is checked by a signal, because /proc may hide
/// processes of other users.
pub fn at_pid(pid: u32) -> AtPid {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return AtPid::Nothing };
    if test_kill_process(number) == Err(Errno::SRCH) {
        return AtPid::Nothing;
    }
    match stat(pid) {
        // A zombie that its parent has not reaped. If it had other threads, these could still be running.
        Some(Stat { state: b'Z' | b'X', threads: 0 | 1, .. }) => AtPid::Nothing,
        Some(Stat { started, .. }) => AtPid::Started(started),
        None => AtPid::Unreadable,
    }
}

struct Stat {
    state: u8,
    threads: u64,
    started: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    parse(&String::from_utf8_lossy(&text))
}

/// Parses the fields after the process name, which may contain any character. Index 0 here is field 3 of the
/// line.
fn parse(line: &str) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |at: usize| fields.get(at).and_then(|field| field.parse().ok());
    Some(Stat { state: *fields.first()?.as_bytes().first()?, threads: number(17)?, started: number(19)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    /// S1.7: breaks when a living process is considered dead, or a dead process, reaped or not, is considered
    /// alive.
    #[test]
    fn a_process_is_gone_when_it_was_killed() {
        let this = this_process();
        assert!(this.boot.is_some() && this.pid_namespace.is_some(), "{this:?}");
        assert!(!is_gone(&this));
        let mut child = Command::new("sleep").arg("60").stdin(Stdio::null()).spawn().unwrap();
        let AtPid::Started(at) = at_pid(child.id()) else { panic!("it runs") };
        let other = ProcessIdentity { pid: child.id(), started: Some(at), ..this };
        assert!(!is_gone(&other));
        assert!(
            is_gone(&ProcessIdentity { started: Some(at + 1), ..other.clone() }),
            "another had the number"
        );
        child.kill().unwrap();
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while !is_gone(&other) {
            assert!(std::time::Instant::now() < limit, "it is dead, though nobody has asked how it ended");
            std::thread::yield_now();
        }
        child.wait().unwrap();
        assert!(is_gone(&other));
    }

    #[test]
    fn a_name_may_contain_anything() {
        let line = "12 (a) R (b)) S 1 12 12 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 3 0 98765 1 2";
        let Stat { state, threads, started } = parse(line).unwrap();
        assert_eq!((state, threads, started), (b'S', 3, 98765));
    }
}
