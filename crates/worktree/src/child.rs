//! One child process: its output read to the end, its time limited, its whole group ended with it.
//!
//! The output is bounded by memory alone: a patch or a blob is as large as it is, and a cut one
//! would be a wrong answer. What an agent may write is bounded where it writes it.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

/// How long a child that was asked to end may take to remove its lock files.
const GRACE: Duration = Duration::from_secs(5);
/// The longest pause between two looks at a child that has closed its output.
const PAUSE_MAX: Duration = Duration::from_millis(5);

/// Why there is no result.
pub(crate) enum Broken {
    Start(std::io::Error),
    TimedOut,
}

/// Everything a child left behind.
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// Runs a command to its end or to its limit.
pub(crate) fn run(mut command: Command, input: Vec<u8>, limit: Duration) -> Result<Ended, Broken> {
    let deadline = Instant::now() + limit;
    let mut child = spawn(&mut command, if input.is_empty() { Stdio::null() } else { Stdio::piped() })?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that ends without reading its input says so by its status, not by our write.
        thread::spawn(move || stdin.write_all(&input).ok());
    }
    let stdout = read_all(child.stdout.take());
    let stderr = read_all(child.stderr.take());
    let outputs = receive(&stdout, deadline).and_then(|out| Some((out, receive(&stderr, deadline)?)));
    let status = outputs.as_ref().and_then(|_| wait(&mut child, deadline));
    match (outputs, status) {
        (Some((stdout, stderr)), Some(status)) => Ok(Ended { status, stdout, stderr }),
        _ => {
            end(&mut child);
            Err(Broken::TimedOut)
        }
    }
}

/// A child that is talked to in parts that a byte ends, such as lines; dropping it ends it.
pub(crate) struct Conversation {
    child: Child,
    stdin: Option<ChildStdin>,
    parts: Receiver<String>,
    stderr: Receiver<Vec<u8>>,
    deadline: Instant,
}

impl Conversation {
    pub(crate) fn start(mut command: Command, end: u8, limit: Duration) -> Result<Conversation, Broken> {
        let mut child = spawn(&mut command, Stdio::piped())?;
        let (sender, parts) = channel();
        let stdout = child.stdout.take();
        thread::spawn(move || {
            for part in BufReader::new(stdout?).split(end) {
                // Only ids and fixed words are of use to anybody who asks.
                sender.send(String::from_utf8_lossy(&part.ok()?).into_owned()).ok()?;
            }
            Some(())
        });
        let stderr = read_all(child.stderr.take());
        let stdin = child.stdin.take();
        Ok(Conversation { child, stdin, parts, stderr, deadline: Instant::now() + limit })
    }

    /// Sends bytes; a child that has gone shows in the answer that does not come.
    pub(crate) fn send(&mut self, bytes: &[u8]) {
        if let Some(stdin) = &mut self.stdin
            && stdin.write_all(bytes).and_then(|()| stdin.flush()).is_err()
        {
            self.stdin = None;
        }
    }

    /// Waits for a part. `Ok(None)` means that the child has ended instead.
    pub(crate) fn part(&mut self) -> Result<Option<String>, Broken> {
        match self.parts.recv_timeout(self.deadline.saturating_duration_since(Instant::now())) {
            Ok(part) => Ok(Some(part)),
            Err(RecvTimeoutError::Disconnected) => Ok(None),
            Err(RecvTimeoutError::Timeout) => Err(Broken::TimedOut),
        }
    }

    /// Closes its input and waits for its end.
    pub(crate) fn finish(mut self) -> Result<Ended, Broken> {
        self.stdin = None;
        let stderr = receive(&self.stderr, self.deadline).ok_or(Broken::TimedOut)?;
        let status = wait(&mut self.child, self.deadline).ok_or(Broken::TimedOut)?;
        let stdout = self.parts.try_iter().collect::<Vec<_>>().join("\n").into_bytes();
        Ok(Ended { status, stdout, stderr })
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.stdin = None;
        // The end of its input makes `update-ref` abort and unlock by itself.
        if wait(&mut self.child, Instant::now() + GRACE).is_none() {
            end(&mut self.child);
        }
    }
}

fn spawn(command: &mut Command, stdin: Stdio) -> Result<Child, Broken> {
    // A group of its own, so that whatever git starts ends with it, and a Ctrl-C at our prompt does
    // not end git in the middle of an update.
    command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    command.spawn().map_err(Broken::Start)
}

fn read_all(pipe: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is still the best account of what happened.
        pipe?.read_to_end(&mut bytes).ok();
        sender.send(bytes).ok()
    });
    receiver
}

fn receive(receiver: &Receiver<Vec<u8>>, deadline: Instant) -> Option<Vec<u8>> {
    receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())).ok()
}

fn wait(child: &mut Child, deadline: Instant) -> Option<ExitStatus> {
    let mut pause = Duration::from_micros(20);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= deadline {
            return None;
        }
        thread::sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

/// Asks first: git removes its lock files when it is terminated, and leaves them when it is killed.
fn end(child: &mut Child) {
    let group = Pid::from_child(child);
    // The child is not reaped yet, so the group cannot belong to anybody else. A failure means that
    // it has no members left.
    kill_process_group(group, Signal::TERM).ok();
    if wait(child, Instant::now() + GRACE).is_none() {
        kill_process_group(group, Signal::KILL).ok();
        wait(child, Instant::now() + GRACE);
    }
}
