//! The keeper's whole life: start the agent, wait for its end or for the end of drydock, kill all that is left.
//!
//! Three threads and no runtime, so that it is up in a millisecond: one reads orders, one reaps children, and the
//! first one decides. *All gone* is the kernel's word, not our reading of `/proc`: a child subreaper inherits every
//! orphan below it, so "no children" from `wait` means no descendants, whatever they did to detach themselves.
//!
//! What it cannot hold: processes that the agent asked somebody else to start (a container daemon, systemd), and
//! processes of another user (sudo). An agent that is not confined has our user id and can kill its keeper, on which
//! drydock kills whatever carries the keeper's mark or has become an orphan (`orphans`).

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
use super::wire::{self, Exit, Report, Terms};
use crate::environment::KEEPER;
use crate::sandbox::{Resource, Resources, confine};

/// How long the keeper goes on killing before it reports what it could not kill.
pub(crate) const SWEEP_PATIENCE: Duration = Duration::from_secs(20);

/// The first descriptor that is not one of the three that every program has.
const FIRST_INHERITED: i32 = 3;

/// The pause between two sweeps; a killed process needs a moment to be gone.
const SWEEP_PAUSE: Duration = Duration::from_millis(5);

/// What is said of an agent that we killed and did not see end.
const KILLED: Exit = Exit::Signal(Signal::KILL.as_raw());

/// The exit code when the keeper could not do its work, beside a report or a line on standard error.
const UNUSABLE: u8 = 125;

/// Runs a program and takes everything it leaves behind along when it ends, or when drydock does.
///
/// The binary's `main` calls this for the hidden subcommand, before anything else, and exits with what it returns: the
/// program's code, or 128 plus the number of the signal that ended it.
pub fn keep(argv: Vec<OsString>) -> ExitCode {
    match life(&argv) {
        Ok(code) => code,
        Err(error) => {
            // Nobody is left to tell when standard error is gone too; the exit code stays.
            drop(writeln!(io::stderr(), "drydock keeper: {error}"));
            ExitCode::from(UNUSABLE)
        }
    }
}

/// What can happen to a keeper.
enum Happening {
    /// Drydock asks for a polite end.
    Terminate,
    /// Drydock is gone, or wants everything gone.
    Released,
    /// The agent's own process ended.
    Exited(Exit),
    /// There is no child left, and so no descendant.
    Childless,
}

fn life(argv: &[OsString]) -> io::Result<ExitCode> {
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let only_by_drydock = |_| io::Error::other("this command is started by drydock itself, over a socket");
    control.local_addr().map_err(only_by_drydock)?;
    settle()?;
    // An end of the stream in here means that drydock died or gave up before anything was started.
    let pipe = wire::receive_input(&control)?;
    let (terms, input) = wire::read_opening(&mut &control)?;
    let (agent, stdin) = match start(argv, &terms, pipe) {
        Ok(started) => started,
        Err(report) => {
            wire::write_report(&mut &control, &report)?;
            return Ok(ExitCode::from(UNUSABLE));
        }
    };
    // From here on no `?`: whatever fails, the agent must not be left alone.
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
        Err(_) => drop(happenings.send(Happening::Released)),
    }
    // When drydock does not hear this it is gone, and the reader of orders will see that by itself.
    drop(wire::write_report(&mut &control, &Report::Started));
    limits::take_precedence();
    let (exit, survivors, exceeded) = watch(agent, &happened, &terms.resources);
    let code = match exit {
        Exit::Code(code) => code,
        Exit::Signal(signal) => 128 + signal,
    };
    drop(wire::write_report(&mut &control, &Report::Ended { exit, survivors, exceeded }));
    Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)))
}

