//! Drydock's side of a keeper: starts it, waits until the run ends or must be ended, and ensures that no
//! process of the run remains.
//!
//! Dropping any future of this file closes the socket to the keeper, which then kills all its processes. A
//! caller that is cancelled, panics or dies therefore leaves nothing running. The keeper itself is never
//! killed on drop: only that would let its descendants escape.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use drydock_domain::error_chain;
use rustix::io::Errno;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::process::{Child, Command};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::environment::{Environment, KEEPER};
use crate::error::StartError;
use crate::failure_report::FailurePatterns;
use crate::keeper::SWEEP_PATIENCE;
use crate::keeper::wire::{self, Confinement, Exit, KeeperReport};
use crate::keeper::{orphans, processes};
use crate::sandbox::Resource;

/// How long a run may take to end after it was terminated, before it is killed.
pub const STOP_GRACE: Duration = Duration::from_secs(3);

/// Maximum start time of a keeper; it usually needs milliseconds.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long a keeper may take to kill everything before it counts as dead: longer than the keeper's own
/// limit.
const KEEPER_PATIENCE: Duration = SWEEP_PATIENCE.saturating_add(Duration::from_secs(5));

/// Maximum number of scans for processes left by a dead keeper; each scan kills everything it finds.
const REST_SWEEPS_MAX: usize = 50;
const REST_PAUSE: Duration = Duration::from_millis(20);

/// The program to start.
pub(crate) struct Launch {
    pub(crate) argv: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Environment,
    pub(crate) stdin: Input,
    pub(crate) terms: Confinement,
    /// Prefixes of the lines in which it reports that its model failed.
    pub(crate) failure_patterns: FailurePatterns,
}

/// The standard input of the program.
pub(crate) enum Input {
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// A pipe whose other end the caller holds.
    Pipe(OwnedFd),
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessEnd {
    Itself(Exit),
    Stopped,
    TimedOut,
    /// The run showed no signs of life for too long.
    Stalled,
    Exceeded,
    /// The keeper found that the run exceeded a resource limit.
    Greedy(Resource),
}

/// Conditions that end a run before it exits.
pub(crate) struct StopConditions<'a> {
    pub(crate) stop: &'a CancellationToken,
    pub(crate) timeout: Duration,
    pub(crate) exceeded: &'a CancellationToken,
    /// Cancelled when the run must be stopped because it stalled.
    pub(crate) stalled: &'a CancellationToken,
    /// Cancelled as soon as drydock starts to end the run.
    pub(crate) hurry: &'a CancellationToken,
    /// Cancelled when every process of the run has ended.
    pub(crate) over: &'a CancellationToken,
}

/// A running keeper.
pub(crate) struct KeeperProcess {
    keeper: Child,
    pid: Option<u32>,
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    /// The reported exit. It is stored because the future that read it may have been cancelled before it
    /// could return it.
    reported: Option<Exit>,
    greedy: Option<Resource>,
}

/// Starts the keeper and, through it, the program. Returns when the program runs.
pub(crate) async fn start(
    launcher: &[OsString],
    launch: Launch,
    stdout: Stdio,
    stderr: Stdio,
) -> Result<KeeperProcess, StartError> {
    let program = launch.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (own, keepers) = StdUnixStream::pair().map_err(|error| no_keeper(launcher, error))?;
    let pipe = match &launch.stdin {
        Input::Bytes(_) => None,
        Input::Pipe(pipe) => Some(pipe.as_fd()),
    };
    let mut kept = wire::send_input(&own, pipe)
        .and_then(|()| orphans::spawn_registered(|| spawn(launcher, &launch, keepers, stdout, stderr)))
        .and_then(|keeper| KeeperProcess::over(own, keeper))
        .map_err(|error| no_keeper(launcher, error))?;
    match timeout(START_PATIENCE, kept.open(&launch)).await {
        Ok(Ok(Some(KeeperReport::Started))) => Ok(kept),
        Ok(Ok(Some(KeeperReport::Refused { errno, text }))) => {
            drop(kept.orders);
            Err(refused(program, &launch.cwd, &launch.env, errno, text))
        }
        Ok(Ok(Some(KeeperReport::Unconfined { text }))) => {
            drop(kept.orders);
            Err(StartError::Sandbox { reason: text })
        }
        Ok(Ok(Some(KeeperReport::Ended { .. }))) => {
            Err(no_keeper(launcher, "it reported an end before a start"))
        }
        Ok(Ok(None)) => match kept.reaped().await {
            // The keeper was killed, perhaps by an agent before its start was reported; `finish` handles the
            // rest.
            Some(status) if status.signal().is_some() => Ok(kept),
            status => {
                let status =
                    status.map_or("its exit status is unknown".to_owned(), |status| status.to_string());
                Err(no_keeper(launcher, format!("it ended before it reported anything ({status})")))
            }
        },
        Ok(Err(error)) => Err(no_keeper(launcher, error)),
        Err(_) => Err(no_keeper(launcher, format!("it did not report within {START_PATIENCE:?}"))),
    }
}

