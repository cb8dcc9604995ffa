//! Disconnects a client that does not read for too long. Data written to such a connection fills the bounded buffers
//! of the system, and then the write waits forever. The layers above cannot distinguish this from a slow network.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// A connection with a write timeout. It also reports when all written data has been sent.
pub(crate) struct WriteTimeoutStream<S, F> {
    stream: S,
    patience: Duration,
    flushed: F,
    /// The timeout, running from the first write that blocked until one makes progress.
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S, F> WriteTimeoutStream<S, F> {
    /// Returns the connection with this timeout. `flushed` is called when all written data has been sent.
    pub(super) fn new(stream: S, patience: Duration, flushed: F) -> Self {
        Self { stream, patience, flushed, stalled: None }
    }

    /// Passes on the result of a write, or fails if writes have been blocked for too long.
    fn judge<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        stalled.as_mut().poll(context).map(|()| {
            tracing::debug!("closed a connection whose client does not read");
            Err(io::ErrorKind::TimedOut.into())
        })
    }
}

impl<S: AsyncRead + Unpin, F: Unpin> AsyncRead for WriteTimeoutStream<S, F> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_read(context, into)
    }
}

impl<S: AsyncWrite + Unpin, F: Fn() + Unpin> AsyncWrite for WriteTimeoutStream<S, F> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write(context, bytes);
        this.judge(written, context)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.stream).poll_write_vectored(context, parts);
        this.judge(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(context);
        if let Poll::Ready(Ok(())) = flushed {
            (this.flushed)();
        }
        this.judge(flushed, context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    /// Breaks if a client that reads from time to time is disconnected, or one that never reads is not.
    #[tokio::test(start_paused = true)]
    async fn only_a_reader_that_does_not_read_is_disconnected() {
        let patience = Duration::from_secs(20);
        let (near, mut far) = duplex(8);
        let mut near = WriteTimeoutStream::new(near, patience, || ());
        let slow = async {
            let mut read = vec![0; 8];
            for _ in 0..10 {
                tokio::time::sleep(patience / 2).await;
                far.read_exact(&mut read).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(near.write_all(&[b'x'; 80]), slow);
        written.unwrap();
        let error = near.write_all(&[b'x'; 80]).await.expect_err("the client does not read");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}
