//! One conversation with an agent: initialize, open a session in the worktree, send the task, handle messages
//! until the end.
//!
//! The process runs under a keeper like any other; the protocol's crate only gets two streams of lines. A
//! conversation ends when the agent has responded to the task, when it disconnects, or when drydock stops it:
//! first by the protocol, then as a process.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, ClientCapabilities, ContentBlock, EnvVariable, FileSystemCapabilities,
    Implementation, InitializeRequest, InitializeResponse, McpServer, McpServerStdio, PromptRequest,
    PromptResponse, ReadTextFileRequest, RequestPermissionRequest, SessionNotification, StopReason,
    TextContent, WriteTextFileRequest,
};
use agent_client_protocol::{Agent, Client, Error, ErrorCode, Lines};
use tokio::net::unix::pipe;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use super::handle::Host;
use super::lines::{Fault, Incoming, outgoing};
use super::permission::Permissions;
use super::prompt;
use super::session::{self, OpenedSession};
use super::update::UpdateState;
use crate::command::{self, RunLimits};
use crate::ending::Ending;
use crate::error::StartError;
use crate::failure::ModelFailure;
use crate::failure_report;
use crate::keeper::wire::Exit;
use crate::limit::{self, Resets};
use crate::liveness::{self, Watched};
use crate::mcp::{self, RunSocket};
use crate::output::SignalSink;
use crate::secret::Secrets;
use crate::signal::{OutputStream, Signal};
use crate::supervise::{self, Input, Launch, ProcessEnd, StopConditions};
use crate::task::{AgentTask, RunDirs};

/// How long an agent may take to respond to `initialize` or to open a session; some download files first.
const GREETING_PATIENCE: Duration = Duration::from_secs(120);
/// How long it may take to end its turn after a cancel notification.
const CANCEL_PATIENCE: Duration = Duration::from_secs(2);
/// How long it may take to exit after its input was closed.
const LEAVE_PATIENCE: Duration = Duration::from_secs(2);

/// How far a conversation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    /// Until the task ends.
    Work,
    /// Until the agent responded to `initialize`.
    Greet,
}

/// Everything needed for a conversation.
pub(crate) struct AcpRun<'a> {
    pub(crate) launcher: &'a [OsString],
    pub(crate) task: &'a AgentTask,
    pub(crate) dirs: &'a RunDirs,
    pub(crate) permissions: Permissions,
    pub(crate) message_max: usize,
    pub(crate) limits: RunLimits,
    pub(crate) goal: Goal,
    pub(crate) secrets: Secrets,
    /// The socket for calls of drydock's tools.
    pub(crate) door: Option<&'a RunSocket>,
    /// Our own binary, if the agent can start it.
    pub(crate) program: Option<PathBuf>,
}

/// The end of a conversation.
pub(crate) struct AcpResult {
    pub(crate) ending: Ending,
    /// The agent's name and version, if it sent them.
    pub(crate) greeting: Option<String>,
}

/// The outcome of the protocol dialog.
enum DialogEnd {
    /// The agent responded to the task.
    Answered(StopReason),
    /// The agent responded to `initialize`, and no more was requested.
    Greeted,
    /// The agent's service rejects further requests for now.
    Limited(Resets),
    /// The run was stopped.
    Cancelled,
    /// The model failed; the reason follows the agent's name in a sentence.
    Failed(ModelFailure, String),
    /// The agent violated the protocol or returned an error; the text follows its name in a sentence.
    Broken(String),
    /// The agent exited before it responded.
    Left(String),
}

