//! Runs a script in place of an agent, for deterministic demos and tests.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::command::{self, RunLimits};
use crate::ending::Ending;
use crate::error::StartError;
use crate::runner::shell_words;
use crate::script::{self, ScriptOp};
use crate::secret::Secrets;
use crate::signal::{OutputStream, Signal};
use crate::supervise::Launch;

/// Maximum size of a script.
const SCRIPT_MAX: u64 = 4 * 1024 * 1024;

/// Everything that a script needs to run.
pub(crate) struct ScriptContext<'a> {
    pub(crate) launcher: &'a [OsString],
    pub(crate) launch: &'a (dyn Fn(Vec<OsString>) -> Launch + Send + Sync),
    pub(crate) phase: &'a str,
    pub(crate) worktree: &'a Path,
    pub(crate) limits: RunLimits,
    pub(crate) signals: mpsc::Sender<Signal>,
    pub(crate) stop: CancellationToken,
    pub(crate) secrets: Secrets,
}

/// Runs the steps for the phase in order, until one of them ends the run.
pub(crate) async fn play(path: &Path, stage: &ScriptContext<'_>) -> Result<Ending, StartError> {
    let unusable = |reason| StartError::Script { path: path.to_owned(), reason };
    let text = read(path).await.map_err(|error| unusable(error.to_string()))?;
    let steps = script::parse(&text).map_err(unusable)?;
    let deadline = Instant::now() + stage.limits.timeout;
    for step in steps.iter().filter(|step| step.is_for(stage.phase)) {
        let ending = match &step.action {
            ScriptOp::Run(command) => stage.run(command, deadline).await?,
            other => stage.act(other, deadline).await,
        };
        if ending != Ending::Finished {
            return Ok(ending);
        }
        if matches!(step.action, ScriptOp::Exit(_)) {
            break;
        }
    }
    Ok(Ending::Finished)
}

async fn read(path: &Path) -> io::Result<String> {
    let length = tokio::fs::metadata(path).await?.len();
    if length > SCRIPT_MAX {
        return Err(io::Error::other(format!("it has {length} bytes, more than the {SCRIPT_MAX} allowed")));
    }
    tokio::fs::read_to_string(path).await
}

impl ScriptContext<'_> {
    async fn run(&self, command: &str, deadline: Instant) -> Result<Ending, StartError> {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let limits = RunLimits { timeout: left, ..self.limits };
        let launch = (self.launch)(shell_words(command));
        let (signals, stop, secrets) = (self.signals.clone(), self.stop.clone(), self.secrets.clone());
        let ending = command::listen(self.launcher, launch, limits, signals, stop, secrets, None).await?;
        Ok(match ending {
            // Report the limit of the whole script, not the time that was left.
            Ending::TimedOut { tail, .. } => Ending::TimedOut { after: self.limits.timeout, tail },
            other => other,
        })
    }

    /// Performs a step that needs no process, unless the run is stopped or times out first.
    async fn act(&self, action: &ScriptOp, deadline: Instant) -> Ending {
        tokio::select! {
            biased;
            () = self.stop.cancelled() => Ending::Stopped,
            ending = self.perform(action) => ending,
            () = tokio::time::sleep_until(deadline) => {
                Ending::TimedOut { after: self.limits.timeout, tail: String::new() }
            }
        }
    }

    async fn perform(&self, action: &ScriptOp) -> Ending {
        let outcome = match action {
            ScriptOp::Write { path, content } => self.write(path, content).await,
            ScriptOp::Append { path, content } => self.append(path, content).await,
            ScriptOp::Delete { path } => self.delete(path).await,
            ScriptOp::Rename { from, to } => self.rename(from, to).await,
            ScriptOp::Log(text) => {
                for line in text.lines() {
                    self.say(Signal::Log { stream: OutputStream::Stdout, line: line.to_owned() }).await;
                }
                Ok(())
            }
            ScriptOp::Message(message) => {
                self.say(Signal::Message(message.clone())).await;
                Ok(())
            }
            ScriptOp::Sleep(duration) => {
                tokio::time::sleep(*duration).await;
                Ok(())
            }
            ScriptOp::Fail(text) => return Ending::Failed { code: 1, tail: text.clone() },
            ScriptOp::Exit(0) => return Ending::Finished,
            ScriptOp::Exit(code) => return Ending::Failed { code: *code, tail: String::new() },
            ScriptOp::Run(_) => unreachable!("`play` gives commands to `run`"),
        };
        match outcome {
            Ok(()) => Ending::Finished,
            Err(error) => Ending::Failed { code: 1, tail: format!("the script could not continue: {error}") },
        }
    }

    async fn say(&self, signal: Signal) {
        if self.signals.send(signal).await.is_err() {
            tracing::debug!("the receiver of a scripted agent's messages is gone; the agent continues");
        }
    }

    async fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        let target = self.place(path).await?;
        tokio::fs::write(target, content).await
    }

    async fn append(&self, path: &Path, content: &str) -> io::Result<()> {
        let target = self.place(path).await?;
        let mut file = tokio::fs::OpenOptions::new().append(true).create(true).open(target).await?;
        file.write_all(content.as_bytes()).await?;
        file.flush().await
    }

    async fn delete(&self, path: &Path) -> io::Result<()> {
        let target = self.place(path).await?;
        if tokio::fs::symlink_metadata(&target).await?.is_dir() {
            tokio::fs::remove_dir_all(target).await
        } else {
            tokio::fs::remove_file(target).await
        }
    }

    async fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.place(from).await?, self.place(to).await?);
        tokio::fs::rename(from, to).await
    }

    /// Creates the directories above `path` and returns its location, which must be in the worktree even when
    /// symbolic links are followed.
    async fn place(&self, path: &Path) -> io::Result<PathBuf> {
        let outside = || io::Error::other(format!("the path {} leads out of the worktree", path.display()));
        let root = tokio::fs::canonicalize(self.worktree).await?;
        let mut directory = root.clone();
        for part in path.parent().into_iter().flat_map(Path::components) {
            directory.push(part);
            match tokio::fs::create_dir(&directory).await {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
                Ok(()) | Err(_) => directory = tokio::fs::canonicalize(&directory).await?,
            }
            if !directory.starts_with(&root) {
                return Err(outside());
            }
        }
        let target = directory.join(path.file_name().ok_or_else(outside)?);
        // A write would follow a symbolic link at the end of the path, so such a link is always rejected.
        match tokio::fs::symlink_metadata(&target).await {
            Ok(seen) if seen.is_symlink() => {
                Err(io::Error::other(format!("{} is a symbolic link", path.display())))
            }
            Ok(_) | Err(_) => Ok(target),
        }
    }
}
