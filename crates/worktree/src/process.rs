//! The one reader of process identities: of this process, and of the process that has a given number.

use std::fs;
use std::sync::OnceLock;

use drydock_domain::{AtPid, ProcessIdentity};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

/// Returns the identity of this process. It is read once, and again by a process that was forked.
pub fn this_process() -> ProcessIdentity {
    static READ: OnceLock<ProcessIdentity> = OnceLock::new();
    let read = READ.get_or_init(read_this);
    if read.pid == std::process::id() { read.clone() } else { read_this() }
}

/// Says whether a process is proven to be gone, as seen by this one.
pub fn is_gone(process: &ProcessIdentity) -> bool {
    process.is_gone(&this_process(), at_pid(process.pid))
}

fn read_this() -> ProcessIdentity {
    let pid = std::process::id();
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    // Processes are looked for in /proc by their numbers here; it may be that of another namespace.
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

/// Returns what there is at the number of a process. That there is none the kernel says itself: /proc may hide the
/// processes of others.
pub fn at_pid(pid: u32) -> AtPid {
    let Some(number) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return AtPid::Nothing };
    if test_kill_process(number) == Err(Errno::SRCH) {
        return AtPid::Nothing;
    }
    match stat(pid) {
        // Killed, and its parent has not asked how it ended. Other threads of such a process would still be at work.
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

/// Reads the fields after the name, which may contain anything: the third of the line is the first here.
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

    /// S1.7: breaks when a living process is taken for a dead one, or a dead one, noticed by its parent or not, for a
    /// living one.
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
