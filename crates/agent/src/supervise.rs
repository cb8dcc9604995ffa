//! Drydock's end of a keeper: start it, wait for one of four ends, and see to it that the end is complete.
//!
//! Dropping any future of this file closes the socket to the keeper, which then kills all that it keeps. So a caller
//! that is cancelled, panics or dies leaves nothing running. The keeper itself is therefore never killed on drop: that
//! would be the one way to let its descendants escape.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use drydock_domain::told;
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
use crate::keeper::wire::{self, Exit, Report, Terms};
use crate::keeper::{orphans, processes};
use crate::sandbox::Resource;

/// How long a run that is told to stop may take to end by itself.
pub const STOP_GRACE: Duration = Duration::from_secs(3);

/// How long a keeper may take to come up; it needs milliseconds.
const START_PATIENCE: Duration = Duration::from_secs(30);

/// How long a keeper may take to kill everything before it is taken for dead: longer than it gives itself.
const KEEPER_PATIENCE: Duration = SWEEP_PATIENCE.saturating_add(Duration::from_secs(5));

/// How often what a dead keeper left is looked for; each look kills all it sees.
const REST_SWEEPS_MAX: usize = 50;
const REST_PAUSE: Duration = Duration::from_millis(20);

/// What is to be started.
pub(crate) struct Launch {
    pub(crate) argv: Vec<OsString>,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Environment,
    pub(crate) stdin: Input,
    pub(crate) terms: Terms,
    /// How the lines begin in which it reports that its model failed.
    pub(crate) failure_patterns: FailurePatterns,
}

/// The standard input of what is started.
pub(crate) enum Input {
    /// These bytes and their end.
    Bytes(Vec<u8>),
    /// A pipe whose other end somebody holds.
    Pipe(OwnedFd),
}

/// Why a run ended: by itself, or because of us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Itself(Exit),
    Stopped,
    TimedOut,
    /// It showed no sign of life for too long.
    Stalled,
    Exceeded,
    /// Its keeper saw it use too much.
    Greedy(Resource),
}

/// What ends a run besides itself.
pub(crate) struct Ends<'a> {
    pub(crate) stop: &'a CancellationToken,
    pub(crate) timeout: Duration,
    pub(crate) exceeded: &'a CancellationToken,
    /// Cancelled when the run is to be stopped because it shows no sign of life.
    pub(crate) stalled: &'a CancellationToken,
    /// Cancelled as soon as the run is being ended by us.
    pub(crate) hurry: &'a CancellationToken,
    /// Cancelled when every process of the run is gone.
    pub(crate) over: &'a CancellationToken,
}

/// A running keeper.
pub(crate) struct Kept {
    keeper: Child,
    pid: Option<u32>,
    orders: OwnedWriteHalf,
    reports: Lines<BufReader<OwnedReadHalf>>,
    /// The end as it was reported, kept because whoever read it may have been cancelled before it could say so.
    reported: Option<Exit>,
    greedy: Option<Resource>,
}

