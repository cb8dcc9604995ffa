//! The files of a run's log. Each file is named after the offset of its first byte. The writer drops the
//! middle of the log by deleting files, and the names show which bytes are missing. The first file is the
//! head, which is never dropped.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

const EXTENSION: &str = "jsonl";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Segment {
    /// The offset of its first byte in the whole log.
    pub(super) start: u64,
    /// Its length when it was listed. The last file may grow.
    pub(super) length: u64,
}

impl Segment {
    pub(super) fn end(&self) -> u64 {
        self.start + self.length
    }
}

pub(super) fn path(directory: &Path, start: u64) -> PathBuf {
    // As wide as the largest offset, so that the files sort by name in the order of the log.
    directory.join(format!("{start:020}.{EXTENSION}"))
}

/// Returns the files of a log in order; `None` if the log does not exist.
pub(super) fn list(directory: &Path) -> io::Result<Option<Vec<Segment>>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let mut segments = Vec::new();
    for entry in entries {
        let entry = entry?;
        let Some(start) = start_of(&entry.path()) else { continue };
        match entry.metadata() {
            Ok(seen) if seen.is_file() => segments.push(Segment { start, length: seen.len() }),
            Ok(_) => {}
            // The file was dropped after it was listed.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    segments.sort_by_key(|segment| segment.start);
    Ok(Some(segments))
}

fn start_of(path: &Path) -> Option<u64> {
    if path.extension()? != EXTENSION {
        return None;
    }
    path.file_stem()?.to_str()?.parse().ok()
}
