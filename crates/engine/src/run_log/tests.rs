//! Compares a log with the whole stream after random appends, kills and reads.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use drydock_domain::Timestamp;

use super::handle::RunLog;
use super::line::push;
use super::reader::{Lines, LogStart, read};
use super::segment;
use super::writer::{KeptBytes, LogWriter};

const KEPT: KeptBytes = KeptBytes { head: 1_000, tail: 15_000, segment: 250 };

/// A small random number generator. A failing assertion prints its seed.
struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn lines(&mut self, first: usize) -> Vec<u8> {
        let mut lines = Vec::new();
        for number in 0..=self.below(5) as usize {
            let length = if self.below(50) == 0 { 400 } else { self.below(60) };
            let text = format!("{} {}", first + number, "x".repeat(length as usize));
            push(&mut lines, Timestamp::from_micros(0), "stdout", &text);
        }
        lines
    }
}

/// The bytes of the stream that a reader saw, by offset, and the gaps reported to it.
#[derive(Default)]
struct Reader {
    next: u64,
    seen: Vec<(u64, Vec<u8>)>,
    dropped: Vec<(u64, u64)>,
}

impl Reader {
    fn read(&mut self, directory: &Path, max: usize) -> usize {
        let Lines { bytes, next } = read(directory, LogStart::At(self.next), max).unwrap().unwrap();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            assert_eq!(line.last(), Some(&b'\n'), "a torn line was returned");
            let value: serde_json::Value = serde_json::from_slice(line).unwrap();
            match value["dropped"].as_u64() {
                Some(dropped) => {
                    self.dropped.push((self.next, dropped));
                    self.next += dropped;
                }
                None => {
                    self.seen.push((self.next, line.to_vec()));
                    self.next += line.len() as u64;
                }
            }
        }
        assert_eq!(self.next, next, "the offset that was returned is not where the lines end");
        bytes.len()
    }

    fn check(&self, stream: &[u8], seed: u64) {
        for (at, line) in &self.seen {
            let at = *at as usize;
            assert_eq!(&stream[at..at + line.len()], line, "seed {seed}: other bytes at offset {at}");
        }
        assert_eq!(self.next as usize, stream.len(), "seed {seed}: not read to the end");
    }
}

fn size(directory: &Path) -> u64 {
    fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

/// Leaves a log like a process that is killed while writing: with a part of a line, or with an empty next
/// file.
fn kill(directory: &Path, chance: &mut Chance) {
    let last = segment::list(directory).unwrap().unwrap().pop().unwrap();
    if chance.below(3) == 0 && last.start > 0 && last.length > 0 {
        fs::write(segment::path(directory, last.end()), "").unwrap();
        return;
    }
    let mut file = OpenOptions::new().append(true).open(segment::path(directory, last.start)).unwrap();
    file.write_all(&b"{\"at\":\"2026"[..chance.below(11) as usize]).unwrap();
}

/// N9. Breaks when a kill, a dropped middle or an offset produces a log other than head, mark and tail.
#[test]
fn random_appends_offsets_and_kills_leave_head_mark_and_tail() {
    for seed in 1..=12 {
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(seed));
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("plan/run");
        let mut writer = LogWriter::open(&directory, KEPT).unwrap();
        let (mut stream, mut count) = (Vec::new(), 0);
        let mut follower = Reader::default();
        let appends = 50 + chance.below(700);
        for _ in 0..appends {
            let lines = chance.lines(count);
            count += lines.iter().filter(|byte| **byte == b'\n').count();
            writer.append(&lines).unwrap();
            stream.extend_from_slice(&lines);
            if chance.below(20) == 0 {
                drop(writer);
                kill(&directory, &mut chance);
                if chance.below(2) == 0 {
                    follower.read(&directory, 1 + chance.below(2_000) as usize);
                }
                writer = LogWriter::open(&directory, KEPT).unwrap();
            }
            if chance.below(4) == 0 {
                follower.read(&directory, 1 + chance.below(4_000) as usize);
            }
            if chance.below(10) == 0 {
                let (held, bound) = (size(&directory), KEPT.head + KEPT.tail + 2 * KEPT.segment + 1_000);
                assert!(held <= bound, "seed {seed}: {held} bytes on disk");
            }
        }
        while follower.read(&directory, 1 + chance.below(4_000) as usize) > 0 {}
        follower.check(&stream, seed);
        let mut all = Reader::default();
        while all.read(&directory, 1 + chance.below(4_000) as usize) > 0 {}
        all.check(&stream, seed);
        let kept = (KEPT.head + KEPT.tail) as usize;
        match all.dropped[..] {
            [] => assert!(stream.len() <= kept + 2 * KEPT.segment as usize + 1_000, "seed {seed}"),
            [(head, dropped)] => {
                assert!(stream.len() > kept, "seed {seed}: dropped though there was room");
                assert!(head <= KEPT.head && head + 600 > KEPT.head, "seed {seed}: a head of {head}");
                let tail = stream.len() as u64 - head - dropped;
                assert!(tail >= KEPT.tail, "seed {seed}: a tail of {tail}");
            }
            ref many => panic!("seed {seed}: more than one gap: {many:?}"),
        }
    }
}