fn spawn(
    launcher: &[OsString],
    launch: &Launch,
    control: StdUnixStream,
    stdout: Stdio,
    stderr: Stdio,
) -> io::Result<Child> {
    let (program, arguments) = launcher
        .split_first()
        .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the launcher is empty"))?;
    Command::new(program)
        .args(arguments)
        .args(&launch.argv)
        .current_dir(&launch.cwd)
        .env_clear()
        .envs(&launch.env)
        .stdin(Stdio::from(OwnedFd::from(control)))
        .stdout(stdout)
        .stderr(stderr)
        .spawn()
}

impl KeeperProcess {
    fn over(own: StdUnixStream, keeper: Child) -> io::Result<Self> {
        own.set_nonblocking(true)?;
        let (reports, orders) = UnixStream::from_std(own)?.into_split();
        let pid = keeper.id();
        Ok(Self {
            keeper,
            pid,
            orders,
            reports: BufReader::new(reports).lines(),
            reported: None,
            greedy: None,
        })
    }

    /// Returns the keeper's pid.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Gives access to the keeper's pipes.
    pub(crate) fn child_mut(&mut self) -> &mut Child {
        &mut self.keeper
    }

    async fn open(&mut self, launch: &Launch) -> io::Result<Option<KeeperReport>> {
        let input = match &launch.stdin {
            Input::Bytes(bytes) => bytes.as_slice(),
            Input::Pipe(_) => &[],
        };
        let opening = wire::opening(&launch.terms, input)?;
        if let Err(error) = self.orders.write_all(&opening).await {
            // The keeper ended without reading. The missing report describes this better than a broken pipe.
            tracing::debug!(error = %error_chain(&error), "a keeper did not read its start message");
        }
        self.report().await
    }

