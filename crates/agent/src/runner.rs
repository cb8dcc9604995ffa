//! Entry point of this crate: runs agents and shell commands, each under its own keeper.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::future::Future;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::acp::{self, AcpResult, AcpRun, Goal};
use crate::command::{self, OnStall, RunLimits};
use crate::ending::{Ending, ShellResult};
use crate::environment::{self, Environment};
use crate::error::StartError;
use crate::failure_report::FailurePatterns;
use crate::home::HomeFiles;
use crate::keeper::wire::Confinement;
use crate::mcp::RunSocket;
use crate::sandbox::{Floor, Resources, Sandbox, describe, landlock};
use crate::scripted;
use crate::secret::Secrets;
use crate::signal::{OutputStream, Signal};
use crate::spec::{AgentSpec, Protocol};
use crate::supervise::{Input, Launch};
use crate::task::{AgentTask, RunDirs};

/// A run in progress. Dropping it immediately kills every process of the run.
pub type RunFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Starts agents and shell commands.
#[derive(Debug, Clone)]
pub struct Runner {
    launcher: Arc<[OsString]>,
    sandbox: Arc<Sandbox>,
    floor: Floor,
}

impl Runner {
    /// Creates a runner. `launcher` is the command that starts this binary as the keeper, such as
    /// `/proc/self/exe __keep --`; the words of the command to run are appended.
    ///
    /// `/proc/self/exe` refers to the running image even after an upgrade replaced the file, so runner and
    /// keeper always use the same protocol.
    pub fn new(launcher: Vec<OsString>) -> Self {
        Self { launcher: launcher.into(), sandbox: Arc::default(), floor: Floor::AsConfigured }
    }

    /// Returns this runner with another sandbox for agents and shell commands.
    #[must_use]
    pub fn with_sandbox(self, sandbox: Sandbox) -> Self {
        Self { sandbox: sandbox.into(), ..self }
    }

    /// Returns a runner that starts agents and shell commands only in a full sandbox.
    #[must_use]
    pub fn requiring_sandbox(&self) -> Self {
        Self { floor: Floor::Required, ..self.clone() }
    }

    /// Describes the confinement of this agent: `landlock` with the kernel's ABI version, or `none` with the
    /// reason.
    pub fn confinement(&self, spec: &AgentSpec) -> String {
        describe(self.sandbox.mode_for(spec.sandbox(), self.floor), landlock())
    }

    /// Runs an agent on a task in its worktree and sends its output to `signals`.
    ///
    /// A slow receiver slows the agent down; a closed one does not. When `stop` is cancelled, the agent is
    /// terminated, and killed after `STOP_GRACE`. From then on, lines for which the receiver has no room are
    /// dropped.
    pub fn agent(
        &self,
        spec: &AgentSpec,
        task: &AgentTask,
        dirs: &RunDirs,
        signals: mpsc::Sender<Signal>,
        stop: CancellationToken,
    ) -> RunFuture<Result<Ending, StartError>> {
        let run = self.start(spec, task, dirs, Goal::Work, signals, stop);
        Box::pin(async move { run.await.map(|done| done.ending) })
    }

    fn start(
        &self,
        spec: &AgentSpec,
        task: &AgentTask,
        dirs: &RunDirs,
        goal: Goal,
        signals: mpsc::Sender<Signal>,
        stop: CancellationToken,
    ) -> RunFuture<Result<AcpResult, StartError>> {
        let (launcher, spec, task) = (self.launcher.clone(), spec.clone(), task.clone());
        let program = own_program(&launcher);
        // With restricted reads, the agent can still start the MCP server, which is our own binary.
        let dirs = RunDirs { reads: dirs.reads.iter().chain(&program).cloned().collect(), ..dirs.clone() };
        let resources = spec.resources().over(self.sandbox.resources());
        let mode = self.sandbox.mode_for(spec.sandbox(), self.floor);
        let cage = self.sandbox.cage(mode, landlock(), &dirs);
        Box::pin(async move {
            prepare(&dirs.worktree, &dirs.temp).await?;
            let terms = Confinement { cage: cage?, resources };
            let door = door(&spec, &task, &dirs, goal)?;
            let (json, env) = told(&spec, &task, &dirs, door.as_ref()).await?;
            let secrets = secrets(&spec, door.as_ref());
            let _home = HomeFiles::copied(&spec, &dirs.temp).await?;
            let limits = limits(&spec, resources);
            let launch = |argv| Launch {
                argv,
                cwd: dirs.worktree.clone(),
                env: env.clone(),
                stdin: Input::Bytes(json.clone().into_bytes()),
                terms: terms.clone(),
                failure_patterns: spec.failure_patterns().clone(),
            };
            let ending = match spec.how() {
                Protocol::Command { argv } => {
                    let launch = spoken_to(launch(argv.iter().map(OsString::from).collect()), &task);
                    command::listen(&launcher, launch, limits, signals, stop, secrets, door.as_ref()).await
                }
                Protocol::Acp { argv, permissions, message_max } => {
                    let argv = argv.iter().map(OsString::from).collect();
                    let converser = AcpRun {
                        launcher: &launcher,
                        task: &task,
                        dirs: &dirs,
                        permissions: permissions.clone(),
                        message_max: *message_max,
                        limits,
                        goal,
                        secrets,
                        door: door.as_ref(),
                        program,
                    };
                    return acp::converse(converser, launch(argv), signals, stop).await;
                }
                Protocol::Scripted { script } => {
                    let stage = scripted::ScriptContext {
                        launcher: &launcher,
                        launch: &launch,
                        phase: &task.phase,
                        worktree: &dirs.worktree,
                        limits,
                        signals,
                        stop,
                        secrets,
                    };
                    scripted::play(script, &stage).await
                }
            };
            Ok(AcpResult { ending: ending?, greeting: None })
        })
    }

