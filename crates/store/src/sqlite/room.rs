//! Detects whether the disk is full. SQLite reports a full disk as such, but a quota, a file size limit, or
//! shared memory that cannot grow as an ordinary I/O error (B12). Writing a probe file beside the database
//! distinguishes these cases.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use super::connection::PRIVATE;

/// As much as SQLite writes at once.
static PROBE: [u8; 64 * 1024] = [0; 64 * 1024];

/// Returns true if a file of the size of this database's files cannot grow here.
pub(super) fn is_lacking(database: &Path) -> bool {
    let beside = |suffix: &str| {
        let mut name = database.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let files = [database.to_owned(), beside("-wal"), beside("-shm")];
    let longest = files.iter().filter_map(|file| fs::metadata(file).ok()).map(|found| found.len()).max();
    let probe = beside(&format!("-room-{}", std::process::id()));
    let grown = grow(&probe, longest.unwrap_or(0));
    // Removing fails if the probe could not be created, which is fine.
    fs::remove_file(&probe).ok();
    grown.is_err_and(|error| is_for_want_of_room(error.kind()))
}

fn grow(probe: &Path, length: u64) -> io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(PRIVATE).open(probe)?;
    file.seek(SeekFrom::Start(length))?;
    file.write_all(&PROBE)
}

fn is_for_want_of_room(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B12: fails if a disk error unrelated to space is reported as a full disk, or if the probe file is not
    /// removed.
    #[test]
    fn where_files_can_grow_nothing_is_lacking() {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("drydock.db");
        fs::write(&database, [0; 8192]).unwrap();
        assert!(!is_lacking(&database));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(!is_lacking(&folder.path().join("nowhere/drydock.db")));
    }
}
