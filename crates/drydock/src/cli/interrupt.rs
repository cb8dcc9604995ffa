//! Ctrl-C and SIGTERM: the first one stops what is driven here and leaves it resumable, the second one ends at once.

use drydock_api::{Code, Problem, exit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::render::next::go_on;

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
    pub(crate) fn listen() -> Result<Self, Box<Problem>> {
        let failed = |error: std::io::Error| {
            let text = format!("could not listen for signals: {error}");
            Problem::new(Code::Internal, text).hint("check the limit on open files")
        };
        Ok(Self {
            keyboard: signal(SignalKind::interrupt()).map_err(failed)?,
            termination: signal(SignalKind::terminate()).map_err(failed)?,
        })
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

    /// Waits for what winds up after a signal; another signal ends the process at once.
    pub(crate) async fn wind_up<T>(&mut self, first: Interrupt, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            _ = self.next() => std::process::exit(i32::from(first.exit_code())),
        }
    }
}

impl Interrupt {
    /// Returns the exit code that says which one it was.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Interrupt::Keyboard => exit::INTERRUPTED,
            Interrupt::Termination => exit::TERMINATED,
        }
    }

    /// Returns the problem that a command ends with.
    pub(crate) fn problem(self, resume: Option<String>) -> Box<Problem> {
        let (code, text) = match self {
            Interrupt::Keyboard => (Code::Interrupted, "interrupted"),
            Interrupt::Termination => (Code::Terminated, "told to end"),
        };
        let problem = Problem::new(code, text);
        Box::new(match resume {
            Some(command) => problem.hint(go_on(&command)),
            None => problem,
        })
    }
}
