//! One line of a run's log as it is stored and sent: `{"at", "stream", "text"}`, and `"dropped"` in a line
//! that marks a gap.

use drydock_domain::Timestamp;
use serde::Serialize;

/// The stream of lines that drydock itself adds.
pub const NOTICE: &str = "drydock";
/// The bytes of a line before its time.
const BEGIN: &[u8] = b"{\"at\":\"";

/// A line before it is encoded as JSON.
#[derive(Debug, Serialize)]
struct Line<'a> {
    at: &'a str,
    stream: &'a str,
    text: &'a str,
    /// Number of bytes missing from the log before this line.
    #[serde(skip_serializing_if = "Option::is_none")]
    dropped: Option<u64>,
}

/// Appends a line that was printed at this time.
pub(super) fn push(lines: &mut Vec<u8>, at: Timestamp, stream: &str, text: &str) {
    write(lines, &Line { at: &time(at), stream, text, dropped: None });
}

/// Appends the mark for a gap of `dropped` bytes before `next`. The mark gets the time of `next`.
pub(super) fn push_mark(lines: &mut Vec<u8>, dropped: u64, next: &[u8]) {
    let text = format!("[{dropped} bytes of this log were dropped here]");
    write(lines, &Line { at: &time_of(next), stream: NOTICE, text: &text, dropped: Some(dropped) });
}

/// Returns the time of a line, which is its first field; empty if it cannot be read.
pub(super) fn time_of(line: &[u8]) -> String {
    let time = line.strip_prefix(BEGIN).unwrap_or_default().split(|byte| *byte == b'"').next();
    String::from_utf8_lossy(time.unwrap_or_default()).into_owned()
}

fn write(lines: &mut Vec<u8>, line: &Line<'_>) {
    serde_json::to_writer(&mut *lines, line)
        .expect("a line has text and a number, and a Vec takes all bytes");
    lines.push(b'\n');
}

/// Returns a time as RFC 3339 with milliseconds, because many lines can be written within a second.
fn time(at: Timestamp) -> String {
    let millis = at.as_micros().rem_euclid(1_000_000) / 1_000;
    let seconds = at.to_string();
    format!("{}.{millis:03}Z", seconds.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_json_with_time_stream_and_text() {
        let mut lines = Vec::new();
        push(&mut lines, Timestamp::from_micros(1_500_000), "stdout", "a \"b\"\u{1b}[1m\u{fffd}");
        let first = lines.clone();
        push_mark(&mut lines, 7, &first);
        let text = String::from_utf8(lines).unwrap();
        assert_eq!(
            text.lines().collect::<Vec<_>>(),
            [
                r#"{"at":"1970-01-01T00:00:01.500Z","stream":"stdout","text":"a \"b\"\u001b[1m�"}"#,
                r#"{"at":"1970-01-01T00:00:01.500Z","stream":"drydock","text":"[7 bytes of this log were dropped here]","dropped":7}"#,
            ]
        );
    }
}
