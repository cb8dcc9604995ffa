//! Runs one child process: reads all its output, limits its time and ends its whole process group.
//!
//! A child is registered until its exit status has been read, so that the reaper of orphans
//! (`engine/src/reap.rs`) does not take the status.
//!
//! The output has no limit other than memory: a truncated patch or blob would be a wrong result. Limits on
//! agents' output apply where agents write it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::patience::{Over, Patience};

/// Time that a terminated child gets to remove its lock files.
const GRACE: Duration = Duration::from_secs(5);
/// Longest pause between two polls of a child that has closed its output.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Locked for reading while a child is started, and for writing while orphans are reaped.
static STARTING: RwLock<()> = RwLock::new(());
/// Children whose exit status has not been read. A list, not a set: the pid of a reaped child can be reused
/// by the next child before the first is removed.
static CHILDREN: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Why a child has no result.
pub(crate) enum ProcessError {
    Start(std::io::Error),
    TimedOut,
    /// The exit status cannot be read: another part of this process took it, or SIGCHLD is ignored.
    Lost(std::io::Error),
    Stopped,
}

impl From<Over> for ProcessError {
    fn from(over: Over) -> Self {
        match over {
            Over::TimedOut { .. } => ProcessError::TimedOut,
            Over::Stopped => ProcessError::Stopped,
        }
    }
}

/// Exit status and output of a child.
pub(crate) struct ProcessOutput {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a command until it ends or `patience` runs out.
pub(crate) fn run(
    mut command: Command,
    input: Vec<u8>,
    patience: &Patience,
) -> Result<ProcessOutput, ProcessError> {
    let mut child = spawn(&mut command, if input.is_empty() { Stdio::null() } else { Stdio::piped() })?;
    if let Some(mut stdin) = child.0.stdin.take() {
        // If a child ends without reading its input, its exit status reports the failure, not this write.
        thread::spawn(move || stdin.write_all(&input).ok());
    }
    let stdout = read_all(child.0.stdout.take());
    let stderr = read_all(child.0.stderr.take());
    let mut ended = || -> Result<ProcessOutput, ProcessError> {
        let (stdout, stderr) = (receive_patiently(&stdout, patience)?, receive_patiently(&stderr, patience)?);
        loop {
            let until = Instant::now() + patience.next_wait()?;
            match wait(&mut child, until) {
                Err(ProcessError::TimedOut) => {}
                status => return Ok(ProcessOutput { status: status?, stdout, stderr }),
            }
        }
    };
    match ended() {
        // The child is already reaped, and its process group id may have been reused.
        ended @ (Ok(_) | Err(ProcessError::Lost(_))) => ended,
        Err(broken) => {
            end(&mut child);
            Err(broken)
        }
    }
}

/// Calls `work` with the git children of this process that have not been reaped. No git child is started
/// during the call.
pub fn with_git_children<T>(work: impl FnOnce(&[i32]) -> T) -> T {
    let _none_starts = STARTING.write().unwrap_or_else(PoisonError::into_inner);
    // A copy, so that a caller whose child ended does not wait for `work` to finish before it can unregister
    // the child.
    let registered = children().clone();
    work(&registered)
}

fn children() -> MutexGuard<'static, Vec<i32>> {
    CHILDREN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child that is registered until it is dropped. A child dropped before it was reaped is reaped as an
/// orphan.
struct Registered(Child);

impl Registered {
    fn number(&self) -> i32 {
        self.0.id().cast_signed()
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let (mut children, number) = (children(), self.number());
        if let Some(at) = children.iter().position(|child| *child == number) {
            children.swap_remove(at);
        }
    }
}

/// A child with a request and response dialog; its output is split at a delimiter byte, such as a newline.
/// Dropping it ends the child.
pub(crate) struct Conversation {
    child: Registered,
    stdin: Option<ChildStdin>,
    parts: Receiver<String>,
    stderr: Receiver<Vec<u8>>,
    deadline: Instant,
}

impl Conversation {
    pub(crate) fn start(
        mut command: Command,
        end: u8,
        limit: Duration,
    ) -> Result<Conversation, ProcessError> {
        let mut child = spawn(&mut command, Stdio::piped())?;
        let (sender, parts) = channel();
        let stdout = child.0.stdout.take();
        thread::spawn(move || {
            for part in BufReader::new(stdout?).split(end) {
                // Lossy is enough: callers only use ids and fixed words.
                sender.send(String::from_utf8_lossy(&part.ok()?).into_owned()).ok()?;
            }
            Some(())
        });
        let stderr = read_all(child.0.stderr.take());
        let stdin = child.0.stdin.take();
        Ok(Conversation { child, stdin, parts, stderr, deadline: Instant::now() + limit })
    }

    /// Sends bytes. If the child has ended, the caller notices when [`Conversation::part`] returns no
    /// response.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(bytes).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }

    /// Waits for the next part. Returns `Ok(None)` if the child has ended.
    pub(crate) fn part(&mut self) -> Result<Option<String>, ProcessError> {
        match self.parts.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
            Ok(part) => Ok(Some(part)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(ProcessError::TimedOut),
        }
    }