/// Starts the keeper and, through it, what is to be started; returns when that runs.
pub(crate) async fn start(
    launcher: &[OsString],
    launch: Launch,
    stdout: Stdio,
    stderr: Stdio,
) -> Result<Kept, StartError> {
    let program = launch.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let (own, keepers) = StdUnixStream::pair().map_err(|error| no_keeper(launcher, error))?;
    let pipe = match &launch.stdin {
        Input::Bytes(_) => None,
        Input::Pipe(pipe) => Some(pipe.as_fd()),
    };
    let mut kept = wire::send_input(&own, pipe)
        .and_then(|()| orphans::enrolled(|| spawn(launcher, &launch, keepers, stdout, stderr)))
        .and_then(|keeper| Kept::over(own, keeper))
        .map_err(|error| no_keeper(launcher, error))?;
    match timeout(START_PATIENCE, kept.open(&launch)).await {
        Ok(Ok(Some(Report::Started))) => Ok(kept),
        Ok(Ok(Some(Report::Refused { errno, text }))) => {
            drop(kept.orders);
            Err(refused(program, &launch.cwd, &launch.env, errno, text))
        }
        Ok(Ok(Some(Report::Unconfined { text }))) => {
            drop(kept.orders);
            Err(StartError::Sandbox { reason: text })
        }
        Ok(Ok(Some(Report::Ended { .. }))) => Err(no_keeper(launcher, "it reported an end before a start")),
        Ok(Ok(None)) => match kept.reaped().await {
            // Killed, perhaps by an agent that was quicker than the report of its start: `finish` sees to the rest.
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

impl Kept {
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

    /// Returns the keeper's own number.
    pub(crate) fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// Takes the pipes of the keeper that were asked for.
    pub(crate) fn child_mut(&mut self) -> &mut Child {
        &mut self.keeper
    }

    async fn open(&mut self, launch: &Launch) -> io::Result<Option<Report>> {
        let input = match &launch.stdin {
            Input::Bytes(bytes) => bytes.as_slice(),
            Input::Pipe(_) => &[],
        };
        let opening = wire::opening(&launch.terms, input)?;
        if let Err(error) = self.orders.write_all(&opening).await {
            // It ended without reading; the missing report says so better than a broken pipe.
            tracing::debug!(error = %told(&error), "a keeper did not read its opening");
        }
        self.report().await
    }

    /// Returns the next report, or nothing when the keeper is gone. Safe to cancel.
    async fn report(&mut self) -> io::Result<Option<Report>> {
        match self.reports.next_line().await {
            Ok(Some(line)) => serde_json::from_str(&line).map(Some).map_err(io::Error::from),
            Ok(None) => Ok(None),
            // A keeper that died with unread orders resets the socket instead of closing it.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Waits until the run ended, by itself or by one of `ends`, and everything of it is gone.
    pub(crate) async fn finish(mut self, ends: Ends<'_>) -> End {
        let end = tokio::select! {
            biased;
            exit = self.exit() => self.greedy.map_or(End::Itself(exit), End::Greedy),
            () = ends.stop.cancelled() => End::Stopped,
            () = ends.exceeded.cancelled() => End::Exceeded,
            () = ends.stalled.cancelled() => End::Stalled,
            () = tokio::time::sleep(ends.timeout) => End::TimedOut,
        };
        if !matches!(end, End::Itself(_) | End::Greedy(_)) {
            ends.hurry.cancel();
            self.halt(end).await;
        }
        ends.over.cancel();
        end
    }

    /// Ends the run: asks, waits for the grace, then kills. One that floods us is not asked.
    async fn halt(mut self, end: End) {
        if matches!(end, End::Stopped | End::TimedOut | End::Stalled) {
            if let Err(error) = self.orders.write_all(&[wire::TERMINATE]).await {
                tracing::debug!(error = %told(&error), "a keeper ended before it could be told to stop");
            }
            if timeout(STOP_GRACE, self.exit()).await.is_ok() {
                return;
            }
        }
        if let Err(error) = self.orders.shutdown().await {
            tracing::debug!(error = %told(&error), "a keeper ended before it could be told to kill");
        }
        if timeout(KEEPER_PATIENCE, self.exit()).await.is_ok() {
            return;
        }
        tracing::error!(keeper = self.pid, "a keeper did not obey and is killed itself");
        if let Err(error) = self.keeper.start_kill() {
            tracing::warn!(error = %told(&error), keeper = self.pid, "could not kill a keeper");
        }
        // What it kept comes to us only when it is gone.
        if timeout(KEEPER_PATIENCE, self.reaped()).await.is_err() {
            tracing::error!(keeper = self.pid, "a keeper that was killed is still there");
        }
        self.sweep_rest().await;
    }

    /// Waits for the agent's own end as the keeper reports it, and for the keeper's. Safe to cancel.
    async fn exit(&mut self) -> Exit {
        if let Some(exit) = self.reported {
            self.reaped().await;
            return exit;
        }
        match self.report().await {
            Ok(Some(Report::Ended { exit, survivors, exceeded })) => {
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
                // Killed by an agent that is not confined, by a person or for memory: what it kept is nobody's now, or ours.
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
                tracing::warn!(error = %told(&error), keeper = self.pid, "could not wait for a keeper");
                None
            }
        }
    }

    /// Kills whatever carries the mark of this keeper or has come to us as an orphan, until nothing is left.
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
                    tracing::error!(?failed, keeper = pid, "could not look for what a keeper left behind");
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
        // A code of 0 without a report is no success: we do not know how the agent fared.
        (None, code) => Exit::Code(code.filter(|code| *code != 0).unwrap_or(1)),
    }
}

fn no_keeper(launcher: &[OsString], reason: impl ToString) -> StartError {
    let launcher = launcher.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    StartError::Keeper { launcher, reason: reason.to_string() }
}

/// Puts the system's refusal into words that name the program.
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
