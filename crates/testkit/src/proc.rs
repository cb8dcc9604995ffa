//! Runs the real binary with a time limit, captures its output, and sends signals for crash tests.
//!
//! Output goes to files instead of pipes. So a grandchild that outlives its parent cannot hang a test, and a test can
//! read the output so far without a thread.

use std::fs::{self, File};
use std::io;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::wait;

const STDOUT: &str = "stdout";
const STDERR: &str = "stderr";

/// The result of a process that has ended.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The exit status.
    pub status: ExitStatus,
    /// The whole standard output.
    pub stdout: String,
    /// The whole standard error.
    pub stderr: String,
}

impl Finished {
    /// Returns the exit code, or none if a signal ended the process.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns itself, or panics with the output if the exit code is not `code`.
    #[track_caller]
    pub fn expect_code(self, code: i32) -> Self {
        assert_eq!(self.code(), Some(code), "exit code\nstdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }
}

/// Runs a command to its end without input. Kills it and panics after `limit`.
#[track_caller]
pub fn run(command: &mut Command, limit: Duration) -> Finished {
    spawn(command).wait(limit)
}

/// Runs a command to its end with `input` on stdin. Kills it and panics after `limit`.
#[track_caller]
pub fn run_with_input(command: &mut Command, input: &str, limit: Duration) -> Finished {
    spawn_with_input(command, input).wait(limit)
}

/// Starts a command without input.
#[track_caller]
pub fn spawn(command: &mut Command) -> RunningProcess {
    spawn_with_input(command, "")
}

/// Starts a command with `input` on stdin.
#[track_caller]
pub fn spawn_with_input(command: &mut Command, input: &str) -> RunningProcess {
    match start(command, input) {
        Ok(running) => running,
        Err(error) => panic!("could not start {command:?}: {error}"),
    }
}

fn start(command: &mut Command, input: &str) -> io::Result<RunningProcess> {
    let kept = TempDir::with_prefix("drydock-proc-")?;
    let file = |name: &str| kept.path().join(name);
    fs::write(file("stdin"), input)?;
    let child = command
        .stdin(File::open(file("stdin"))?)
        .stdout(File::create(file(STDOUT))?)
        .stderr(File::create(file(STDERR))?)
        .spawn()?;
    Ok(RunningProcess { shown: format!("{command:?}"), kept, child })
}

/// A running process, killed on drop.
#[derive(Debug)]
pub struct RunningProcess {
    shown: String,
    kept: TempDir,
    child: Child,
}

/// The maximum time until a process is frozen.
const PAUSE_LIMIT: Duration = Duration::from_secs(30);

impl RunningProcess {
    /// Returns the process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its standard output so far.
    pub fn stdout(&self) -> String {
        self.read(STDOUT)
    }

    /// Returns its standard error so far.
    pub fn stderr(&self) -> String {
        self.read(STDERR)
    }

    /// Returns true if it has not ended yet. A stopped process is alive.
    pub fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Kills it (`SIGKILL`): a crash that no handler sees.
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Freezes it (`SIGSTOP`), like a machine that stalls.
    #[track_caller]
    pub fn pause(&self) {
        self.signal(Signal::STOP);
        // The signal is asynchronous; the caller must find the process frozen.
        wait::until("the process to freeze", PAUSE_LIMIT, || self.is_frozen().then_some(()));
    }

    /// Returns true if all of its threads have stopped.
    fn is_frozen(&self) -> bool {
        let Ok(threads) = std::fs::read_dir(format!("/proc/{}/task", self.pid())) else { return true };
        threads.flatten().all(|thread| {
            let stat = std::fs::read_to_string(thread.path().join("stat")).unwrap_or_default();
            stat.rsplit(") ").next().is_none_or(|rest| rest.starts_with(['T', 't', 'Z']))
        })
    }

    /// Resumes a frozen process (`SIGCONT`).
    #[track_caller]
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    /// Interrupts it (`SIGINT`), like Ctrl-C.
    #[track_caller]
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Terminates it (`SIGTERM`), like a service manager.
    #[track_caller]
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends the signal for a closed terminal (`SIGHUP`).
    #[track_caller]
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    /// Waits until it ends. Kills it and panics with its output after `limit`.
    #[track_caller]
    pub fn wait(mut self, limit: Duration) -> Finished {
        let ended = wait::poll(limit, || match self.child.try_wait() {
            Ok(status) => status.map(Ok),
            Err(error) => Some(Err(error)),
        });
        let (stdout, stderr) = (self.stdout(), self.stderr());
        match ended {
            Some(Ok(status)) => Finished { status, stdout, stderr },
            Some(Err(error)) => panic!("could not wait for {}: {error}", self.shown),
            None => panic!(
                "{} was still running after {limit:?}\nstdout:\n{stdout}\nstderr:\n{stderr}",
                self.shown
            ),
        }
    }

    /// Sends a signal. A process that ended but was not waited for keeps its id, so this cannot hit another process.
    #[track_caller]
    fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process(Pid::from_child(&self.child), signal) {
            panic!("could not send {signal:?} to {}: {error}", self.shown);
        }
    }

    #[track_caller]
    fn read(&self, name: &str) -> String {
        match fs::read(self.kept.path().join(name)) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(error) => panic!("could not read the {name} of {}: {error}", self.shown),
        }
    }
}

impl Drop for RunningProcess {
    fn drop(&mut self) {
        // Both fail only if the process has ended and was waited for, which is fine.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