    /// Starts an agent to check whether it works. An agent with a protocol only performs the handshake, one
    /// with `check` prints its version, and any other gets the task. Returns the ending, and the name or
    /// version that the agent reported.
    pub fn greet(
        &self,
        spec: &AgentSpec,
        task: &AgentTask,
        dirs: &RunDirs,
        stop: CancellationToken,
    ) -> RunFuture<Result<(Ending, Option<String>), StartError>> {
        let (signals, mut heard) = mpsc::channel(1);
        let versioned = spec.has_check();
        let run = self.start(&spec.clone().checking(), task, dirs, Goal::Greet, signals, stop);
        Box::pin(async move {
            let first = async {
                let mut first = None;
                while let Some(signal) = heard.recv().await {
                    // A version is printed to standard output. Standard error may contain warnings before it.
                    let Signal::Log { stream: OutputStream::Stdout, line } = signal else { continue };
                    if versioned && first.is_none() {
                        first = Some(line).filter(|line| !line.trim().is_empty());
                    }
                }
                first
            };
            let (done, first) = tokio::join!(run, first);
            done.map(|done| (done.ending, done.greeting.or(first)))
        })
    }

    /// Runs `sh -c command` without input in the worktree, with a clean environment plus `env`.
    pub fn shell(
        &self,
        command: &str,
        dirs: &RunDirs,
        env: &BTreeMap<String, String>,
        timeout: Duration,
        stop: CancellationToken,
    ) -> RunFuture<Result<ShellResult, StartError>> {
        self.shell_heard(command, dirs, env, timeout, stop, None)
    }

    /// Runs `sh -c command` like [`Runner::shell`], and also sends each line to `heard` as it is written,
    /// both streams as one. Secrets of the given agents are hidden. A slow receiver slows the command down.
    pub fn shell_heard(
        &self,
        command: &str,
        dirs: &RunDirs,
        env: &BTreeMap<String, String>,
        timeout: Duration,
        stop: CancellationToken,
        heard: Option<(mpsc::Sender<Signal>, Vec<AgentSpec>)>,
    ) -> RunFuture<Result<ShellResult, StartError>> {
        let heard = heard.map(|(signals, hidden)| {
            let secrets = hidden.iter().fold(Secrets::default(), |all, spec| all.with(&spec.secrets()));
            (signals, secrets)
        });
        let (launcher, argv, dirs) = (self.launcher.clone(), shell_words(command), dirs.clone());
        let env = environment::of_shell(env, &dirs.temp);
        let cage = self.sandbox.cage(self.sandbox.mode_for(None, self.floor), landlock(), &dirs);
        let resources = self.sandbox.resources();
        Box::pin(async move {
            prepare(&dirs.worktree, &dirs.temp).await?;
            let terms = Confinement { cage: cage?, resources };
            let (cwd, stdin, failure_patterns) =
                (dirs.worktree, Input::Bytes(Vec::new()), FailurePatterns::default());
            let launch = Launch { argv, cwd, env: env?, stdin, terms, failure_patterns };
            command::collect(&launcher, launch, timeout, stop, heard).await
        })
    }

