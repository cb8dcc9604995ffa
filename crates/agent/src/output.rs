//! The output of a process: split into lines of limited length, counted against a limit, with the last lines
//! kept.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use drydock_domain::{counted, error_chain};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::failure_report::FailurePatterns;
use crate::message::{self, ParsedLine};
use crate::reply::Reply;
use crate::secret::Secrets;
use crate::signal::{Activity, OutputStream, Signal};

/// Maximum length of a forwarded line; the rest of a longer line is counted and dropped.
const LINE_MAX: usize = 64 * 1024;
/// Number of lines in the tail of an ending, and the maximum length of each.
const TAIL_LINES: usize = 20;
const TAIL_LINE_MAX: usize = 2 * 1024;
/// Maximum number of lines kept of a report of a failed model.
const REPORT_LINES_MAX: usize = 50;
/// Maximum amount kept of a shell command's output.
const KEPT_MAX: usize = 64 * 1024;
/// How long an open pipe is read after every process of the run has ended. It stays open if a process outside
/// the run was given the other end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(2);
const CHUNK: usize = 16 * 1024;

/// A stream of a run, read to its end. Reading stops if the run has ended and another process still holds the
/// stream open.
pub(crate) struct Drain<R> {
    from: R,
    over: CancellationToken,
    chunk: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Drain<R> {
    pub(crate) fn new(from: R, over: &CancellationToken) -> Self {
        Self { from, over: over.clone(), chunk: vec![0; CHUNK] }
    }

    /// Returns the next bytes, or `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<&[u8]> {
        let patience = async {
            self.over.cancelled().await;
            tokio::time::sleep(DRAIN_PATIENCE).await;
        };
        let read = tokio::select! {
            read = self.from.read(&mut self.chunk) => read,
            () = patience => {
                tracing::warn!("another process keeps the output of an ended run open; reading stopped");
                return None;
            }
        };
        match read {
            Ok(0) => None,
            Ok(length) => Some(&self.chunk[..length]),
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "could not read the output of a run to its end");
                None
            }
        }
    }
}

/// The agent's last message, as far as it may report a failed model.
#[derive(Default)]
struct Last {
    /// Whether the agent wrote text since it last used a tool or sent a message to drydock. If so, the next
    /// line does not begin a new message.
    begun: bool,
    /// The latest report of a failed model since the agent last used a tool, with the lines after it.
    report: Vec<String>,
}

/// Receives the lines of one agent: forwards them to the caller, keeps the tail and counts against the limit.
pub(crate) struct SignalSink {
    signals: mpsc::Sender<Signal>,
    /// Cancelled when the run is being stopped: from then on nothing waits for a slow receiver.
    hurry: CancellationToken,
    /// Cancelled by the sink when the agent wrote too much.
    exceeded: CancellationToken,
    written: AtomicU64,
    limit: u64,
    tail: Mutex<LastLines>,
    secrets: Secrets,
    failure_patterns: FailurePatterns,
    last: Mutex<Last>,
}

impl SignalSink {
    pub(crate) fn new(
        signals: mpsc::Sender<Signal>,
        limit: u64,
        hurry: CancellationToken,
        secrets: Secrets,
    ) -> Self {
        Self {
            signals,
            hurry,
            exceeded: CancellationToken::new(),
            written: AtomicU64::new(0),
            limit,
            tail: Mutex::new(LastLines::default()),
            secrets,
            failure_patterns: FailurePatterns::default(),
            last: Mutex::default(),
        }
    }

    /// Returns this sink with prefixes by which it recognises reports of a failed model.
    pub(crate) fn reporting(self, failure_patterns: FailurePatterns) -> Self {
        Self { failure_patterns, ..self }
    }

    /// Returns true if a text begins like the report of a failed model.
    pub(crate) fn begins_report(&self, text: &str) -> bool {
        self.failure_patterns.begin(text)
    }

    /// Returns the latest report of a failed model, if the agent used no tool after it.
    pub(crate) fn report(&self) -> Option<String> {
        let report = &self.last.lock().unwrap_or_else(PoisonError::into_inner).report;
        (!report.is_empty()).then(|| report.join("\n"))
    }

    /// Returns the latest report of a failed model among the last lines of both streams.
    pub(crate) fn report_in_tail(&self) -> Option<String> {
        self.failure_patterns.report(self.tail().lines())
    }