/// Runs a conversation to its end.
pub(crate) async fn converse(
    with: AcpRun<'_>,
    launch: Launch,
    signals: mpsc::Sender<Signal>,
    stop: CancellationToken,
) -> Result<AcpResult, StartError> {
    if stop.is_cancelled() {
        return Ok(AcpResult { ending: Ending::Stopped, greeting: None });
    }
    let program = launch.argv.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    let no_pipe = |error: io::Error| StartError::Refused {
        program: program.clone(),
        reason: format!("no pipe could be created: {error}"),
    };
    let (reader, writer) = io::pipe().map_err(&no_pipe)?;
    let writer = pipe::Sender::from_owned_fd(writer.into()).map_err(&no_pipe)?;
    let launch = Launch { stdin: Input::Pipe(reader.into()), ..launch };
    let (worktree, failure_patterns) = (launch.cwd.clone(), launch.failure_patterns.clone());
    let mut kept = supervise::start(with.launcher, launch, Stdio::piped(), Stdio::piped()).await?;
    let keeper = kept.pid();
    let child = kept.child_mut();
    let stdout = child.stdout.take().expect("standard output was asked for as a pipe in this function");
    let stderr = child.stderr.take().expect("standard error was asked for as a pipe in this function");

    // Stopping has two steps, so the process gets our own token instead of the caller's.
    let (halt, hurry, over) = (CancellationToken::new(), stop.child_token(), CancellationToken::new());
    let output = SignalSink::new(signals, with.limits.output_max, hurry.clone(), with.secrets.clone());
    let output = Arc::new(output.reporting(failure_patterns));
    let fault = Fault::default();
    let incoming = Incoming::new(stdout, &over, output.clone(), fault.clone(), with.message_max).messages();
    let transport = Lines::new(outgoing(writer, fault.clone()), incoming);
    let stalled = CancellationToken::new();
    let ends = StopConditions {
        stop: &halt,
        timeout: with.limits.timeout,
        exceeded: output.exceeded(),
        stalled: &stalled,
        hurry: &hurry,
        over: &over,
    };
    let greeting = Mutex::new(None);
    let talking = async {
        let talk = talk(&with, transport, output.clone(), &fault, &greeting, &stop).await;
        // The dialog has closed the agent's input, so it should exit.
        tokio::select! {
            () = over.cancelled() => {}
            () = tokio::time::sleep(LEAVE_PATIENCE) => halt.cancel(),
        }
        talk
    };
    let errors = output.pump(stderr, OutputStream::Stderr, &over);
    let watched =
        Watched { keeper, worktree: &worktree, output: &output, limits: with.limits, stalled: &stalled };
    let watching = liveness::watch(watched, &over);
    let attending = mcp::attend(with.door, &output, &over);
    let (end, talk, (), (), ()) = tokio::join!(kept.finish(ends), talking, errors, watching, attending);
    let exceeded = output.exceeded().is_cancelled();
    let ending = ending(end, talk, exceeded, with.limits, &output);
    Ok(AcpResult { ending, greeting: greeting.into_inner().unwrap_or_else(PoisonError::into_inner) })
}

fn ending(
    end: ProcessEnd,
    talk: DialogEnd,
    exceeded: bool,
    limits: RunLimits,
    output: &SignalSink,
) -> Ending {
    let unfinished = |reason: String| Ending::Unfinished { reason: output.hide(reason), tail: output.tail() };
    match (end, talk) {
        _ if exceeded => command::ending(ProcessEnd::Exceeded, limits, output.tail()),
        (_, DialogEnd::Cancelled) => Ending::Stopped,
        (
            end @ (ProcessEnd::TimedOut | ProcessEnd::Exceeded | ProcessEnd::Stalled | ProcessEnd::Greedy(_)),
            _,
        ) => command::ending(end, limits, output.tail()),
        (_, DialogEnd::Limited(resets)) => Ending::RateLimited { resets },
        // The end of a turn proves nothing: some agents end it normally when their model failed.
        (_, DialogEnd::Answered(StopReason::EndTurn)) => match output.report() {
            Some(report) => failure_report::reported(&report, output.tail()),
            None => Ending::Finished,
        },
        (_, DialogEnd::Greeted) => Ending::Finished,
        (_, DialogEnd::Failed(cause, reason)) => {
            Ending::ModelFailed { cause, reason: output.hide(reason), tail: output.tail() }
        }
        (_, DialogEnd::Answered(reason @ StopReason::Refusal)) => {
            let (cause, reason) = (ModelFailure::Refused, gave_up(reason).to_owned());
            Ending::ModelFailed { cause, reason, tail: output.tail() }
        }
        (_, DialogEnd::Answered(reason)) => unfinished(gave_up(reason).to_owned()),
        // A failure exit status is more informative than a disconnect.
        (ProcessEnd::Itself(exit @ (Exit::Signal(_) | Exit::Code(1..))), DialogEnd::Left(_)) => {
            command::ending(ProcessEnd::Itself(exit), limits, output.tail())
        }
        (
            ProcessEnd::Itself(_) | ProcessEnd::Stopped,
            DialogEnd::Broken(reason) | DialogEnd::Left(reason),
        ) => unfinished(reason),
    }
}

