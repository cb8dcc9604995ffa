//! The log of a run, as its phases write to it. A log that cannot be written never fails the run: lost lines
//! are counted, one warning is returned, and the count is written at the gap once writing works again.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::line::{NOTICE, push};
use super::writer::{KeptBytes, LogWriter};
use crate::{clock, task};
use drydock_domain::counted;

/// Number of buffered bytes at which they have to be written.
const PENDING_MAX: usize = 64 * 1024;
/// Time after a failed write until the next attempt.
const RETRY_AFTER: Duration = Duration::from_secs(1);
/// Maximum length of a line's text in bytes. Lines of agents are cut earlier.
const TEXT_MAX: usize = 128 * 1024;

/// Appends to the log of one run.
#[derive(Debug)]
pub(crate) struct RunLog {
    pending: Mutex<Vec<u8>>,
    files: Arc<Mutex<LogFiles>>,
}

#[derive(Debug)]
struct LogFiles {
    directory: PathBuf,
    kept: KeptBytes,
    writer: Option<LogWriter>,
    failed: Option<Failed>,
    retry_after: Duration,
    warned: bool,
}

#[derive(Debug)]
struct Failed {
    at: Instant,
    error: io::Error,
    lines: usize,
}

impl RunLog {
    /// Returns the log in this directory. Nothing is created before the first line is written.
    pub(crate) fn new(directory: PathBuf, output_max: u64) -> Self {
        let kept = KeptBytes::of(output_max);
        let retry_after = RETRY_AFTER;
        let files = LogFiles { directory, kept, writer: None, failed: None, retry_after, warned: false };
        Self { pending: Mutex::default(), files: Arc::new(Mutex::new(files)) }
    }

    /// Sets the time after a failed write until the next attempt.
    #[cfg(test)]
    pub(super) fn retry_after(&self, time: Duration) {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).retry_after = time;
    }

    /// Adds a line from drydock itself.
    pub(crate) fn notice(&self, text: &str) {
        self.line(NOTICE, text);
    }

    pub(crate) fn line(&self, stream: &str, text: &str) {
        let text = &text[..text.floor_char_boundary(TEXT_MAX)];
        push(&mut self.pending.lock().unwrap_or_else(PoisonError::into_inner), clock::now(), stream, text);
    }

    /// Returns true if the buffered lines have to be written now.
    pub(crate) fn is_full(&self) -> bool {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).len() >= PENDING_MAX
    }

    /// Writes the buffered lines. Returns the error only if it is the first one.
    pub(crate) async fn flush(&self) -> Option<io::Error> {
        let lines = self.take_pending();
        if lines.is_empty() {
            return None;
        }
        let files = Arc::clone(&self.files);
        task::blocking(move || files.lock().unwrap_or_else(PoisonError::into_inner).write(&lines)).await
    }

    /// Writes the buffered lines at the end of the run. Ignores the waiting time after a failed write,
    /// because no later write would mark the gap.
    pub(crate) async fn finish(&self) -> Option<io::Error> {
        let (lines, files) = (self.take_pending(), Arc::clone(&self.files));
        task::blocking(move || files.lock().unwrap_or_else(PoisonError::into_inner).finish(&lines)).await
    }

    fn take_pending(&self) -> Vec<u8> {
        std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl LogFiles {
    fn finish(&mut self, lines: &[u8]) -> Option<io::Error> {
        if lines.is_empty() && self.failed.is_none() {
            return None;
        }
        self.retry_after = Duration::ZERO;
        self.write(lines)
    }

    fn write(&mut self, lines: &[u8]) -> Option<io::Error> {
        if let Some(failed) = &mut self.failed
            && failed.at.elapsed() < self.retry_after
        {
            failed.lines += count(lines);
            return None;
        }
        let mut written = 0;
        match self.try_write(lines, &mut written) {
            Ok(()) => None,
            Err(error) => {
                // The next write opens the log again, which removes a torn line.
                self.writer = None;
                let shown = io::Error::new(error.kind(), error.to_string());
                let before = self.failed.take().map_or(0, |failed| failed.lines);
                let lines = before + count(&lines[written..]);
                self.failed = Some(Failed { at: Instant::now(), error, lines });
                (!std::mem::replace(&mut self.warned, true)).then_some(shown)
            }
        }
    }

    fn try_write(&mut self, lines: &[u8], written: &mut usize) -> io::Result<()> {
        let writer = match &mut self.writer {
            Some(writer) => writer,
            none => none.insert(LogWriter::open(&self.directory, self.kept)?),
        };
        if let Some(failed) = &self.failed {
            let mut gap = Vec::new();
            let text =
                format!("[{} could not be written here: {}]", counted(failed.lines, "line"), failed.error);
            push(&mut gap, clock::now(), NOTICE, &text);
            writer.append(&gap)?;
            self.failed = None;
        }
        let before = writer.end();
        let appended = writer.append(lines);
        *written = usize::try_from(writer.end() - before).unwrap_or(lines.len());
        appended
    }
}

fn count(lines: &[u8]) -> usize {
    lines.iter().filter(|byte| **byte == b'\n').count()
}