    /// Keeps a line if it is part of a report. A report begins a message; in the middle of a message an agent
    /// may write about errors.
    fn remember(&self, line: &str, begins: bool) {
        if line.trim().is_empty() {
            return;
        }
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if message::claims_to_be_a_message(line) {
            last.begun = false;
            return;
        }
        let begins = begins || !std::mem::replace(&mut last.begun, true);
        if begins && self.failure_patterns.begin(line) {
            last.report.clear();
        } else if last.report.is_empty() || last.report.len() == REPORT_LINES_MAX {
            return;
        }
        last.report.push(self.shortened(line));
    }

    pub(crate) fn exceeded(&self) -> &CancellationToken {
        &self.exceeded
    }

    pub(crate) fn tail(&self) -> String {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Returns the beginning of a line without secrets. They are hidden before the line is shortened, because
    /// a part of a secret could not be recognised.
    fn shortened(&self, line: &str) -> String {
        shortened(&self.hide(line.to_owned()))
    }

    /// Returns a text about the run without secrets.
    pub(crate) fn hide(&self, text: String) -> String {
        self.secrets.hide(text)
    }

    /// Forwards everything that `from` writes, line by line, at the receiver's pace.
    pub(crate) async fn pump<R: AsyncRead + Unpin>(
        &self,
        from: R,
        stream: OutputStream,
        over: &CancellationToken,
    ) {
        let mut lines = LineSplitter::new(self.secrets.clone());
        let mut drain = Drain::new(from, over);
        while let Some(chunk) = drain.next().await {
            if self.exceeded.is_cancelled() {
                continue;
            }
            let exceeds = self.counted(chunk.len());
            for line in lines.split(chunk) {
                self.pass(stream, line, false).await;
            }
            if exceeds {
                self.exceeded.cancel();
            }
        }
        if let Some(line) = lines.rest() {
            self.pass(stream, line, false).await;
        }
    }

    /// Sends lines that are not messages.
    pub(crate) async fn log(&self, lines: Vec<OutputLine>) {
        for line in lines {
            self.send(Signal::Log { stream: OutputStream::Stdout, line: line.shown() }).await;
        }
    }

    /// Returns the number of bytes read so far.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Counts bytes that were read, and stops the run if they exceed the limit.
    pub(crate) fn count(&self, bytes: usize) {
        if self.counted(bytes) {
            self.exceeded.cancel();
        }
    }

    fn counted(&self, bytes: usize) -> bool {
        let before = self.written.fetch_add(bytes as u64, Ordering::Relaxed);
        before + bytes as u64 > self.limit
    }

    async fn pass(&self, stream: OutputStream, line: OutputLine, begins: bool) {
        let shown = self.shortened(&line.text);
        self.tail.lock().unwrap_or_else(PoisonError::into_inner).push(shown);
        if stream == OutputStream::Stdout {
            self.remember(&line.text, begins);
        }
        self.send(line.into_signal(stream)).await;
    }

    /// Forwards a line of the agent's text, which may be a message to drydock. `begins` is true if it starts
    /// a new text.
    pub(crate) async fn say(&self, text: &str, begins: bool) {
        self.pass(OutputStream::Stdout, OutputLine::of(text.as_bytes(), 0), begins).await;
    }

    /// Sends a signal as soon as the receiver has room.
    pub(crate) async fn send(&self, signal: Signal) {
        self.offer(signal).await;
    }

    /// Sends a signal and waits until the receiver has handled it, at most for `patience`.
    pub(crate) async fn ask(
        &self,
        signal: impl FnOnce(Reply) -> Signal,
        patience: Duration,
    ) -> SignalOutcome {
        let (reply, heard) = Reply::new();
        if !self.offer(signal(reply)).await {
            return SignalOutcome::Nobody;
        }
        tokio::select! {
            biased;
            outcome = heard => match outcome {
                Ok(Ok(())) => SignalOutcome::Done,
                Ok(Err(reason)) => SignalOutcome::Refused(reason),
                Err(_) => SignalOutcome::Nobody,
            },
            () = self.hurry.cancelled() => SignalOutcome::Nobody,
            () = tokio::time::sleep(patience) => SignalOutcome::Late,
        }
    }

    /// Sends a signal like [`SignalSink::send`], and returns whether the receiver got it.
    pub(crate) async fn offer(&self, signal: Signal) -> bool {
        // An agent that uses another tool has recovered from the error it reported.
        if matches!(signal, Signal::Activity(Activity::Tool { .. })) {
            *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Last::default();
        }
        let signal = self.secrets.hide_in(signal);
        let permit = tokio::select! {
            biased;
            permit = self.signals.reserve() => permit.ok(),
            () = self.hurry.cancelled() => None,
        };
        // Without a permit, either the receiver is closed, or the run is being stopped and the receiver is
        // full. The line is dropped so that the agent can continue or end.
        match permit {
            Some(permit) => {
                permit.send(signal);
                true
            }
            None => false,
        }
    }
}

/// The outcome of a signal whose sender waits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SignalOutcome {
    Done,
    Refused(String),
    /// The receiver is closed, or the run is being stopped.
    Nobody,
    /// The sender's wait timed out; the signal may still be handled.
    Late,
}

