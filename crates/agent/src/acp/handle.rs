//! What drydock answers an agent: files of its worktree, permissions, and an ear for what it tells.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agent_client_protocol::Error;
use agent_client_protocol::v1::schema::{
    PermissionOptionKind, ReadTextFileRequest, ReadTextFileResponse, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SelectedPermissionOutcome, SessionNotification,
    WriteTextFileRequest, WriteTextFileResponse,
};
use tokio_util::sync::CancellationToken;

use super::ask::{ALLOW, REJECT, Request};
use super::files::Worktree;
use super::permission::{Permissions, Rule};
use super::update::{Story, Told};
use crate::message::Message;
use crate::output::Sink;
use crate::signal::{Activity, Signal};

/// Drydock's side of one conversation.
pub(super) struct Host {
    pub(super) output: Arc<Sink>,
    pub(super) worktree: PathBuf,
    pub(super) permissions: Permissions,
    /// What was said before, answers to permissions among it.
    pub(super) feedback: Vec<String>,
    pub(super) stop: CancellationToken,
    pub(super) story: Mutex<Story>,
}

impl Host {
    fn story(&self) -> MutexGuard<'_, Story> {
        self.story.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) async fn hear(&self, notification: SessionNotification) {
        let told = self.story().hear(notification.update);
        match told {
            Told::Lines(lines) => {
                for line in lines {
                    self.output.say(&line).await;
                }
            }
            Told::Activity(open, activity) => {
                if let Some(line) = open {
                    self.output.say(line.trim_end()).await;
                }
                self.output.tell(Signal::Activity(activity)).await;
            }
            Told::Nothing => {}
        }
    }

    /// Passes on what was said and not ended by a new line.
    pub(super) async fn flush(&self) {
        let rest = self.story().rest();
        if let Some(line) = rest {
            self.output.say(line.trim_end()).await;
        }
    }

    pub(super) async fn read(&self, request: ReadTextFileRequest) -> Result<ReadTextFileResponse, Error> {
        let worktree = self.worktree.clone();
        let read = move || Worktree::at(&worktree).read(&request.path, request.line, request.limit);
        blocking(read).await.map(ReadTextFileResponse::new)
    }

    pub(super) async fn write(&self, request: WriteTextFileRequest) -> Result<WriteTextFileResponse, Error> {
        let worktree = self.worktree.clone();
        let write = move || Worktree::at(&worktree).write(&request.path, &request.content);
        blocking(write).await.map(|()| WriteTextFileResponse::new())
    }

    /// Answers a request by rule, by an answer given before, or not at all: then the run is about to be stopped.
    pub(super) async fn permit(&self, request: RequestPermissionRequest) -> RequestPermissionResponse {
        let known = self.story().known(&request.tool_call.tool_call_id.to_string());
        let asked = Request::of(&request.tool_call, known);
        let rule = match (self.permissions.of(asked.kind), asked.answered(&self.feedback)) {
            (Rule::Ask, Some(ALLOW)) => Rule::Allow,
            (Rule::Ask, Some(REJECT)) => Rule::Reject,
            (rule, _) => rule,
        };
        let (answer, kinds) = match rule {
            Rule::Allow => ("allowed", [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]),
            Rule::Reject => {
                ("rejected", [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways])
            }
            Rule::Ask => {
                self.put_to_a_person(asked).await;
                return RequestPermissionResponse::new(RequestPermissionOutcome::Cancelled);
            }
        };
        let activity = Activity::Permission { title: asked.title, kind: asked.kind, answer };
        self.output.tell(Signal::Activity(activity)).await;
        let chosen = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
        RequestPermissionResponse::new(match chosen {
            Some(option) => {
                RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
            }
            // It offers no such answer; this one means no.
            None => RequestPermissionOutcome::Cancelled,
        })
    }

    async fn put_to_a_person(&self, asked: Request) {
        let activity = Activity::Permission { title: asked.title.clone(), kind: asked.kind, answer: "asked" };
        self.output.tell(Signal::Activity(activity)).await;
        let ask = Message::Ask { question: asked.question, options: Request::options() };
        self.output.tell(Signal::Message(ask)).await;
        self.stop.cancelled().await;
    }
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