/// N9. Breaks when reading starts inside a line, or when `Last` counts bytes from the beginning.
#[test]
fn reading_begins_at_a_line_wherever_the_offset_is() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = LogWriter::open(folder.path(), KEPT).unwrap();
    let mut lines = Vec::new();
    for text in ["one", "two", "three"] {
        push(&mut lines, Timestamp::from_micros(0), "stdout", text);
    }
    writer.append(&lines).unwrap();
    let from = |start| read(folder.path(), start, 10_000).unwrap().unwrap();
    let length = lines.len() as u64 / 3;
    for (start, count) in [
        (LogStart::At(0), 3),
        (LogStart::At(1), 2),
        (LogStart::At(length - 1), 2),
        (LogStart::At(9_999), 0),
        (LogStart::Last(length + 3), 1),
        (LogStart::Last(9_999), 3),
        (LogStart::Last(0), 0),
    ] {
        let seen = from(start);
        assert_eq!(seen.bytes.iter().filter(|byte| **byte == b'\n').count(), count, "{start:?}");
        assert_eq!(seen.next, lines.len() as u64, "{start:?}");
    }
    assert_eq!(read(&folder.path().join("none"), LogStart::At(0), 1).unwrap(), None);
}

/// N9. Breaks when other users can read a log.
#[tokio::test]
async fn a_log_is_private() {
    let folder = tempfile::tempdir().unwrap();
    let log = RunLog::new(folder.path().join("plan/run"), 1);
    log.line("stdout", "one");
    assert!(log.flush().await.is_none());
    let mode = |path: &str| fs::metadata(folder.path().join(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("plan"), mode("plan/run")), (0o700, 0o700));
    assert_eq!(mode("plan/run/00000000000000000000.jsonl"), 0o600);
}

/// Issue 13. Breaks when a log that cannot be written fails a run, warns more than once, or hides the gap.
#[tokio::test]
async fn a_log_that_cannot_be_written_warns_once_and_marks_the_gap() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("plan");
    // A file in place of the directory fails for root too; permissions would not stop root.
    fs::write(&place, "").unwrap();
    let log = RunLog::new(place.join("run"), 1);
    log.line("stdout", "lost");
    assert!(log.flush().await.is_some());
    log.line("stdout", "lost while it waits");
    assert!(log.flush().await.is_none(), "warned twice");
    log.retry_after(Duration::ZERO);
    log.line("stdout", "lost when it is tried again");
    assert!(log.flush().await.is_none(), "warned twice");
    fs::remove_file(&place).unwrap();
    log.line("stdout", "kept");
    assert!(log.flush().await.is_none());
    let seen = read(&place.join("run"), LogStart::At(0), 10_000).unwrap().unwrap();
    let seen = String::from_utf8(seen.bytes).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    assert!(lines[0].contains("[3 lines could not be written here: "), "{seen}");
    assert!(lines[1].contains("\"kept\"") && lines.len() == 2, "{seen}");
}

/// Issue 13. Breaks when a run that ends soon after its log became writable again leaves no mark of the gap.
#[tokio::test]
async fn the_end_of_a_run_marks_a_gap_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("plan");
    fs::write(&place, "").unwrap();
    let log = RunLog::new(place.join("run"), 1);
    log.retry_after(Duration::from_secs(3600));
    log.line("stdout", "lost");
    assert!(log.flush().await.is_some());
    log.line("stdout", "lost while it waits");
    assert!(log.flush().await.is_none());
    fs::remove_file(&place).unwrap();
    log.line("stdout", "last");
    assert!(log.finish().await.is_none());
    let seen = read(&place.join("run"), LogStart::At(0), 10_000).unwrap().unwrap();
    let seen = String::from_utf8(seen.bytes).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    assert!(lines.len() == 2 && lines[0].contains("[2 lines could not be written here: "), "{seen}");
    assert!(lines[1].contains("\"last\""), "{seen}");
}

/// Issue 13. Breaks when a log that is removed while its run writes is not created again, or does not mark
/// the gap.
#[tokio::test]
async fn a_log_that_was_removed_continues_with_a_mark() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("plan/run");
    let log = RunLog::new(directory.clone(), 1);
    log.line("stdout", "before");
    log.flush().await;
    fs::remove_dir_all(folder.path().join("plan")).unwrap();
    log.line("stdout", "after");
    assert!(log.flush().await.is_none());
    let seen = read(&directory, LogStart::At(0), 10_000).unwrap().unwrap();
    let seen = String::from_utf8(seen.bytes).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    assert!(lines[0].contains("\"dropped\":") && lines[1].contains("\"after\""), "{seen}");
}