/// One line without its line ending, at most `LINE_MAX` bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutputLine {
    text: String,
    cut: usize,
}

impl OutputLine {
    fn of(bytes: &[u8], cut: usize) -> Self {
        let bytes = if cut == 0 { bytes.strip_suffix(b"\r").unwrap_or(bytes) } else { bytes };
        Self { text: String::from_utf8_lossy(bytes).into_owned(), cut }
    }

    fn shown(self) -> String {
        if self.cut == 0 {
            self.text
        } else {
            format!("{} … [{} cut]", self.text, counted(self.cut, "more byte"))
        }
    }

    fn into_signal(self, stream: OutputStream) -> Signal {
        if stream == OutputStream::Stderr {
            return Signal::Log { stream, line: self.shown() };
        }
        if self.cut > 0 && message::claims_to_be_a_message(&self.text) {
            let reason = format!("a message is at most {LINE_MAX} bytes, this one has {} more", self.cut);
            return Signal::Garbled { line: self.shown(), reason };
        }
        match message::read(&self.text) {
            ParsedLine::Log => Signal::Log { stream, line: self.shown() },
            ParsedLine::Message(message) => Signal::Message(message),
            ParsedLine::Garbled { reason } => Signal::Garbled { line: self.shown(), reason },
        }
    }
}

/// Splits a stream of bytes into lines. It never buffers more than `LINE_MAX` of a line plus the length of a
/// secret that may continue there.
#[derive(Default)]
pub(crate) struct LineSplitter {
    partial: Vec<u8>,
    cut: usize,
    secrets: Secrets,
}