    /// Runs a user's program outside the sandbox with `stdin` as its input and a clean environment plus
    /// `env`. Its working directory and `HOME` is a private directory, which is created if missing.
    pub fn hook(
        &self,
        argv: &[String],
        stdin: Vec<u8>,
        env: &BTreeMap<String, String>,
        directory: &Path,
        timeout: Duration,
        stop: CancellationToken,
    ) -> RunFuture<Result<ShellResult, StartError>> {
        let (launcher, cwd) = (self.launcher.clone(), directory.to_owned());
        let argv = argv.iter().map(OsString::from).collect();
        let env = environment::of_shell(env, directory);
        Box::pin(async move {
            make_private(&cwd).await?;
            let terms = Confinement { cage: None, resources: Resources::default() };
            let (stdin, failure_patterns) = (Input::Bytes(stdin), FailurePatterns::default());
            let launch = Launch { argv, cwd, env: env?, stdin, terms, failure_patterns };
            command::collect(&launcher, launch, timeout, stop, None).await
        })
    }
}

fn limits(spec: &AgentSpec, resources: Resources) -> RunLimits {
    RunLimits {
        timeout: spec.timeout(),
        output_max: spec.flood_max(),
        resources,
        stall_after: spec.stall_after(),
        on_stall: if spec.stops_stalled() { OnStall::Stop } else { OnStall::Tell },
    }
}

/// Returns the task as JSON, and the agent's environment.
async fn told(
    spec: &AgentSpec,
    task: &AgentTask,
    dirs: &RunDirs,
    door: Option<&RunSocket>,
) -> Result<(String, Environment), StartError> {
    let json = serde_json::to_string(task).expect("a task has only text keys and no numbers that JSON lacks");
    let (mut env, task_file) = environment::of_agent(spec, task, &json, dirs);
    let leading = door.into_iter().flat_map(RunSocket::variables);
    env.extend(leading.map(|(name, value)| (name.into(), value.to_owned())));
    if let Some(path) = task_file {
        write_private(&path, json.as_bytes())
            .await
            .map_err(|source| StartError::Directory { path, source })?;
    }
    Ok((json, env))
}

/// Opens the socket for the agent's tool calls if the agent does work and is a separate program.
fn door(
    spec: &AgentSpec,
    task: &AgentTask,
    dirs: &RunDirs,
    goal: Goal,
) -> Result<Option<RunSocket>, StartError> {
    match (goal, spec.how()) {
        (Goal::Work, Protocol::Command { .. } | Protocol::Acp { .. }) => {
            RunSocket::open(&dirs.temp, task).map(Some)
        }
        (Goal::Greet, _) | (_, Protocol::Scripted { .. }) => Ok(None),
    }
}

/// Returns the agent's secrets, including the one for its socket.
fn secrets(spec: &AgentSpec, door: Option<&RunSocket>) -> Secrets {
    door.map_or_else(|| spec.secrets(), |door| spec.secrets().and(door.secret()))
}

/// Returns the path of our own binary for the agent to start, because `/proc/self/exe` would be the agent's
/// own program there. Returns `None` if an upgrade removed the file.
fn own_program(launcher: &[OsString]) -> Option<PathBuf> {
    let program = PathBuf::from(launcher.first()?);
    let file = if program == Path::new("/proc/self/exe") { std::env::current_exe().ok()? } else { program };
    Some(file).filter(|file| file.is_file())
}

/// Placeholder in a command that is replaced by the task's prompt text.
const PROMPT: &str = "{prompt}";

/// If the command contains the placeholder, passes the prompt as an argument and no input.
fn spoken_to(launch: Launch, task: &AgentTask) -> Launch {
    if !launch.argv.iter().any(|word| word == PROMPT) {
        return launch;
    }
    let words = OsString::from(acp::prompt_text(task));
    let argv = launch.argv.iter().map(|word| if word == PROMPT { words.clone() } else { word.clone() });
    Launch { argv: argv.collect(), stdin: Input::Bytes(Vec::new()), ..launch }
}

/// Returns the argument vector that runs `command` in a shell.
pub(crate) fn shell_words(command: &str) -> Vec<OsString> {
    vec!["sh".into(), "-c".into(), command.into()]
}

/// Creates the temporary directory and checks that the working directory exists: a missing one would later
/// look like a missing program.
async fn prepare(cwd: &Path, temp: &Path) -> Result<(), StartError> {
    let failed = |path: &Path, source| StartError::Directory { path: path.to_owned(), source };
    let seen = tokio::fs::metadata(cwd).await.map_err(|source| failed(cwd, source))?;
    if !seen.is_dir() {
        return Err(failed(cwd, io::ErrorKind::NotADirectory.into()));
    }
    make_private(temp).await
}

/// Writes a file that only this user can read.
async fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = tokio::fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path).await?;
    file.write_all(bytes).await?;
    file.flush().await
}

/// Creates a directory that only this user can access, if it does not exist.
async fn make_private(path: &Path) -> Result<(), StartError> {
    let mut private = tokio::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(path).await.map_err(|source| StartError::Directory { path: path.to_owned(), source })
}
