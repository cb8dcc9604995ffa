//! Ctrl-C, SIGTERM and a terminal hangup. The first signal stops the plans that this process drives and leaves them
//! resumable; the second one ends the process at once.

use drydock_api::{Code, Problem, exit};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::render::next::go_on;

/// Receives the signals that ask a process to end.
pub(crate) struct Interrupts {
    keyboard: Signal,
    termination: Signal,
    /// None if a hangup has another meaning for this command, or if the process was started with hangups ignored.
    hangup: Option<Signal>,
}

/// The signal that was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    Keyboard,
    Termination,
    Hangup,
}

impl Interrupts {
    /// Starts to listen. A hangup that the process ignores, as under `nohup`, stays ignored.
    pub(crate) fn listen() -> Result<Self, Box<Problem>> {
        let mut interrupts = Self::without_hangup()?;
        if !ignores_hangup() {
            interrupts.hangup = Some(signal(SignalKind::hangup()).map_err(failed)?);
        }
        Ok(interrupts)
    }

    /// Starts to listen for all signals but hangup, for a command that gives hangup another meaning.
    pub(crate) fn without_hangup() -> Result<Self, Box<Problem>> {
        Ok(Self {
            keyboard: signal(SignalKind::interrupt()).map_err(failed)?,
            termination: signal(SignalKind::terminate()).map_err(failed)?,
            hangup: None,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Interrupt {
        let hangup = async {
            match &mut self.hangup {
                Some(hangup) => hangup.recv().await,
                None => None,
            }
        };
        // A stream that has ended never yields a signal; only the others can.
        tokio::select! {
            Some(()) = self.keyboard.recv() => Interrupt::Keyboard,
            Some(()) = self.termination.recv() => Interrupt::Termination,
            Some(()) = hangup => Interrupt::Hangup,
            else => std::future::pending().await,
        }
    }

    /// Runs the shutdown work after a signal. Another signal ends the process at once.
    pub(crate) async fn wind_up<T>(&mut self, first: Interrupt, work: impl Future<Output = T>) -> T {
        tokio::select! {
            done = work => done,
            _ = self.next() => std::process::exit(i32::from(first.exit_code())),
        }
    }
}

impl Interrupt {
    /// Returns the exit code for the signal.
    pub(crate) fn exit_code(self) -> u8 {
        match self {
            Interrupt::Keyboard => exit::INTERRUPTED,
            Interrupt::Termination | Interrupt::Hangup => exit::TERMINATED,
        }
    }

    /// Returns the problem that a command ends with.
    pub(crate) fn problem(self, resume: Option<String>) -> Box<Problem> {
        let (code, text) = match self {
            Interrupt::Keyboard => (Code::Interrupted, "interrupted"),
            Interrupt::Termination => (Code::Terminated, "terminated"),
            Interrupt::Hangup => (Code::Terminated, "terminated: the terminal was closed"),
        };
        let problem = Problem::new(code, text);
        Box::new(match resume {
            Some(command) => problem.hint(go_on(&command)),
            None => problem,
        })
    }
}

fn failed(error: std::io::Error) -> Box<Problem> {
    let text = format!("could not listen for signals: {error}");
    Box::new(Problem::new(Code::Internal, text).hint("check the limit on open files"))
}

/// Returns true if this process was started with hangups ignored. Installing a handler would undo that.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    // The lowest bit stands for signal 1, SIGHUP.
    mask & 1 == 1
}
