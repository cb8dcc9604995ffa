//! What a running agent says while it runs.

use crate::message::Message;

/// One thing an agent said, in the order in which its stream said it.
#[derive(Debug, Clone, PartialEq)]
pub enum Signal {
    /// A line that is not a message.
    Log {
        /// Where it was written.
        stream: Stream,
        /// The line without its end, at most 64 KiB; a longer one is cut and says by how much.
        line: String,
    },
    /// A line that is a message to drydock.
    Message(Message),
    /// A line that was meant as a message but cannot be read as one.
    Garbled {
        /// The line as it came.
        line: String,
        /// What is wrong with it.
        reason: String,
    },
}

/// The stream a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output, which also carries messages.
    Stdout,
    /// Standard error, which is only ever log.
    Stderr,
}
