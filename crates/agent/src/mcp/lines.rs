//! Reads lines of limited length from an untrusted stream.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// One line without its line ending.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum McpLine {
    Text(String),
    /// The line exceeds the limit; the rest of it is skipped.
    TooLong,
}

/// Splits a stream into lines and never buffers more than `max` bytes of one.
pub(super) struct BoundedLines<R> {
    from: BufReader<R>,
    max: usize,
    skipping: bool,
}

impl<R: AsyncRead + Unpin> BoundedLines<R> {
    pub(super) fn new(from: R, max: usize) -> Self {
        Self { from: BufReader::new(from), max, skipping: false }
    }

    /// Returns the next line, or `None` at the end. A last line without a line ending counts.
    pub(super) async fn next(&mut self) -> io::Result<Option<McpLine>> {
        let mut line = Vec::new();
        loop {
            let chunk = self.from.fill_buf().await?;
            if chunk.is_empty() {
                let rest = !line.is_empty() && !self.skipping;
                return Ok(rest.then(|| McpLine::Text(text(line))));
            }
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let length = end.unwrap_or(chunk.len());
            let (fits, skipped) = (line.len() + length <= self.max, self.skipping);
            if fits && !skipped {
                line.extend_from_slice(&chunk[..length]);
            }
            self.from.consume(end.map_or(length, |end| end + 1));
            self.skipping = end.is_none() && (skipped || !fits);
            match (skipped, fits, end) {
                (true, _, Some(_)) => line.clear(),
                (false, false, _) => return Ok(Some(McpLine::TooLong)),
                (false, true, Some(_)) => return Ok(Some(McpLine::Text(text(line)))),
                (_, _, None) => {}
            }
        }
    }

    /// Returns when there is something to read or the stream has ended. Safe to cancel.
    pub(super) async fn ready(&mut self) -> io::Result<()> {
        self.from.fill_buf().await.map(drop)
    }
}

fn text(line: Vec<u8>) -> String {
    String::from_utf8_lossy(&line).into_owned()
}

#[cfg(test)]
mod tests {
    use super::{BoundedLines, McpLine};

    /// Breaks when a line is buffered without limit, or a long line swallows the next one.
    #[tokio::test]
    async fn a_line_that_is_too_long_is_skipped_and_the_next_is_read() {
        let stream = format!("ab\n{}\n\ncd\n{}\nrest", "x".repeat(20_000), "y".repeat(5));
        let mut lines = BoundedLines::new(stream.as_bytes(), 4);
        let mut seen = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            seen.push(line);
        }
        let text = |text: &str| McpLine::Text(text.to_owned());
        assert_eq!(
            seen,
            [text("ab"), McpLine::TooLong, text(""), text("cd"), McpLine::TooLong, text("rest")]
        );
    }
}