impl LineSplitter {
    pub(crate) fn new(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    pub(crate) fn split(&mut self, mut chunk: &[u8]) -> Vec<OutputLine> {
        let mut lines = Vec::new();
        while let Some(end) = chunk.iter().position(|byte| *byte == b'\n') {
            self.extend(&chunk[..end]);
            lines.push(self.take());
            chunk = &chunk[end + 1..];
        }
        self.extend(chunk);
        lines
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = LINE_MAX + self.secrets.overlap() - self.partial.len();
        let kept = room.min(bytes.len());
        self.partial.extend_from_slice(&bytes[..kept]);
        self.cut += bytes.len() - kept;
    }

    fn take(&mut self) -> OutputLine {
        let kept = self.secrets.cut(&self.partial, LINE_MAX);
        let line = OutputLine::of(&self.partial[..kept], self.cut + self.partial.len() - kept);
        self.partial.clear();
        self.cut = 0;
        line
    }

    /// Returns the last line if it has no line ending.
    pub(crate) fn rest(mut self) -> Option<OutputLine> {
        if self.partial.is_empty() { None } else { Some(self.take()) }
    }
}

/// The last lines of a run, for its ending.
#[derive(Default)]
struct LastLines {
    lines: VecDeque<String>,
}

impl LastLines {
    fn push(&mut self, line: String) {
        if self.lines.len() == TAIL_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    fn text(&self) -> String {
        self.lines.iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

fn shortened(line: &str) -> String {
    if line.len() <= TAIL_LINE_MAX {
        return line.to_owned();
    }
    format!("{}…", &line[..line.floor_char_boundary(TAIL_LINE_MAX)])
}

/// The end of a shell command's output, without secrets.
#[derive(Default)]
pub(crate) struct KeptOutput {
    bytes: VecDeque<u8>,
    cut: u64,
    secrets: Secrets,
}

impl KeptOutput {
    pub(crate) fn without(secrets: Secrets) -> Self {
        Self { secrets, ..Self::default() }
    }

    pub(crate) fn push(&mut self, chunk: &[u8]) {
        self.bytes.extend(chunk);
        let excess = self.bytes.len().saturating_sub(KEPT_MAX + self.secrets.overlap());
        self.bytes.drain(..excess);
        self.cut += excess as u64;
    }

    pub(crate) fn text(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        // Never cut in the middle of a secret, because a part could not be recognised.
        let start = self.secrets.cut(&bytes, bytes.len().saturating_sub(KEPT_MAX));
        let text = self.secrets.hide(String::from_utf8_lossy(&bytes[start..]).into_owned());
        let cut = self.cut + start as u64;
        if cut == 0 { text } else { format!("[{} cut]\n{text}", counted(cut, "byte")) }
    }

    /// Returns the last lines, for the ending.
    pub(crate) fn tail(&self) -> String {
        let text = self.text();
        let lines: Vec<&str> = text.lines().collect();
        let start = lines.len().saturating_sub(TAIL_LINES);
        lines[start..].iter().map(|line| shortened(line)).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio_util::sync::CancellationToken;

    use super::{
        KEPT_MAX, KeptOutput, LINE_MAX, LastLines, LineSplitter, OutputLine, SignalSink, TAIL_LINE_MAX,
        TAIL_LINES,
    };
    use crate::failure_report::FailurePatterns;
    use crate::secret::Secrets;
    use crate::signal::{Activity, Signal};

    /// Returns a sink without a receiver.
    fn sink(secrets: Secrets) -> SignalSink {
        let patterns = FailurePatterns::try_from(vec!["Ran into this error".to_owned()]).unwrap();
        SignalSink::new(mpsc::channel(1).0, u64::MAX, CancellationToken::new(), secrets).reporting(patterns)
    }

    fn tool() -> Signal {
        let (id, title) = ("1".to_owned(), "edit".to_owned());
        let (kind, status) = ("edit", "completed");
        Signal::Activity(Activity::Tool { id, title, kind, status, paths: vec![], diffs: vec![] })
    }

    fn line(text: &str) -> OutputLine {
        OutputLine { text: text.into(), cut: 0 }
    }

    #[test]
    fn lines_are_the_same_however_the_bytes_arrive() {
        let text = "one\r\n\ntwo\nthree".as_bytes();
        for size in 1..=text.len() {
            let mut lines = LineSplitter::default();
            let mut seen: Vec<OutputLine> = text.chunks(size).flat_map(|chunk| lines.split(chunk)).collect();
            seen.extend(lines.rest());
            assert_eq!(seen, [line("one"), line(""), line("two"), line("three")], "in chunks of {size}");
        }
    }

    #[test]
    fn a_line_never_holds_more_than_its_limit_and_says_what_was_cut() {
        let mut lines = LineSplitter::default();
        for _ in 0..3 {
            assert_eq!(lines.split(&[b'x'; LINE_MAX]), []);
            assert_eq!(lines.partial.len(), LINE_MAX);
        }
        let seen = lines.split(b"y\nnext\n");
        assert_eq!(seen[0].cut, 2 * LINE_MAX + 1);
        assert_eq!(seen[1], line("next"));
    }

    /// N9. Breaks when a secret that crosses the length limit of a line is shown in part.
    #[test]
    fn a_secret_across_the_limit_of_a_line_is_left_out() {
        let mut lines = LineSplitter::new(Secrets::of([("API_KEY", "sk-1234567890".to_owned())], &[]));
        let long = format!("{}sk-1234567890 and more\n", "x".repeat(LINE_MAX - 5));
        let seen: Vec<_> = long.as_bytes().chunks(1000).flat_map(|chunk| lines.split(chunk)).collect();
        assert_eq!(seen.len(), 1);
        assert_eq!((seen[0].text.len(), seen[0].cut), (LINE_MAX - 5, "sk-1234567890 and more".len()));
    }

    #[test]
    fn bytes_that_are_not_text_are_shown_as_far_as_they_go() {
        assert_eq!(LineSplitter::default().split(b"a\xffb\n"), [line("a\u{fffd}b")]);
    }

    #[test]
    fn the_tail_is_the_end() {
        let mut tail = LastLines::default();
        for number in 0..50 {
            tail.push(number.to_string());
        }
        let text = tail.text();
        assert_eq!(text.lines().count(), TAIL_LINES);
        assert!(text.starts_with("30\n") && text.ends_with("\n49"), "{text}");
    }

    /// N1. Breaks when a report of a failed model is not recognised because many lines follow its first, or
    /// is kept after a tool was used.
    #[tokio::test]
    async fn a_report_of_many_lines_is_one_until_a_tool_is_used() {
        let sink = sink(Secrets::default());
        sink.say("Ran into this error: Server error: 502 Bad Gateway", false).await;
        for number in 0..200 {
            sink.say(&format!("<p>{number}</p>"), false).await;
        }
        let report = sink.report().expect("its model failed");
        assert!(report.starts_with("Ran into this error: Server error: 502"), "{report}");
        assert_eq!(report.lines().count(), super::REPORT_LINES_MAX);
        sink.send(tool()).await;
        assert_eq!(sink.report(), None);
        sink.say("Done.", false).await;
        assert_eq!(sink.report(), None);
    }

    /// N1. Breaks when a message that only mentions an error counts as a report, or a report at the beginning
    /// of a message is missed.
    #[tokio::test]
    async fn a_report_begins_a_message() {
        const REPORT: &str = "Ran into this error: 500";
        const OTHER: &str = "Now I explain the text:";
        let message = r#"{"drydock":"progress","text":"half"}"#;
        for (lines, seen) in [
            (&[(OTHER, false), (REPORT, false)][..], false),
            (&[(OTHER, false), (REPORT, true), (OTHER, false)], true),
            (&[(REPORT, false), (OTHER, false)], true),
            (&[(REPORT, false), (message, false)], true),
            (&[(OTHER, false), (message, false), (REPORT, false)], true),
        ] {
            let sink = sink(Secrets::default());
            for (line, begins) in lines {
                sink.say(line, *begins).await;
            }
            assert_eq!(sink.report().is_some(), seen, "{lines:?}");
        }
        let sink = sink(Secrets::default());
        sink.say(OTHER, false).await;
        sink.send(tool()).await;
        sink.say(REPORT, false).await;
        assert!(sink.report().is_some(), "after a tool");
    }

    #[test]
    fn kept_output_says_how_much_is_missing() {
        let mut kept = KeptOutput::default();
        kept.push(b"start");
        assert_eq!(kept.text(), "start");
        kept.push(&[b'x'; 64 * 1024]);
        assert!(kept.text().starts_with("[5 bytes cut]\nxxx"));
    }

    /// N9. Breaks when the output of a validation shows a secret, or the end of one whose beginning was cut.
    #[test]
    fn kept_output_has_no_secret_and_no_part_of_one() {
        let secrets = Secrets::of([("API_KEY", "sk-1234567890".to_owned())], &[]);
        let mut kept = KeptOutput::without(secrets.clone());
        kept.push(b"key=sk-12345");
        kept.push(b"67890\n");
        assert_eq!((kept.text().as_str(), kept.tail().as_str()), ("key=[hidden]\n", "key=[hidden]"));
        for before in 0..40 {
            let mut kept = KeptOutput::without(secrets.clone());
            kept.push(&vec![b'x'; before]);
            kept.push(b"sk-1234567890");
            kept.push(&[b'y'; KEPT_MAX - 5]);
            let text = kept.text();
            assert!(!text.contains("7890") && !text.contains("sk-"), "{}", &text[..80]);
        }
    }

    /// N9. Breaks when a line is shortened before its secrets are hidden.
    #[tokio::test]
    async fn a_shortened_line_has_no_part_of_a_secret() {
        let sink = sink(Secrets::of([("API_KEY", "sk-1234567890".to_owned())], &[]));
        let before = "Ran into this error: ";
        let fill = "x".repeat(TAIL_LINE_MAX - before.len() - 6);
        sink.say(&format!("{before}{fill}sk-1234567890 and more"), true).await;
        let report = sink.report().expect("its model failed");
        assert!(!report.contains("sk-") && !sink.tail().contains("sk-"), "{report}");
    }
}
