//! Lands at the project's remote: announces the intent, records it, pushes, and updates the local branch.
//! `applied` is recorded only when the remote has the commit.

use drydock_domain::{Command, Delay, Event, Intent, LandingProof, RemoteAway, error_chain};
use drydock_worktree::{CommitId, Followed, IntentPushed, RemoteLanded, RemoteLanding, RemoteTip};

use super::apply::{ApplyRun, Attempt, Merged};
use super::ground::{away, one_line};
use super::scope::{RunOutcome, commit_id};
use super::settle::{INTENTS, intent_name};
use crate::engine::WORKER;
use crate::error::EngineError;

impl ApplyRun<'_> {
    /// Lands a merged result at the remote. Not interruptible between the intent and its end.
    pub(super) async fn land_there(&self, remote: &str, merged: Merged) -> Result<Attempt, EngineError> {
        let scope = self.scope;
        let (plan, run, to) = (scope.plan.id.clone(), scope.run.clone(), merged.commit.clone());
        let (name, kept) = (intent_name(&plan, &run), to.clone());
        scope.git(move |repository| repository.ref_create(&name, &kept)).await?;
        let (at, commit) = (remote.to_owned(), to.clone());
        let announced = scope
            .git(move |repository| repository.intent_push(&at, plan.as_str(), run.as_str(), &commit))
            .await?;
        let announced = match announced {
            IntentPushed::As(name) => Some(name),
            IntentPushed::Refused => None,
            IntentPushed::Away { reason } => {
                self.revoke().await?;
                return Ok(Attempt::Ended(self.wait_for(away(remote, &reason))));
            }
        };
        let intent = Intent {
            target: self.target().to_owned(),
            from: merged.ground.from.to_string(),
            to: to.to_string(),
            remote: Some(remote.to_owned()),
            creates: merged.ground.creates,
        };
        let intend = Command::Intend(scope.run.clone(), intent);
        scope.engine.issue_landing(scope.hold, self.project, intend, WORKER).await?;
        match self.push(remote, &merged, announced).await? {
            RemoteLanded::Moved => self.published(remote, &to).await.map(Attempt::Ended),
            RemoteLanded::Refused { text } => {
                self.forgo_there(remote).await?;
                let text = format!("{remote} refused {}: {}", self.target(), one_line(&text));
                Ok(Attempt::Ended(self.constrained(vec![text])))
            }
            RemoteLanded::Again { text } => self.look_again(remote, &to, text).await,
            // Whether the target moved is known only when the remote answers. Until then the intent stays.
            RemoteLanded::Away { reason } => Ok(Attempt::Ended(self.wait_for(away(remote, &reason)))),
        }
    }

    async fn push(
        &self,
        remote: &str,
        merged: &Merged,
        intent: Option<String>,
    ) -> Result<RemoteLanded, EngineError> {
        let (remote, branch, merged) = (remote.to_owned(), self.target().to_owned(), merged.clone());
        let plan = &self.scope.plan;
        let (work, head) =
            (plan.branch(), commit_id(plan.head_commit.as_deref().unwrap_or(&plan.base_commit))?);
        self.scope
            .git(move |repository| {
                let from = Some(&merged.ground.from).filter(|_| !merged.ground.creates);
                // Removing the plan's branch is optional, so an error here does not stop the landing.
                let sent = repository.sent_branch(&remote, &work, &head).ok().flatten();
                let (to, intent) = (&merged.commit, intent.as_deref());
                let (remote, branch, removes) = (&remote, &branch, sent.as_ref());
                repository.land_remote(&RemoteLanding { remote, branch, from, to, intent, removes })
            })
            .await
    }

    /// Reads the target again after a push that failed because something moved.
    async fn look_again(&self, remote: &str, to: &CommitId, text: String) -> Result<Attempt, EngineError> {
        let (at, branch, commit) = (remote.to_owned(), self.target().to_owned(), to.clone());
        let looked = self.scope.git(move |repository| match repository.remote_tip(&at, &branch)? {
            RemoteTip::At(tip) => Ok(Ok(repository.descends(&tip, &commit)?)),
            RemoteTip::Absent => Ok(Ok(false)),
            RemoteTip::Away { reason } => Ok(Err(reason)),
        });
        match looked.await? {
            Ok(true) => self.published(remote, to).await.map(Attempt::Ended),
            Ok(false) => {
                self.forgo_there(remote).await?;
                Ok(Attempt::TargetMoved(one_line(&text)))
            }
            Err(reason) => Ok(Attempt::Ended(self.wait_for(away(remote, &reason)))),
        }
    }

    /// Records that the remote has the commit.
    pub(super) async fn published(&self, remote: &str, commit: &CommitId) -> Result<RunOutcome, EngineError> {
        let (target, remote, at) = (self.target().to_owned(), remote.to_owned(), commit.to_string());
        self.scope.emit(Event::TargetSent { target, remote, commit: at }).await?;
        self.landed(commit, LandingProof::Intended).await
    }

    /// Deletes the intents of a run that announced a landing and died before recording it. Nothing can land
    /// under such an intent, but nothing else would delete it. The remote is contacted only if the local ref
    /// of the intent exists.
    pub(super) async fn sweep_intents(&self) -> Result<(), EngineError> {
        let Some(remote) = self.scope.project.remote.clone() else { return Ok(()) };
        let plan = self.scope.plan.id.to_string();
        let left = format!("{INTENTS}{plan}/");
        let swept = self.scope.git(move |repository| {
            if repository.refs(&left)?.is_empty() {
                return Ok(false);
            }
            repository.intents_revoke(&remote, &plan).map(|_| true)
        });
        if swept.await? { self.revoke().await } else { Ok(()) }
    }

    /// Abandons a landing after the remote has answered its push.
    async fn forgo_there(&self, remote: &str) -> Result<(), EngineError> {
        let (at, plan) = (remote.to_owned(), self.scope.plan.id.to_string());
        // The push has ended, so nothing can land under an intent that stays.
        let revoked = self.scope.git(move |repository| repository.intents_revoke(&at, &plan)).await;
        if let Err(error) = revoked {
            tracing::warn!(plan = %self.scope.plan.id, error = %error_chain(&error), "could not delete an intent at the remote");
        }
        self.revoke().await?;
        self.scope.engine.issue_landing(self.scope.hold, self.project, Command::Forgo, WORKER).await?;
        Ok(())
    }

    /// Moves the local branch to the remote's commit. Returns a warning for people if that is not possible.
    pub(super) async fn follow(
        &self,
        remote: &str,
        commit: &CommitId,
    ) -> Result<Option<String>, EngineError> {
        let scope = self.scope;
        let (name, branch, to) =
            (intent_name(&scope.plan.id, &scope.run), self.target().to_owned(), commit.clone());
        let followed = scope.git(move |repository| {
            repository.ref_create(&name, &to)?;
            repository.follow(&branch, &to, &name)
        });
        let target = self.target();
        let pull = format!("git pull --ff-only {remote} {target}");
        let why = match followed.await {
            Ok(Followed::Done) => return Ok(None),
            Ok(Followed::Revoked) => {
                return Err(EngineError::LeaseLost { key: scope.plan.id.to_string() });
            }
            Ok(Followed::Diverged) => {
                format!("it has commits that {remote} does not have; `git pull --rebase {remote} {target}`")
            }
            Ok(Followed::Dirty(paths)) => {
                let paths = paths.join(", ");
                format!(
                    "uncommitted changes would be overwritten ({paths}); commit or stash them, then \
                         `{pull}`"
                )
            }
            Ok(Followed::Occupied(operation)) => format!("{operation}; when that is finished, `{pull}`"),
            Err(EngineError::Git(error)) => format!("{}; `{pull}`", error_chain(&error)),
            Err(error) => return Err(error),
        };
        Ok(Some(format!(
            "the plan landed at {remote}, but the local {target} is behind: {why} brings it up to date"
        )))
    }

    /// Postpones the landing until the remote answers. Both locks are released meanwhile.
    pub(super) fn wait_for(&self, away: RemoteAway) -> RunOutcome {
        let delay = Delay::remote(&self.scope.plan, away);
        RunOutcome::Report(Box::new(Command::Postpone(self.scope.run.clone(), delay)))
    }
}
