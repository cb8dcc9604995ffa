//! Finds the process that holds a busy store. The kernel lists every lock with its process in `/proc/locks`.
//! The database files are not opened for this, because closing one would release SQLite's own locks on it.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::gate::WriteQueue;

/// The offset of SQLite's write lock in the shared-memory file of a write-ahead log.
const WRITE_BYTE: u64 = 120;

/// Describes the process that writes to a database or holds its gate file; `None` if it cannot be determined.
pub(super) fn of(database: &Path) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let mut memory = database.as_os_str().to_owned();
    memory.push("-shm");
    let writing = inode(&PathBuf::from(memory)).and_then(|inode| process(&locks, "POSIX", inode));
    let pid = writing.or_else(|| process(&locks, "FLOCK", inode(&WriteQueue::beside(database))?))?;
    Some(describe(pid))
}

fn inode(path: &Path) -> Option<u64> {
    fs::metadata(path).ok().map(|meta| meta.ino())
}

/// Finds another process with a write lock on a file: `1: POSIX ADVISORY WRITE 77 fe:00:4711 120 120`.
fn process(locks: &str, kind: &str, inode: u64) -> Option<u32> {
    let own = std::process::id();
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [_, found, _, "WRITE", pid, file, from, to] = words.as_slice() else { return None };
        let place = file.rsplit(':').next()?.parse::<u64>().ok()?;
        // One range may cover several of SQLite's locks.
        let covers = kind == "FLOCK"
            || (from.parse::<u64>().ok()? <= WRITE_BYTE
                && (*to == "EOF" || to.parse::<u64>().ok()? >= WRITE_BYTE));
        let pid = pid.parse::<u32>().ok()?;
        (*found == kind && place == inode && covers && pid != own).then_some(pid)
    })
}

fn describe(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let name = match name.trim() {
        "" => String::new(),
        name => format!(" ({name})"),
    };
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    match state {
        Some('T' | 't') => {
            format!("process {pid}{name} holds it and is stopped; `kill -CONT {pid}` lets it continue")
        }
        Some(_) | None => format!("process {pid}{name} holds it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_lock_for_writing_on_the_right_byte_counts() {
        let locks = "1: POSIX  ADVISORY  READ  70 fe:00:4711 123 123\n\
                     2: POSIX  ADVISORY  WRITE 71 fe:00:4711 121 121\n\
                     3: -> POSIX  ADVISORY  WRITE 72 fe:00:4711 120 120\n\
                     4: POSIX  ADVISORY  WRITE 73 fe:00:4712 120 120\n\
                     5: FLOCK  ADVISORY  WRITE 74 fe:00:4713 0 EOF\n\
                     6: POSIX  ADVISORY  WRITE 75 fe:00:4711 120 121\n";
        assert_eq!(process(locks, "POSIX", 4711), Some(75));
        assert_eq!((process(locks, "FLOCK", 4713), process(locks, "FLOCK", 4711)), (Some(74), None));
    }
}