    /// Returns the next report, or `None` if the keeper has ended. Safe to cancel.
    async fn report(&mut self) -> io::Result<Option<KeeperReport>> {
        match self.reports.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map(Some).map_err(io::Error::from),
            Ok(None) => Ok(None),
            // A keeper that died with unread orders resets the socket instead of closing it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the run has ended, or ends it on one of `ends`, and until all its processes are gone.
    pub(crate) async fn finish(mut self, ends: StopConditions<'_>) -> ProcessEnd {
        let end = tokio::select! {
            biased;
            exit = self.exit() => self.greedy.map_or(ProcessEnd::Itself(exit), ProcessEnd::Greedy),
            () = ends.stop.cancelled() => ProcessEnd::Stopped,
            () = ends.exceeded.cancelled() => ProcessEnd::Exceeded,
            () = ends.stalled.cancelled() => ProcessEnd::Stalled,
            () = tokio::time::sleep(ends.timeout) => ProcessEnd::TimedOut,
        };
        if !matches!(end, ProcessEnd::Itself(_) | ProcessEnd::Greedy(_)) {
            ends.hurry.cancel();
            self.halt(end).await;
        }
        ends.over.cancel();
        end
    }

    /// Ends the run: terminates it, waits for the grace period, then kills it. A run that floods us is killed
    /// immediately.
    async fn halt(mut self, end: ProcessEnd) {
        if matches!(end, ProcessEnd::Stopped | ProcessEnd::TimedOut | ProcessEnd::Stalled) {
            if let Err(error) = self.orders.write_all(&[wire::TERMINATE]).await {
                tracing::debug!(error = %error_chain(&error), "a keeper ended before the request to stop was sent");
            }
            if timeout(STOP_GRACE, self.exit()).await.is_ok() {
                return;
            }
        }
        if let Err(error) = self.orders.shutdown().await {
            tracing::debug!(error = %error_chain(&error), "a keeper ended before the request to kill was sent");
        }
        if timeout(KEEPER_PATIENCE, self.exit()).await.is_ok() {
            return;
        }
        tracing::error!(keeper = self.pid, "a keeper did not end its run and is killed");
        if let Err(error) = self.keeper.start_kill() {
            tracing::warn!(error = %error_chain(&error), keeper = self.pid, "could not kill a keeper");
        }
        // Orphans of the keeper are reparented to this process only once the keeper is gone.
        if timeout(KEEPER_PATIENCE, self.reaped()).await.is_err() {
            tracing::error!(keeper = self.pid, "a killed keeper still exists");
        }
        self.sweep_rest().await;
    }

    /// Waits for the agent's exit as reported by the keeper, and for the keeper's own. Safe to cancel.
    async fn exit(&mut self) -> Exit {
        if let Some(exit) = self.reported {
            self.reaped().await;
            return exit;
        }
        match self.report().await {
            Ok(Some(KeeperReport::Ended { exit, survivors, exceeded })) => {
                self.greedy = exceeded;
                if !survivors.is_empty() {
                    tracing::error!(
                        ?survivors,
                        keeper = self.pid,
                        "some processes of a run could not be killed"
                    );
                }
                self.reported = Some(exit);
                self.reaped().await;
                exit
            }
            other => {
                // The keeper was killed by an agent without a sandbox, by a user or by the out-of-memory
                // killer. Its processes are now orphans or children of this process.
                tracing::warn!(?other, keeper = self.pid, "a keeper ended without a report");
                let status = self.reaped().await;
                self.sweep_rest().await;
                exit_of(status)
            }
        }
    }

    async fn reaped(&mut self) -> Option<ExitStatus> {
        match self.keeper.wait().await {
            Ok(status) => {
                self.pid.into_iter().for_each(orphans::strike);
                Some(status)
            }
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), keeper = self.pid, "could not wait for a keeper");
                None
            }
        }
    }

    /// Kills every process with this keeper's mark and every orphan of this process, until none is left.
    async fn sweep_rest(&self) {
        let Some(pid) = self.pid else { return };
        let mark = format!("{KEEPER}={pid}");
        for _ in 0..REST_SWEEPS_MAX {
            let mark = mark.clone();
            let kill = move || Ok::<_, io::Error>(processes::kill_marked(&mark)? + orphans::kill_orphans()?);
            match tokio::task::spawn_blocking(kill).await {
                Ok(Ok(0)) => return,
                Ok(Ok(_)) => tokio::time::sleep(REST_PAUSE).await,
                failed => {
                    tracing::error!(?failed, keeper = pid, "could not find the processes that a keeper left");
                    return;
                }
            }
        }
        tracing::error!(keeper = pid, "processes of a killed keeper are still alive");
    }
}

fn exit_of(status: Option<ExitStatus>) -> Exit {
    let signal = status.and_then(|status| status.signal());
    let code = status.and_then(|status| status.code());
    match (signal, code) {
        (Some(signal), _) => Exit::Signal(signal),
        // Exit code 0 without a report is not a success: it is unknown how the agent ended.
        (None, code) => Exit::Code(code.filter(|code| *code != 0).unwrap_or(1)),
    }
}

fn no_keeper(launcher: &[OsString], reason: impl ToString) -> StartError {
    let launcher = launcher.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    StartError::Keeper { launcher, reason: reason.to_string() }
}

/// Converts the system's error into a start error that names the program.
fn refused(program: String, cwd: &Path, env: &Environment, errno: Option<i32>, text: String) -> StartError {
    let is = |wanted: Errno| errno == Some(wanted.raw_os_error());
    if is(Errno::NOENT) {
        if !exists(&program, cwd, env) {
            return StartError::ProgramMissing { program };
        }
        return StartError::NotExecutable {
            program,
            reason: "the interpreter that its first line names is missing".into(),
        };
    }
    if is(Errno::ACCESS) {
        return StartError::NotExecutable { program, reason: "permission denied".into() };
    }
    if is(Errno::NOEXEC) {
        return StartError::NotExecutable {
            program,
            reason: "it is not a program this system can run".into(),
        };
    }
    StartError::Refused { program, reason: text }
}

fn exists(program: &str, cwd: &Path, env: &Environment) -> bool {
    if program.contains('/') {
        return cwd.join(program).exists();
    }
    let path = env.get(OsStr::new("PATH"));
    path.is_some_and(|path| {
        std::env::split_paths(path).any(|directory| cwd.join(directory).join(program).exists())
    })
}
