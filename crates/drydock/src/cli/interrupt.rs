//! Ctrl-C and SIGTERM: the first one stops what is driven here and leaves it resumable, the second one ends at once.

use drydock_api::{Code, Problem};
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens for the two signals that ask a process to end.
pub(crate) struct Interrupts {
    keyboard: Signal,
    termination: Signal,
}

/// Which signal came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Keyboard,
    Termination,
}

impl Interrupts {
    /// Begins to listen.
    pub(crate) fn listen() -> std::io::Result<Self> {
        Ok(Self { keyboard: signal(SignalKind::interrupt())?, termination: signal(SignalKind::terminate())? })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Interrupt {
        // A stream that has ended will bring no signal; only the other one can.
        tokio::select! {
            Some(()) = self.keyboard.recv() => Interrupt::Keyboard,
            Some(()) = self.termination.recv() => Interrupt::Termination,
            else => std::future::pending().await,
        }
    }
}

impl Interrupt {
    /// Returns the problem that a command ends with.
    pub(crate) fn problem(self, resume: Option<String>) -> Box<Problem> {
        let (code, text) = match self {
            Interrupt::Keyboard => (Code::Interrupted, "interrupted"),
            Interrupt::Termination => (Code::Terminated, "told to end"),
        };
        let problem = Problem::new(code, text);
        Box::new(match resume {
            Some(command) => problem.hint(format!("go on with: {command}")),
            None => problem,
        })
    }
}
