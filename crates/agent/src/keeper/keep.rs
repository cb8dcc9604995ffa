//! The keeper process: starts the agent, waits for its end or the end of drydock, and kills all remaining
//! processes.
//!
//! It uses three threads and no async runtime, so that it starts within a millisecond: one reads orders, one
//! reaps children, and the main thread decides. The kernel, not `/proc`, shows that all processes have ended:
//! a child subreaper inherits every orphan below it, so `wait` reporting no children means no descendants,
//! even if they detached themselves.
//!
//! Not covered: processes that the agent had started by another service (a container daemon, systemd), and
//! processes of another user (sudo). An agent without a sandbox has our user id and can kill its keeper.
//! Drydock then kills every process with the keeper's mark, and orphans (`orphans`).

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{ChildStdin, Command, ExitCode, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, getpid, kill_process_group, set_child_subreaper,
    set_dumpable_behavior, setsid, wait,
};

use super::limits::{self, LOOK_PAUSE};
use super::processes;
use super::wire::{self, Confinement, Exit, KeeperReport};
use crate::environment::KEEPER;
use crate::sandbox::{Resource, Resources, confine};

/// How long the keeper tries to kill everything before it reports the survivors.
pub(crate) const SWEEP_PATIENCE: Duration = Duration::from_secs(20);

/// The first file descriptor after the three standard ones.
const FIRST_INHERITED: i32 = 3;

/// Pause between two sweeps; a killed process needs a moment to end.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// Exit reported for an agent that the keeper killed without seeing its end.
const KILLED: Exit = Exit::Signal(Signal::KILL.as_raw());

/// Exit code if the keeper failed, in addition to a report or a line on standard error.
const UNUSABLE: u8 = 125;

