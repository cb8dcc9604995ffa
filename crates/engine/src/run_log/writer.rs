//! Writes a run's log: appends whole lines, and drops the middle file by file if the log becomes too large.
//! Only one process writes a log: the one that holds the plan. After a crash the last line may be torn;
//! readers ignore it, and the next writer removes it.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use super::segment::{self, Segment};

/// The head is 1 / `HEAD_PART` of the kept bytes, and each file of the tail is 1 / `SEGMENT_PART`.
const HEAD_PART: u64 = 16;
const SEGMENT_PART: u64 = 64;
/// Minimum number of bytes kept of a log, even if the configuration sets less.
const KEPT_MIN: u64 = 64 * 1024;

/// Number of bytes of a log that are kept: at its head, in its tail, and in each file of the tail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptBytes {
    pub(super) head: u64,
    pub(super) tail: u64,
    pub(super) segment: u64,
}

impl KeptBytes {
    pub(super) fn of(output_max: u64) -> Self {
        let max = output_max.max(KEPT_MIN);
        let head = max / HEAD_PART;
        Self { head, tail: max - head, segment: max / SEGMENT_PART }
    }
}

/// Appends to one log.
#[derive(Debug)]
pub(super) struct LogWriter {
    directory: PathBuf,
    kept: KeptBytes,
    /// The files after the head, oldest first, without the current one.
    tail: VecDeque<Segment>,
    current: Segment,
    file: File,
}

impl LogWriter {
    /// Opens or creates a log, and removes a torn last line.
    pub(super) fn open(directory: &Path, kept: KeptBytes) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        let mut segments = VecDeque::from(segment::list(directory)?.unwrap_or_default());
        let mut current = segments.pop_back().unwrap_or(Segment { start: 0, length: 0 });
        let file = open_segment(directory, current.start)?;
        current.length = repaired(directory, &file, current.start)?;
        segments.retain(|segment| segment.start > 0);
        Ok(Self { directory: directory.to_owned(), kept, tail: segments, current, file })
    }

    /// Appends whole lines. On an error the log ends before the lines that could not be written.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.recreate_removed()?;
        let mut rest = lines;
        while !rest.is_empty() {
            let room = self.room();
            let mut fits = fitting(rest, room);
            if fits == 0 {
                if self.current.length > 0 {
                    self.rotate()?;
                    continue;
                }
                // A line longer than a whole file gets its own file.
                fits = first_line(rest);
            }
            self.write(&rest[..fits])?;
            rest = &rest[fits..];
        }
        Ok(())
    }

    /// Returns the offset at which the log ends.
    pub(super) fn end(&self) -> u64 {
        self.current.end()
    }

    fn room(&self) -> u64 {
        let max = if self.current.start == 0 { self.kept.head } else { self.kept.segment };
        max.saturating_sub(self.current.length)
    }

    fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if let Err(error) = self.file.write_all(lines) {
            // A part of the lines may have been written. If the truncation fails too, readers ignore the torn
            // line and the next append repairs it.
            if self.file.set_len(self.current.length).is_err() {
                tracing::debug!(log = %self.directory.display(), "an incomplete line stays in a log until it is opened again");
            }
            return Err(error);
        }
        self.current.length += lines.len() as u64;
        Ok(())
    }

    /// Starts the next file, and drops the oldest files of the tail that are not needed to keep the required
    /// size.
    fn rotate(&mut self) -> io::Result<()> {
        let next = Segment { start: self.current.end(), length: 0 };
        self.file = open_segment(&self.directory, next.start)?;
        let full = std::mem::replace(&mut self.current, next);
        if full.start > 0 {
            self.tail.push_back(full);
        }
        let mut held: u64 = self.tail.iter().map(|segment| segment.length).sum();
        while let Some(oldest) = self.tail.front()
            && held - oldest.length >= self.kept.tail
        {
            match fs::remove_file(segment::path(&self.directory, oldest.start)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            held -= oldest.length;
            self.tail.pop_front();
        }
        Ok(())
    }

    /// Continues in a new file when the current one was removed. Offsets continue, so readers see the gap.
    fn recreate_removed(&mut self) -> io::Result<()> {
        if self.file.metadata()?.nlink() > 0 {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        self.current = Segment { start: self.current.end(), length: 0 };
        self.file = open_segment(&self.directory, self.current.start)?;
        self.tail.clear();
        Ok(())
    }
}

fn open_segment(directory: &Path, start: u64) -> io::Result<File> {
    let path = segment::path(directory, start);
    OpenOptions::new().append(true).create(true).mode(0o600).open(path)
}

/// Cuts off a torn last line, and returns the remaining length.
fn repaired(directory: &Path, file: &File, start: u64) -> io::Result<u64> {
    let bytes = fs::read(segment::path(directory, start))?;
    let whole = whole_lines(&bytes) as u64;
    if whole < bytes.len() as u64 {
        file.set_len(whole)?;
    }
    Ok(whole)
}

/// Returns the length of the whole lines in these bytes.
pub(super) fn whole_lines(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
}

fn first_line(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |end| end + 1)
}

/// Returns the length of the whole lines at the start that fit.
fn fitting(lines: &[u8], room: u64) -> usize {
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    if lines.len() <= room { lines.len() } else { whole_lines(&lines[..room]) }
}
