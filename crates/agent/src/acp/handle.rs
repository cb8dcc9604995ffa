//! Drydock's handlers for an agent's requests and notifications: files of its worktree, permissions, updates.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification,
    WriteTextFileRequest, WriteTextFileResponse,
};
use tokio_util::sync::CancellationToken;

use super::account::Account;
use super::ask::PermissionQuestion;
use super::files::WorktreeFiles;
use super::permission::{PermissionPolicy, Permissions};
use super::update::{TextLine, UpdateOutcome, UpdateState};
use crate::output::{SignalOutcome, SignalSink};
use crate::reply::Reply;
use crate::signal::{Activity, Signal};
use crate::task::Permits;

/// How long an agent waits for the checkpoint around a write; a slower checkpoint is written while the agent
/// continues.
const KEEP_PATIENCE: Duration = Duration::from_secs(5);
/// Maximum length of a tool's title in a checkpoint label.
const LABEL_CHARS_MAX: usize = 100;

/// Drydock's side of one conversation.
pub(super) struct Host {
    pub(super) output: Arc<SignalSink>,
    pub(super) worktree: PathBuf,
    pub(super) permissions: Permissions,
    /// People's answers about tools.
    pub(super) permitted: Permits,
    pub(super) stop: CancellationToken,
    pub(super) story: Mutex<UpdateState>,
    /// Set while the agent repeats messages of an earlier run.
    pub(super) replaying: AtomicBool,
}

impl Host {
    fn story(&self) -> MutexGuard<'_, UpdateState> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn hear(&self, notification: SessionNotification) {
        if self.replaying.load(Ordering::Acquire) {
            return;
        }
        let told = self.story().hear(notification.update, |text| self.output.begins_report(text));
        match told {
            UpdateOutcome::Lines(lines) => {
                for TextLine { line, begins } in lines {
                    self.output.say(&line, begins).await;
                }
            }
            UpdateOutcome::Activity(open, activity) => {
                if let Some(TextLine { line, begins }) = open {
                    self.output.say(&line, begins).await;
                }
                let label = around(&activity);
                self.output.send(Signal::Activity(activity)).await;
                if let Some(label) = label {
                    // The agent does not wait for us, so waiting here would only delay its next updates.
                    self.output.send(Signal::Keep { label, reply: Reply::new().0 }).await;
                }
            }
            UpdateOutcome::Used { more, session } => self.output.send(Signal::Used { more, session }).await,
            UpdateOutcome::Nothing => {}
        }
    }

    /// Starts counting the usage of a session.
    pub(super) fn open_account(&self, account: Account) {
        self.story().account = account;
    }

    /// Forwards the total tokens that the agent reports for its session.
    pub(super) async fn used(&self, total_tokens: u64) {
        let told = self.story().tokens(total_tokens);
        if let UpdateOutcome::Used { more, session } = told {
            self.output.send(Signal::Used { more, session }).await;
        }
    }

    /// Forwards text that was not ended by a newline.
    pub(super) async fn flush(&self) {
        let rest = self.story().rest();
        if let Some(TextLine { line, begins }) = rest {
            self.output.say(&line, begins).await;
        }
    }

    pub(super) async fn read(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let worktree = self.worktree.clone();
        let read = move || WorktreeFiles::at(&worktree).read(&request.path, request.line, request.limit);
        blocking(read).await.map(ReadTextFileResponse::new)
    }

    pub(super) async fn write(&self, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        let worktree = self.worktree.clone();
        let title = shown(&self.worktree, &request.path);
        self.keep(label("before", "write", &title)).await;
        let write = move || WorktreeFiles::at(&worktree).write(&request.path, &request.content);
        blocking(write).await?;
        self.keep(label("after", "write", &title)).await;
        Ok(WriteTextFileResponse::new())
    }

    /// Requests a checkpoint of the worktree while the agent waits.
    async fn keep(&self, label: String) {
        let dealt = self.output.ask(|reply| Signal::Keep { label, reply }, KEEP_PATIENCE).await;
        if dealt != SignalOutcome::Done {
            // The receiver reports the failure to the user; the agent does not need to know.
            tracing::debug!(?dealt, "a write continued without a checkpoint");
        }
    }

    /// Answers a request by the configured policy or by an earlier answer. Otherwise a person is asked and
    /// the run is about to be stopped.
    pub(super) async fn permit(&self, request: RequestPermissionRequest) -> RequestPermissionResponse {
        let known = self.story().known(&request.tool_call.tool_call_id.to_string());
        let asked = PermissionQuestion::of(&request.tool_call, known);
        let rule = match self.permissions.of(asked.kind) {
            PermissionPolicy::Ask => match asked.answer(&self.permitted) {
                Some(true) => PermissionPolicy::Allow,
                Some(false) => PermissionPolicy::Reject,
                None => PermissionPolicy::Ask,
            },
            rule @ (PermissionPolicy::Allow | PermissionPolicy::Reject) => rule,
        };
        let (answer, kinds) = match rule {
            PermissionPolicy::Allow => {
                ("allowed", [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways])
            }
            PermissionPolicy::Reject => {
                ("rejected", [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways])
            }
            PermissionPolicy::Ask => {
                self.put_to_a_person(asked).await;
                return RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
            }
        };
        let chosen = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
        let allowed = rule == PermissionPolicy::Allow && chosen.is_some();
        // If the agent offers no option to allow, the request is cancelled.
        let answer = if rule == PermissionPolicy::Allow && !allowed { "cancelled" } else { answer };
        let before = label("before", asked.kind, &asked.title);
        let activity = Activity::Permission { title: asked.title, kind: asked.kind, answer };
        self.output.send(Signal::Activity(activity)).await;
        if allowed && writes(asked.kind) {
            self.keep(before).await;
        }
        RequestPermissionResponse::new(match chosen {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
            }
            // The agent offers no matching option; cancelling means no.
            None => RequestPermissionOutcome::Cancelled,
        })
    }

    async fn put_to_a_person(&self, asked: PermissionQuestion) {
        let activity = Activity::Permission { title: asked.title.clone(), kind: asked.kind, answer: "asked" };
        self.output.send(Signal::Activity(activity)).await;
        self.output.send(Signal::Permission(asked.asked())).await;
        self.stop.cancelled().await;
    }
}

/// Returns true if a tool of this kind may change files.
fn writes(kind: &str) -> bool {
    matches!(kind, "edit" | "delete" | "move" | "execute")
}

/// Returns the checkpoint label for a tool call that may change files.
fn around(activity: &Activity) -> Option<String> {
    let Activity::Tool { title, kind, status, .. } = activity else { return None };
    let when = match *status {
        "completed" | "failed" => "after",
        _ => "before",
    };
    writes(kind).then(|| label(when, kind, title))
}

fn label(when: &str, kind: &str, title: &str) -> String {
    let title: String = title.chars().take(LABEL_CHARS_MAX).collect();
    format!("{when} {kind}: {title}")
}

/// Returns a path relative to the worktree, on one line.
fn shown(worktree: &Path, path: &Path) -> String {
    let below = path.strip_prefix(worktree).unwrap_or(path).to_string_lossy();
    below.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Error> {
    let refused = |text: String| Error::invalid_params().data(text);
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(refused(error.to_string())),
        Err(error) => Err(refused(error.to_string())),
    }
}