/// Runs a program and kills all its descendants when it ends or when drydock ends.
///
/// The binary's `main` calls this for the hidden subcommand before anything else, and exits with the returned
/// code: the program's exit code, or 128 plus the number of the signal that ended it.
pub fn run_keeper(argv: Vec<OsString>) -> ExitCode {
    match life(&argv) {
        Ok(code) => code,
        Err(error) => {
            // If standard error is closed too, the failure shows only in the exit code.
            drop(writeln!(io::stderr(), "drydock keeper: {error}"));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// An input of the keeper's main loop.
enum KeeperInput {
    /// Drydock requests termination.
    Terminate,
    /// Drydock has ended, or wants everything killed.
    Released,
    /// The agent's own process ended.
    Exited(Exit),
    /// No children are left, and therefore no descendants.
    Childless,
}

fn life(argv: &[OsString]) -> io::Result<ExitCode> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let only_by_drydock =
        |_| io::Error::other("this command is for internal use: drydock starts it with a socket");
    control.local_addr().map_err(only_by_drydock)?;
    settle()?;
    // If the stream ends here, drydock died or gave up before anything was started.
    let pipe = wire::receive_input(&control)?;
    let (terms, input) = wire::read_opening(&mut &control)?;
    let (agent, stdin) = match start(argv, &terms, pipe) {
        Ok(started) => started,
        Err(report) => {
            wire::write_report(&mut &control, &report)?;
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    // No `?` from here on: if something fails, the agent must still be watched.
    let (happenings, happened) = mpsc::channel();
    if let Some(stdin) = stdin {
        thread::spawn(move || feed(stdin, &input));
    }
    thread::spawn({
        let happenings = happenings.clone();
        move || reap(agent, &happenings)
    });
    match control.try_clone() {
        Ok(orders) => drop(thread::spawn(move || obey(orders, &happenings))),
        Err(_) => drop(happenings.send(KeeperInput::Released)),
    }
    // If the write fails, drydock has ended, and the thread that reads orders notices that.
    drop(wire::write_report(&mut &control, &KeeperReport::Started));
    limits::take_precedence();
    let (exit, survivors, exceeded) = watch(agent, &happened, &terms.resources);
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    drop(wire::write_report(&mut &control, &KeeperReport::Ended { exit, survivors, exceeded }));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Sets up the keeper as a process: descriptors, subreaper, session.
fn settle() -> io::Result<()> {
    // Descriptors inherited from drydock's parent, such as `exec 7>>file` in a shell, would let an agent
    // write where its sandbox does not allow it to open files (F12). Our own are closed on `exec` anyway.
    close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITED, &[]);
    // Orphans below the keeper become its children.
    set_child_subreaper(Some(getpid()))?;
    // An agent with the same user id can neither read our memory nor open the socket through /proc.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // A new session has no terminal: drydock handles Ctrl-C, and no process below can prompt on the terminal.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Starts the agent from a thread that is sandboxed first, so that the agent is sandboxed and the keeper is
/// not.
fn start(
    argv: &[OsString],
    terms: &Confinement,
    pipe: Option<OwnedFd>,
) -> Result<(Pid, Option<ChildStdin>), KeeperReport> {
    let refused =
        |error: io::Error| KeeperReport::Refused { errno: error.raw_os_error(), text: error.to_string() };
    limits::lower(&terms.resources).map_err(refused)?;
    let confined = move || {
        if let Some(cage) = &terms.cage {
            confine(cage).map_err(|error| KeeperReport::Unconfined { text: error.to_string() })?;
        }
        spawn(argv, pipe).map_err(refused)
    };
    let died = || KeeperReport::Unconfined { text: "the thread that starts the agent died".to_owned() };
    thread::scope(|scope| scope.spawn(confined).join().unwrap_or_else(|_| Err(died())))
}

/// Starts the agent in its own process group, with our working directory, environment, output and error. Its
/// input is the pipe, or a new one that the keeper fills.
fn spawn(argv: &[OsString], pipe: Option<OwnedFd>) -> io::Result<(Pid, Option<ChildStdin>)> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program was given"))?;
    let mut child = Command::new(program)
        .args(arguments)
        .env(KEEPER, std::process::id().to_string())
        .stdin(pipe.map_or_else(Stdio::piped, Stdio::from))
        .process_group(0)
        .spawn()?;
    let stdin = child.stdin.take();
    let pid = Pid::from_raw(child.id().cast_signed()).expect("a started process has a number above zero");
    Ok((pid, stdin))
}

/// Writes the agent's input. An agent that does not read it or ends first is not an error.
fn feed(mut stdin: ChildStdin, input: &[u8]) {
    drop(stdin.write_all(input));
}

/// Reads orders until drydock closes its end or dies.
fn obey(mut orders: UnixStream, happenings: &Sender<KeeperInput>) {
    let mut order = [0];
    loop {
        let happening = match orders.read(&mut order) {
            Ok(1) if order[0] == wire::TERMINATE => KeeperInput::Terminate,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => KeeperInput::Released,
        };
        let last = matches!(happening, KeeperInput::Released);
        // If the send fails, the main thread has finished, and the process is about to end.
        if happenings.send(happening).is_err() || last {
            return;
        }
    }
}

/// Reaps every child, including inherited orphans, until none is left.
fn reap(agent: Pid, happenings: &Sender<KeeperInput>) {
    loop {
        let happening = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => match exit_of(status) {
                Some(exit) => KeeperInput::Exited(exit),
                None => continue,
            },
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => KeeperInput::Childless,
        };
        let last = matches!(happening, KeeperInput::Childless);
        if happenings.send(happening).is_err() || last {
            return;
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Waits for the end, then sweeps. Returns how the agent ended, the processes that could not be killed, and
/// the exceeded limit, if any.
fn watch(
    agent: Pid,
    happened: &Receiver<KeeperInput>,
    resources: &Resources,
) -> (Exit, Vec<i32>, Option<Resource>) {
    let mut exceeded = None;
    let exit = loop {
        match happened.recv_timeout(LOOK_PAUSE) {
            Ok(KeeperInput::Terminate) => signal_group(agent, Signal::TERM),
            Ok(KeeperInput::Exited(exit)) => break Some(exit),
            Ok(KeeperInput::Childless) => return (KILLED, Vec::new(), None),
            Ok(KeeperInput::Released) | Err(RecvTimeoutError::Disconnected) => break None,
            Err(RecvTimeoutError::Timeout) => {
                exceeded = limits::exceeded(resources);
                if exceeded.is_some() {
                    break None;
                }
            }
        }
    };
    let (exit, survivors) = sweep(agent, exit, happened);
    (exit, survivors, exceeded)
}

fn sweep(agent: Pid, mut exit: Option<Exit>, happened: &Receiver<KeeperInput>) -> (Exit, Vec<i32>) {
    let deadline = Instant::now() + SWEEP_PATIENCE;
    // In the usual case, an agent that left no processes, this is long enough, and /proc is not read.
    let mut pause = Duration::from_millis(1);
    loop {
        match happened.recv_timeout(pause) {
            Ok(KeeperInput::Childless) => return (exit.unwrap_or(KILLED), Vec::new()),
            Ok(KeeperInput::Exited(seen)) => exit = Some(seen),
            Ok(KeeperInput::Terminate | KeeperInput::Released) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // The agent's own group is killed even if /proc cannot be read.
                signal_group(agent, Signal::KILL);
                let alive = processes::kill_descendants();
                if Instant::now() >= deadline {
                    let unknown = |_| vec![agent.as_raw_nonzero().get()];
                    return (exit.unwrap_or(KILLED), alive.unwrap_or_else(unknown));
                }
            }
        }
        pause = SWEEP_PAUSE;
    }
}

fn signal_group(group: Pid, signal: Signal) {
    match kill_process_group(group, signal) {
        // The group may have just ended; any other failure shows in the remaining children.
        Ok(()) | Err(_) => {}
    }
}