/// Takes the keeper's place among the processes.
fn settle() -> io::Result<()> {
    // Descriptors of drydock's starter, such as those of `exec 7>>file` in a shell, would let an agent write where its
    // sandbox does not let it open anything (F12). Our own close on `exec` anyway.
    close_fds::set_fds_cloexec_threadsafe(FIRST_INHERITED, &[]);
    // Orphans below us become our children instead of the system's.
    set_child_subreaper(Some(getpid()))?;
    // An agent of our own user cannot read our memory or reach through /proc for the socket.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    // A session of our own has no terminal: a Ctrl-C there is drydock's to handle, and nothing below can prompt on it.
    match setsid() {
        Ok(_) | Err(Errno::PERM) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Starts the agent on a thread that is first locked in, so that the agent is and the keeper is not.
fn start(
    argv: &[OsString],
    terms: &Terms,
    pipe: Option<OwnedFd>,
) -> Result<(Pid, Option<ChildStdin>), Report> {
    let refused = |error: io::Error| Report::Refused { errno: error.raw_os_error(), text: error.to_string() };
    limits::lower(&terms.resources).map_err(refused)?;
    let confined = move || {
        if let Some(cage) = &terms.cage {
            confine(cage).map_err(|error| Report::Unconfined { text: error.to_string() })?;
        }
        spawn(argv, pipe).map_err(refused)
    };
    let died = || Report::Unconfined { text: "the thread that starts the agent died".to_owned() };
    thread::scope(|scope| scope.spawn(confined).join().unwrap_or_else(|_| Err(died())))
}

/// Starts the agent in a process group of its own, with our working directory, environment, output and error. Its input
/// is the pipe, or one that we feed.
fn spawn(argv: &[OsString], pipe: Option<OwnedFd>) -> io::Result<(Pid, Option<ChildStdin>)> {
    let (program, arguments) = argv
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "no program was named"))?;
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

/// Gives the agent its input; one that does not want it, or ends first, is no error.
fn feed(mut stdin: ChildStdin, input: &[u8]) {
    drop(stdin.write_all(input));
}

/// Reads orders until drydock closes its end or dies.
fn obey(mut orders: UnixStream, happenings: &Sender<Happening>) {
    let mut order = [0];
    loop {
        let happening = match orders.read(&mut order) {
            Ok(1) if order[0] == wire::TERMINATE => Happening::Terminate,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Ok(_) | Err(_) => Happening::Released,
        };
        let last = matches!(happening, Happening::Released);
        // A failed send means that the first thread is done, and with it this process.
        if happenings.send(happening).is_err() || last {
            return;
        }
    }
}

/// Reaps every child, inherited orphans included, until none is left.
fn reap(agent: Pid, happenings: &Sender<Happening>) {
    loop {
        let happening = match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == agent => match exit_of(status) {
                Some(exit) => Happening::Exited(exit),
                None => continue,
            },
            Ok(_) | Err(Errno::INTR) => continue,
            Err(_) => Happening::Childless,
        };
        let last = matches!(happening, Happening::Childless);
        if happenings.send(happening).is_err() || last {
            return;
        }
    }
}

fn exit_of(status: WaitStatus) -> Option<Exit> {
    status.exit_status().map(Exit::Code).or_else(|| status.terminating_signal().map(Exit::Signal))
}

/// Waits for the end, then sweeps; returns how the agent ended, which processes would not die, and what of its limits
/// it went beyond.
fn watch(
    agent: Pid,
    happened: &Receiver<Happening>,
    resources: &Resources,
) -> (Exit, Vec<i32>, Option<Resource>) {
    let mut exceeded = None;
    let exit = loop {
        match happened.recv_timeout(LOOK_PAUSE) {
            Ok(Happening::Terminate) => signal_group(agent, Signal::TERM),
            Ok(Happening::Exited(exit)) => break Some(exit),
            Ok(Happening::Childless) => return (KILLED, Vec::new(), None),
            Ok(Happening::Released) | Err(RecvTimeoutError::Disconnected) => break None,
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

fn sweep(agent: Pid, mut exit: Option<Exit>, happened: &Receiver<Happening>) -> (Exit, Vec<i32>) {
    let deadline = Instant::now() + SWEEP_PATIENCE;
    // The usual case, an agent that left nothing behind, is known in less than this and without a look at /proc.
    let mut pause = Duration::from_millis(1);
    loop {
        match happened.recv_timeout(pause) {
            Ok(Happening::Childless) => return (exit.unwrap_or(KILLED), Vec::new()),
            Ok(Happening::Exited(seen)) => exit = Some(seen),
            Ok(Happening::Terminate | Happening::Released) => {}
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                // The agent's own group dies even where /proc cannot be read.
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
        // It may have ended in this very moment; all else shows in whether children are left.
        Ok(()) | Err(_) => {}
    }
}
