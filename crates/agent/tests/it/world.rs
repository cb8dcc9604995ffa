//! A worktree, a temporary directory and a runner, and an independent check of processes through `/proc`.

use std::collections::BTreeMap;
use std::fs;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use drydock_agent::{AgentSpec, AgentTask, Ending, OutputStream, RunDirs, Runner, Signal, StartError};
use tempfile::TempDir;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How long a condition may take to become true on a busy machine.
const PATIENCE: Duration = Duration::from_secs(15);

pub(crate) struct World {
    directory: TempDir,
    pub(crate) runner: Runner,
    pub(crate) task: AgentTask,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let worktree = directory.path().join("worktree");
        fs::create_dir(&worktree).unwrap();
        let task = AgentTask {
            plan: "pln-1".into(),
            run: "run-1".into(),
            phase: "execute".into(),
            role: "writer".into(),
            task: "fix the door".into(),
            definition_of_done: Some("it opens".into()),
            arguments: BTreeMap::from([("what".into(), "door".into())]),
            invariants: vec!["small".into()],
            choices: vec![],
            feedback: vec!["the hinge too".into()],
            worktree: worktree.display().to_string(),
            session: None,
            permitted: Default::default(),
            proposal: None,
            base: "abc".into(),
        };
        let keeper = env!("CARGO_BIN_EXE_drydock-agent-tests");
        let runner = Runner::new(vec![keeper.into(), "__keep".into(), "--".into()]);
        Self { directory, runner, task }
    }

    pub(crate) fn dirs(&self) -> RunDirs {
        RunDirs { worktree: self.worktree(), temp: self.directory.path().join("temp"), reads: Vec::new() }
    }

    pub(crate) fn worktree(&self) -> PathBuf {
        self.directory.path().join("worktree")
    }

    pub(crate) fn file(&self, name: &str) -> String {
        fs::read_to_string(self.worktree().join(name)).unwrap_or_default()
    }

    pub(crate) fn put(&self, name: &str, content: &str) -> PathBuf {
        let path = self.worktree().join(name);
        fs::write(&path, content).unwrap();
        path
    }

    /// Runs an agent to its end with a receiver that keeps up.
    pub(crate) async fn run(&self, spec: &AgentSpec) -> (Result<Ending, StartError>, Vec<Signal>) {
        self.run_until(spec, std::future::pending()).await
    }

    /// Runs an agent and stops it when `moment` completes.
    pub(crate) async fn run_until(
        &self,
        spec: &AgentSpec,
        moment: impl Future<Output = ()>,
    ) -> (Result<Ending, StartError>, Vec<Signal>) {
        let (sender, mut receiver) = mpsc::channel(16);
        let stop = CancellationToken::new();
        let run = self.runner.agent(spec, &self.task, &self.dirs(), sender, stop.clone());
        let listen = async {
            let mut signals = Vec::new();
            while let Some(signal) = receiver.recv().await {
                dealt(&signal);
                signals.push(signal);
            }
            signals
        };
        let both = async { tokio::join!(run, listen) };
        let stopping = async {
            moment.await;
            stop.cancel();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            seen = both => seen,
            () = stopping => unreachable!("it waits for ever"),
        }
    }

    /// Runs a shell script as a command agent and expects it to start.
    pub(crate) async fn sh(&self, script: &str) -> (Ending, Vec<Signal>) {
        let (ending, signals) = self.run(&sh(script)).await;
        (ending.unwrap(), signals)
    }
}

/// Returns an agent that is a shell script.
pub(crate) fn sh(script: &str) -> AgentSpec {
    AgentSpec::command(["sh", "-c", script]).unwrap()
}

/// Replies to an agent that waits until its signal was handled.
pub(crate) fn dealt(signal: &Signal) {
    match signal {
        Signal::Called(_, reply) | Signal::Keep { reply, .. } => reply.say(Ok(())),
        Signal::Log { .. }
        | Signal::Message(_)
        | Signal::Permission(_)
        | Signal::Activity(_)
        | Signal::Stalled { .. }
        | Signal::Session { .. }
        | Signal::Used { .. }
        | Signal::Garbled { .. } => {}
    }
}

/// Returns the log lines of one stream, in order.
pub(crate) fn lines(signals: &[Signal], wanted: OutputStream) -> Vec<&str> {
    signals
        .iter()
        .filter_map(|signal| match signal {
            Signal::Log { stream, line } if *stream == wanted => Some(line.as_str()),
            Signal::Log { .. }
            | Signal::Message(_)
            | Signal::Permission(_)
            | Signal::Called(..)
            | Signal::Keep { .. }
            | Signal::Activity(_)
            | Signal::Stalled { .. }
            | Signal::Session { .. }
            | Signal::Used { .. }
            | Signal::Garbled { .. } => None,
        })
        .collect()
}

/// Waits until `condition` holds, and fails with `what` if it never does.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "never came true: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Returns true if a process that wrote its pid into a file is running.
pub(crate) fn alive(pid: &str) -> bool {
    let pid = pid.trim();
    assert!(pid.parse::<u32>().is_ok(), "{pid:?} is no process number");
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

/// Counts running processes whose command line mentions `path`.
pub(crate) fn processes_mentioning(path: &Path) -> usize {
    let wanted = path.display().to_string();
    let mentions = |entry: fs::DirEntry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|line| String::from_utf8_lossy(&line).contains(&wanted))
    };
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().join("stat").exists())
        .map(mentions)
        .filter(|found| *found)
        .count()
}