    /// Closes the child's input and waits until it ends.
    pub(crate) fn finish(mut self) -> Result<ProcessOutput, ProcessError> {
        self.stdin = None;
        let stderr = receive(&self.stderr, self.deadline).ok_or(ProcessError::TimedOut)?;
        let status = wait(&mut self.child, self.deadline)?;
        let stdout = self.parts.try_iter().collect::<Vec<_>>().join("\n").into_bytes();
        Ok(ProcessOutput { status, stdout, stderr })
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.stdin = None;
        // At the end of its input `update-ref` aborts and unlocks the refs.
        if matches!(wait(&mut self.child, Instant::now() + GRACE), Err(ProcessError::TimedOut)) {
            end(&mut self.child);
        }
    }
}

fn spawn(command: &mut Command, stdin: Stdio) -> Result<Registered, ProcessError> {
    // The child gets its own process group: processes that git starts end with it, and Ctrl-C in our terminal
    // does not interrupt git during an update.
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    // The lock is held until the child is registered. The reaper therefore cannot mistake it for an orphan,
    // even if it ends immediately.
    let _starting = STARTING.read().unwrap_or_else(PoisonError::into_inner);
    let child = Registered(command.spawn().map_err(ProcessError::Start)?);
    children().push(child.number());
    Ok(child)
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // Output read before an error is still useful for the report.
        pipe?.read_to_end(&mut bytes).ok();
        sender.send(bytes).ok()
    });
    receiver
}

/// Waits for the end of an output. Returns nothing if the reading thread died.
fn receive_patiently(receiver: &Receiver<Vec<u8>>, patience: &Patience) -> Result<Vec<u8>, Over> {
    loop {
        match receiver.recv_timeout(patience.next_wait()?) {
            Ok(bytes) => return Ok(bytes),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok(Vec::new()),
        }
    }
}

fn receive(receiver: &Receiver<Vec<u8>>, deadline: Instant) -> Option<Vec<u8>> {
    receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

fn wait(child: &mut Registered, deadline: Instant) -> Result<ExitStatus, ProcessError> {
    let mut pause = Duration::from_micros(20);
    loop {
        // The error is permanent (ECHILD), so waiting for the deadline would only hide it.
        if let Some(status) = child.0.try_wait().map_err(ProcessError::Lost)? {
            return Ok(status);
        }
        if Instant::now() >= deadline {
            return Err(ProcessError::TimedOut);
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Terminates a child before killing it: git removes its lock files on SIGTERM but not on SIGKILL.
fn end(child: &mut Registered) {
    let group = Pid::from_child(&child.0);
    // The child is not reaped yet, so its process group id cannot have been reused. An error means that the
    // group is empty.
    kill_process_group(group, Signal::TERM).ok();
    if matches!(wait(child, Instant::now() + GRACE), Err(ProcessError::TimedOut)) {
        kill_process_group(group, Signal::KILL).ok();
        // If the child is still alive now, it is reaped later as an orphan.
        wait(child, Instant::now() + GRACE).ok();
    }
}

#[cfg(test)]
mod tests {
    use crate::patience::Patience;
    use std::process::Command;
    use std::time::{Duration, Instant};

    use rustix::process::{Pid, WaitOptions, waitpid};

    use super::{ProcessError, children, run, spawn, wait, with_git_children};

    fn sleeper() -> super::Registered {
        let Ok(child) = spawn(Command::new("sleep").arg("60"), std::process::Stdio::null()) else {
            panic!("sleep did not start")
        };
        child
    }

    /// F13. Breaks when a call whose exit status was taken by another part of the process waits for its whole
    /// time limit.
    #[test]
    fn a_child_that_was_waited_for_elsewhere_is_lost_at_once() {
        let mut child = sleeper();
        child.0.kill().unwrap();
        waitpid(Pid::from_raw(child.number()), WaitOptions::empty()).unwrap();
        let began = Instant::now();
        let waited = wait(&mut child, began + Duration::from_secs(60));
        assert!(matches!(waited, Err(ProcessError::Lost(_))) && began.elapsed() < Duration::from_secs(30));
    }

    /// F13. Breaks when the reaper could take the exit status of a git call, or a call stays registered after
    /// its end.
    #[test]
    fn a_call_is_registered_from_its_start_to_its_end() {
        let child = sleeper();
        let number = child.number();
        assert!(with_git_children(|known| known.contains(&number)));
        // The next child can have the same pid before the first is removed.
        children().push(number);
        drop(child);
        assert!(with_git_children(|known| known.contains(&number)), "the second is still registered");
        children().retain(|child| *child != number);
        rustix::process::kill_process(Pid::from_raw(number).unwrap(), rustix::process::Signal::KILL).unwrap();
        waitpid(Pid::from_raw(number), WaitOptions::empty()).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo $$"]);
        let Ok(ended) = run(command, Vec::new(), &Patience::of(Duration::from_secs(60))) else {
            panic!("it has a status")
        };
        let number: i32 = String::from_utf8(ended.stdout).unwrap().trim().parse().unwrap();
        assert!(!with_git_children(|known| known.contains(&number)));
    }
}
