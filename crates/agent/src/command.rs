//! Runs one program under a keeper and converts its end into an `Ending`: an agent whose messages are
//! handled, or a shell command whose output is kept.

use std::ffi::OsString;
use std::io;
use std::process::Stdio;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::ending::{Ending, ShellResult};
use crate::error::StartError;
use crate::failure_report;
use crate::keeper::wire::Exit;
use crate::liveness::{self, Watched};
use crate::mcp::{self, RunSocket};
use crate::output::{Drain, KeptOutput, LineSplitter, SignalSink};
use crate::sandbox::{Resource, Resources};
use crate::secret::Secrets;
use crate::signal::{OutputStream, Signal};
use crate::supervise::{self, Launch, ProcessEnd, StopConditions};

/// Maximum amount of a shell command's output that is forwarded. A command may print more; writing all of it
/// would wear out disks.
const PASSED_MAX: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, Copy)]
pub(crate) struct RunLimits {
    pub(crate) timeout: Duration,
    pub(crate) output_max: u64,
    pub(crate) resources: Resources,
    pub(crate) stall_after: Duration,
    pub(crate) on_stall: OnStall,
}

/// How drydock reacts to a run without signs of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnStall {
    /// A signal is emitted.
    Tell,
    /// A signal is emitted, and if the stall continues, the run is stopped.
    Stop,
}

/// Runs a program and forwards its output as signals.
pub(crate) async fn listen(
    launcher: &[OsString],
    launch: Launch,
    limits: RunLimits,
    signals: mpsc::Sender<Signal>,
    stop: CancellationToken,
    secrets: Secrets,
    door: Option<&RunSocket>,
) -> Result<Ending, StartError> {
    if stop.is_cancelled() {
        return Ok(Ending::Stopped);
    }
    let (worktree, failure_patterns) = (launch.cwd.clone(), launch.failure_patterns.clone());
    let mut kept = supervise::start(launcher, launch, Stdio::piped(), Stdio::piped()).await?;
    let keeper = kept.pid();
    let child = kept.child_mut();
    let stdout = child.stdout.take().expect("standard output was asked for as a pipe in this function");
    let stderr = child.stderr.take().expect("standard error was asked for as a pipe in this function");
    let (hurry, over) = (stop.child_token(), CancellationToken::new());
    let sink =
        SignalSink::new(signals, limits.output_max, hurry.clone(), secrets).reporting(failure_patterns);
    let stalled = CancellationToken::new();
    let ends = StopConditions {
        stop: &stop,
        timeout: limits.timeout,
        exceeded: sink.exceeded(),
        stalled: &stalled,
        hurry: &hurry,
        over: &over,
    };
    let watched = Watched { keeper, worktree: &worktree, output: &sink, limits, stalled: &stalled };
    let (end, (), (), (), ()) = tokio::join!(
        kept.finish(ends),
        liveness::watch(watched, &over),
        sink.pump(stdout, OutputStream::Stdout, &over),
        sink.pump(stderr, OutputStream::Stderr, &over),
        mcp::attend(door, &sink, &over),
    );
    // An agent may flood us and exit before it is stopped; its exit status is irrelevant then.
    let end = match end {
        ProcessEnd::Itself(_) if sink.exceeded().is_cancelled() => ProcessEnd::Exceeded,
        other => other,
    };
    // The exit code shows only that something failed; the report shows the cause. With exit code 0, only a
    // report in the agent's last message counts.
    let report = match end {
        ProcessEnd::Itself(Exit::Code(0)) => sink.report(),
        ProcessEnd::Itself(Exit::Code(_)) => sink.report_in_tail(),
        _ => None,
    };
    Ok(match report {
        Some(report) => failure_report::reported(&report, sink.tail()),
        None => ending(end, limits, sink.tail()),
    })
}