fn gave_up(reason: StopReason) -> &'static str {
    match reason {
        StopReason::EndTurn => "finished",
        StopReason::MaxTokens => "stopped because it reached its token limit",
        StopReason::MaxTurnRequests => "stopped because it reached its limit of model requests",
        StopReason::Refusal => "refused to continue",
        StopReason::Cancelled => "reported that it was cancelled, but drydock did not cancel it",
        _ => "stopped for an unknown reason",
    }
}

async fn talk<T>(
    with: &AcpRun<'_>,
    transport: T,
    output: Arc<SignalSink>,
    fault: &Fault,
    greeting: &Mutex<Option<String>>,
    stop: &CancellationToken,
) -> DialogEnd
where
    T: agent_client_protocol::ConnectTo<Client> + 'static,
{
    let host = Arc::new(Host {
        output,
        worktree: with.dirs.worktree.clone(),
        permissions: with.permissions.clone(),
        permitted: with.task.permitted.clone(),
        stop: stop.clone(),
        story: Mutex::new(UpdateState::without(with.secrets.clone())),
        replaying: AtomicBool::new(false),
    });
    // The last method called, for the error if the agent disconnects.
    let asked = Mutex::new("");
    let (told, read, written, permitted) = (host.clone(), host.clone(), host.clone(), host.clone());
    let opening = host.clone();
    let spoken = Client
        .v1()
        .name("drydock")
        .on_receive_notification(
            async move |notification: SessionNotification, _| {
                told.hear(notification).await;
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
        .on_receive_request(
            async move |request: ReadTextFileRequest, responder, _| {
                responder.respond_with_result(read.read(request).await)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: WriteTextFileRequest, responder, _| {
                responder.respond_with_result(written.write(request).await)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .on_receive_request(
            async move |request: RequestPermissionRequest, responder, _| {
                responder.respond(permitted.permit(request).await)
            },
            agent_client_protocol::on_receive_request!(),
        )
        .connect_with(transport, async |agent: ConnectionTo<Agent>| {
            tokio::select! {
                biased;
                talk = dialogue(with, &agent, &opening, &asked, greeting) => talk,
                () = fault.closed().cancelled() => Ok(broke_off(fault, &asked)),
            }
        })
        .await;
    host.flush().await;
    match spoken {
        Ok(talk) => talk,
        Err(_) if stop.is_cancelled() => DialogEnd::Cancelled,
        Err(_) if fault.closed().is_cancelled() => broke_off(fault, &asked),
        Err(error) => refused(&error, &asked),
    }
}

/// Classifies an error response.
fn refused(error: &Error, asked: &Mutex<&'static str>) -> DialogEnd {
    if let Some(resets) = limited(error) {
        return DialogEnd::Limited(resets);
    }
    let asked = *asked.lock().unwrap_or_else(PoisonError::into_inner);
    let text = described(error);
    let reason = format!("answered `{asked}` with an error: {text}");
    if failure_report::is_about_auth(&text) {
        DialogEnd::Failed(ModelFailure::Auth, reason)
    } else {
        DialogEnd::Broken(reason)
    }
}

fn broke_off(fault: &Fault, asked: &Mutex<&'static str>) -> DialogEnd {
    let asked = *asked.lock().unwrap_or_else(PoisonError::into_inner);
    fault
        .seen()
        .map_or_else(|| DialogEnd::Left(format!("ended without an answer to `{asked}`")), DialogEnd::Broken)
}

/// Returns the reset time if an error indicates a rate limit.
fn limited(error: &Error) -> Option<Resets> {
    error.data.as_ref().and_then(limit::told)
}

/// Classifies the response to the task. If the agent stopped early, its metadata may indicate a rate limit.
fn meant(response: PromptResponse) -> DialogEnd {
    let told = match response.stop_reason {
        StopReason::EndTurn => None,
        _ => response.meta.and_then(|meta| limit::told(&meta.into())),
    };
    told.map_or(DialogEnd::Answered(response.stop_reason), DialogEnd::Limited)
}

pub(super) fn described(error: &Error) -> String {
    let data = error.data.as_ref().map(|data| match data.as_str() {
        Some(text) => text.to_owned(),
        None => data.to_string(),
    });
    match data {
        Some(data) => format!("{} ({data})", error.message),
        None => error.message.clone(),
    }
}

async fn dialogue(
    with: &AcpRun<'_>,
    agent: &ConnectionTo<Agent>,
    host: &Host,
    asked: &Mutex<&'static str>,
    greeting: &Mutex<Option<String>>,
) -> Result<DialogEnd, Error> {
    let stop = &host.stop;
    let ask = |what: &'static str| *asked.lock().unwrap_or_else(PoisonError::into_inner) = what;
    ask("initialize");
    let files = FileSystemCapabilities::new().read_text_file(true).write_text_file(true);
    let hello = InitializeRequest::new(ProtocolVersion::V1)
        .client_capabilities(ClientCapabilities::new().fs(files))
        .client_info(Implementation::new("drydock", env!("CARGO_PKG_VERSION")));
    let answered = tokio::select! {
        answered = timeout(GREETING_PATIENCE, agent.send_request(hello).block_task()) => answered,
        () = stop.cancelled() => return Ok(DialogEnd::Cancelled),
    };
    let Ok(greeted) = answered else { return Ok(silent("initialize")) };
    let greeted = greeted?;
    *greeting.lock().unwrap_or_else(PoisonError::into_inner) = Some(name(&greeted));
    if with.goal == Goal::Greet {
        return Ok(DialogEnd::Greeted);
    }
    let opening = session::open(with, agent, &greeted, host, offered(with), (ask, GREETING_PATIENCE));
    let opened = tokio::select! {
        opened = opening => opened,
        () = stop.cancelled() => return Ok(DialogEnd::Cancelled),
    };
    let (session, words) = match opened {
        Ok(OpenedSession::New(session)) => (session, prompt::prompt_text(with.task)),
        Ok(OpenedSession::Loaded(session)) => (session, prompt::words_again(with.task)),
        Ok(OpenedSession::Silent(what)) => return Ok(silent(what)),
        Err(error) if error.code == ErrorCode::AUTH_REQUIRED => {
            let how = "requires a login; log in with its own program, then make its credentials available to \
                 drydock";
            let reason = format!("{how} (`env`, `pass_env` or `[sandbox] write`)");
            return Ok(DialogEnd::Failed(ModelFailure::Auth, reason));
        }
        Err(error) => return Err(error),
    };
    ask("session/prompt");
    let words = ContentBlock::Text(TextContent::new(words));
    let prompt = agent.send_request(PromptRequest::new(session.clone(), vec![words])).block_task();
    tokio::pin!(prompt);
    tokio::select! {
        biased;
        answer = &mut prompt => {
            let answer = answer?;
            count(host, &answer).await;
            Ok(meant(answer))
        }
        () = stop.cancelled() => {
            agent.send_notification(CancelNotification::new(session))?;
            // Drydock stopped the run, regardless of the response. Output until then is kept, and reported
            // usage counts.
            if let Ok(Ok(answer)) = timeout(CANCEL_PATIENCE, prompt).await {
                count(host, &answer).await;
            }
            Ok(DialogEnd::Cancelled)
        }
    }
}

/// Forwards the usage reported in a response.
async fn count(host: &Host, answer: &PromptResponse) {
    if let Some(usage) = &answer.usage {
        host.used(usage.total_tokens).await;
    }
}

/// Returns drydock as an MCP server. Without it, an agent can still write its messages as lines.
fn offered(with: &AcpRun<'_>) -> Vec<McpServer> {
    let (Some(door), Some(program)) = (with.door, &with.program) else { return Vec::new() };
    let variable = |(name, value): (&str, &OsStr)| value.to_str().map(|value| EnvVariable::new(name, value));
    let Some(env) = door.variables().into_iter().map(variable).collect() else { return Vec::new() };
    let server = McpServerStdio::new("drydock", program).args(vec!["mcp".to_owned()]).env(env);
    vec![McpServer::Stdio(server)]
}

fn silent(what: &str) -> DialogEnd {
    DialogEnd::Broken(format!("did not answer `{what}` within {} s", GREETING_PATIENCE.as_secs()))
}

fn name(greeted: &InitializeResponse) -> String {
    match &greeted.agent_info {
        Some(info) => format!("{} {}", info.name, info.version),
        None => "protocol version 1, no name".to_owned(),
    }
}
