//! Reads a run's log from an offset while another process may be writing it. The reader returns only whole
//! lines, and a mark at each gap.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;

use super::line::{push_mark, time_of};
use super::segment::{self, Segment};
use super::writer::whole_lines;

/// Maximum number of times that the files are listed again because one was dropped while it was read.
const LISTINGS_MAX: usize = 5;
/// More than the longest line that is written: an agent's line is cut at 64 KiB, and JSON encodes one byte as
/// at most six.
const LINE_MAX: u64 = 1024 * 1024;
/// Number of bytes at the start of a line that contain its time.
const TIME_WITHIN: u64 = 64;

/// The position at which reading starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogStart {
    /// At this offset, or at the next line if the offset is inside a line.
    At(u64),
    /// At the first line that starts within this number of bytes from the end.
    Last(u64),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lines {
    pub(super) bytes: Vec<u8>,
    /// The offset after the lines.
    pub(super) next: u64,
}

/// Reads about `max` bytes; `None` if the log does not exist.
pub(super) fn read(directory: &Path, start: LogStart, max: usize) -> io::Result<Option<Lines>> {
    let mut listings = 0;
    loop {
        let Some(segments) = segment::list(directory)? else { return Ok(None) };
        match read_listed(directory, &segments, start, max) {
            Err(error) if error.kind() == ErrorKind::NotFound && listings < LISTINGS_MAX => listings += 1,
            read => return read.map(Some),
        }
    }
}

/// Returns the time of the first line and the end of the log; `None` if the log does not exist.
pub(super) fn summary(directory: &Path) -> io::Result<Option<(String, u64)>> {
    let Some(segments) = segment::list(directory)? else { return Ok(None) };
    let (Some(first), Some(last)) = (segments.first(), segments.last()) else { return Ok(None) };
    let mut begin = Vec::new();
    match File::open(segment::path(directory, first.start)) {
        Ok(file) => file.take(TIME_WITHIN).read_to_end(&mut begin).map(drop)?,
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    Ok(Some((time_of(&begin), last.end())))
}

fn whole_first(bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| *byte == b'\n').unwrap_or(bytes.len())
}

fn read_listed(directory: &Path, segments: &[Segment], start: LogStart, max: usize) -> io::Result<Lines> {
    let end = segments.last().map_or(0, Segment::end);
    let from = match start {
        LogStart::At(offset) => offset.min(end),
        LogStart::Last(bytes) => end.saturating_sub(bytes),
    };
    let mut lines = Lines { bytes: Vec::new(), next: from };
    for segment in segments.iter().filter(|segment| segment.end() > from) {
        let room = (max as u64).saturating_sub(lines.bytes.len() as u64);
        if room == 0 {
            break;
        }
        let missing = segment.start.saturating_sub(lines.next);
        let begin = lines.next.max(segment.start);
        let (skipped, part) = part(directory, segment, begin, room)?;
        if missing > 0 && !part.is_empty() {
            push_mark(&mut lines.bytes, missing, &part[..whole_first(&part)]);
        }
        if part.is_empty() && skipped == 0 {
            continue;
        }
        lines.next = begin + skipped + part.len() as u64;
        lines.bytes.extend_from_slice(&part);
        if lines.next < segment.end() {
            break;
        }
    }
    Ok(lines)
}

/// Reads whole lines of a file, at least one, from a position. Also returns the number of skipped bytes of a
/// line that started before the position.
fn part(directory: &Path, segment: &Segment, begin: u64, room: u64) -> io::Result<(u64, Vec<u8>)> {
    let mut file = File::open(segment::path(directory, segment.start))?;
    let within = begin - segment.start;
    // The previous byte shows whether a line starts here.
    file.seek(SeekFrom::Start(within.saturating_sub(1)))?;
    let mut bytes = Vec::new();
    let lead = u64::from(within > 0);
    let length = segment.end() - begin;
    file.take(length.min(room.max(LINE_MAX)) + lead).read_to_end(&mut bytes)?;
    let skipped = if within == 0 || bytes.first() == Some(&b'\n') {
        lead as usize
    } else {
        match bytes.iter().position(|byte| *byte == b'\n') {
            Some(end) => end + 1,
            None => return Ok((0, Vec::new())),
        }
    };
    let mut bytes = bytes.split_off(skipped.min(bytes.len()));
    let room = usize::try_from(room).unwrap_or(usize::MAX);
    let first = bytes.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let kept = whole_lines(&bytes[..room.min(bytes.len())]).max(first);
    bytes.truncate(kept);
    Ok((skipped as u64 - lead, bytes))
}