/// Runs a program and keeps the end of its output, both streams in the order written. Also sends each line to
/// `heard`, if there is a receiver.
pub(crate) async fn collect(
    launcher: &[OsString],
    launch: Launch,
    timeout: Duration,
    stop: CancellationToken,
    heard: Option<(mpsc::Sender<Signal>, Secrets)>,
) -> Result<ShellResult, StartError> {
    if stop.is_cancelled() {
        return Ok(ShellResult { ending: Ending::Stopped, output: String::new() });
    }
    let (output, stdout, stderr) = shared_pipe().map_err(|error| StartError::Refused {
        program: "sh".into(),
        reason: format!("no pipe could be created: {error}"),
    })?;
    let resources = launch.terms.resources;
    let kept = supervise::start(launcher, launch, stdout, stderr).await?;
    let (hurry, over) = (stop.child_token(), CancellationToken::new());
    // The output is discarded as it arrives, so it needs no limit; a verbose validation is limited only by
    // time.
    let exceeded = CancellationToken::new();
    let stalled = CancellationToken::new();
    let ends = StopConditions {
        stop: &stop,
        timeout,
        exceeded: &exceeded,
        stalled: &stalled,
        hurry: &hurry,
        over: &over,
    };
    let secrets = heard.as_ref().map(|(_, secrets)| secrets.clone()).unwrap_or_default();
    let mut end_of_output = KeptOutput::without(secrets);
    let collecting = async {
        let mut drain = Drain::new(output, &over);
        let mut heard = heard.map(|(signals, secrets)| {
            let lines = LineSplitter::new(secrets.clone());
            (SignalSink::new(signals, u64::MAX, hurry.clone(), secrets), lines)
        });
        let mut passed = 0_u64;
        while let Some(chunk) = drain.next().await {
            end_of_output.push(chunk);
            passed = passed.saturating_add(chunk.len() as u64);
            if let Some((sink, lines)) = heard.as_mut().filter(|_| passed <= PASSED_MAX) {
                sink.log(lines.split(chunk)).await;
            }
        }
        if let Some((sink, lines)) = heard {
            sink.log(lines.rest().into_iter().collect()).await;
            if passed > PASSED_MAX {
                let line = format!("[{} more bytes are not in this log]", passed - PASSED_MAX);
                sink.send(Signal::Log { stream: OutputStream::Stdout, line }).await;
            }
        }
    };
    let (end, ()) = tokio::join!(kept.finish(ends), collecting);
    let limits = RunLimits {
        timeout,
        output_max: u64::MAX,
        resources,
        stall_after: Duration::MAX,
        on_stall: OnStall::Tell,
    };
    Ok(ShellResult { ending: ending(end, limits, end_of_output.tail()), output: end_of_output.text() })
}

/// Creates one pipe for both streams: with two pipes the order of the lines would be lost.
fn shared_pipe() -> io::Result<(Receiver, Stdio, Stdio)> {
    let (reader, writer) = io::pipe()?;
    let second = writer.try_clone()?;
    Ok((Receiver::from_owned_fd(reader.into())?, writer.into(), second.into()))
}

pub(crate) fn ending(end: ProcessEnd, limits: RunLimits, tail: String) -> Ending {
    match end {
        ProcessEnd::Itself(Exit::Code(0)) => Ending::Finished,
        ProcessEnd::Itself(Exit::Code(code)) => Ending::Failed { code, tail },
        ProcessEnd::Itself(Exit::Signal(signal)) => Ending::Killed { signal, tail },
        ProcessEnd::Stopped => Ending::Stopped,
        ProcessEnd::Stalled => Ending::Stalled { quiet: limits.stall_after.saturating_mul(2), tail },
        ProcessEnd::TimedOut => Ending::TimedOut { after: limits.timeout, tail },
        ProcessEnd::Exceeded => Ending::OutputExceeded { limit: limits.output_max },
        ProcessEnd::Greedy(what) => {
            let max = match what {
                Resource::Memory => limits.resources.memory_max.unwrap_or(u64::MAX),
                Resource::Processes => limits.resources.processes_max,
            };
            Ending::LimitExceeded { what, max, tail }
        }
    }
}
