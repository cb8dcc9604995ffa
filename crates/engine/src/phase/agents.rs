//! Runs an agent in a worktree: builds its task, restarts it, and turns its ending into the end of the run.
//! `listen` handles its output and messages while it runs.

use std::path::Path;
use std::time::Duration;

use drydock_agent::{
    AgentSpec, AgentTask, EarlierSession, Ending, Permitted, Proposal, RunDirs, SessionUsage, StartError,
    VerdictKind,
};
use drydock_domain::{
    Choice, Command, ErrorClass, Event, Grant, GrantAnswer, GrantScope, GrantTerms, Invariant, Question,
    Rule, StoredEvent, error_chain,
};
use drydock_worktree::{Checkout, TreeId};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::mpsc;
use tracing::Instrument;

use super::ended::{AgentOutcome, described};
use super::listen::{AgentListener, AgentReport};
use super::scope::{RunContext, RunOutcome, kept_by, signature, write_checkpoint};
use crate::error::EngineError;
use crate::rule::effective_for;
use crate::tree::SubplanDraft;
use crate::{task, trace};

/// Maximum number of signals that wait to be handled. Beyond that the agent is slowed down.
const SIGNALS_MAX: usize = 256;

/// Number of a plan's newest events that are searched for the session of an earlier run.
const SESSION_EVENTS_MAX: i64 = 3_000;

/// Label of the checkpoint of an agent that asked a question.
const BEFORE_QUESTION: &str = "work before the question";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AgentRole {
    Strategist,
    Writer,
    Reviewer,
}

impl AgentRole {
    fn name(self) -> &'static str {
        match self {
            AgentRole::Strategist => "strategist",
            AgentRole::Writer => "writer",
            AgentRole::Reviewer => "reviewer",
        }
    }
}

/// The assignment of an agent.
#[derive(Clone, Copy)]
pub(super) struct AgentAssignment<'a> {
    pub(super) name: &'a str,
    pub(super) role: AgentRole,
    pub(super) checkout: &'a Checkout,
    /// Feedback on its work from earlier in this run.
    pub(super) said: &'a [String],
    /// The proposal to review: its number and commit.
    pub(super) proposal: Option<(usize, &'a str)>,
}

impl<'a> AgentAssignment<'a> {
    pub(super) fn of(name: &'a str, role: AgentRole, checkout: &'a Checkout) -> Self {
        Self { name, role, checkout, said: &[], proposal: None }
    }
}

#[derive(Debug, Clone)]
pub(super) struct ReviewerVerdict {
    pub(super) opinion: VerdictKind,
    pub(super) version: Option<String>,
    pub(super) reason: Option<String>,
}

pub(super) enum AgentEnd {
    /// The agent finished its work, with these choices, and with a verdict if it is a reviewer. `carried` are
    /// the subplans that earlier runs reported and this run did not.
    Finished {
        choices: Vec<Choice>,
        carried: Vec<SubplanDraft>,
        subplans: Vec<SubplanDraft>,
        verdict: Option<ReviewerVerdict>,
    },
    /// The run has ended.
    Ended(RunOutcome),
}

impl RunContext<'_> {
    /// Runs an agent to its end. Its work is kept regardless of how it ended.
    pub(super) async fn agent(&self, errand: &AgentAssignment<'_>) -> Result<AgentEnd, EngineError> {
        let AgentAssignment { name, role, checkout, .. } = *errand;
        let Some(spec) = self.engine.settings().agents.get(name).cloned() else {
            let text = format!("there is no agent {name:?} in the configuration");
            return Ok(AgentEnd::Ended(self.failed(ErrorClass::AgentMissing, text)));
        };
        // The budget was checked before the run, but earlier agents of this run may have used it up since.
        if self.is_exhausted() {
            return Ok(AgentEnd::Ended(self.exhausted(errand).await?));
        }
        let author = self.git(|repository| Ok(signature(&repository))).await?;
        let spec = spec.as_author(&author.name, &author.email);
        // A subplan may have a shorter time limit than its agent usually has.
        let spec = match self.plan.place.as_ref().and_then(|place| place.timeout_s).map(Duration::from_secs) {
            Some(limit) if limit < spec.timeout() => spec.with_timeout(limit),
            Some(_) | None => spec,
        };
        let spec = self.with_pass(spec).await;
        let invariants = effective_for(self.engine, &self.plan).await?;
        let carried = self.carried(role).await?;
        let job = self.agent_task(errand, &invariants, &carried.choices);
        let runner = self.engine.runner_for(&self.plan);
        let sandbox = runner.confinement(&spec);
        let details = json!({ "agent": name, "role": role.name(), "sandbox": sandbox });
        self.emit(Event::Agent { what: "started", details }).await?;
        let mut listener = AgentListener::new(self, errand, carried);
        let mut restarts = 0;
        let ending = loop {
            let (signals, heard) = mpsc::channel(SIGNALS_MAX);
            let stop = self.stop.child_token();
            let job = AgentTask { session: self.earlier_session(errand, &spec).await?, ..job.clone() };
            let running = runner.agent(&spec, &job, &self.dirs(checkout.path()), signals, stop.clone());
            let running = running.instrument(trace::agent(name, role.name()));
            let (ending, listened) = tokio::join!(running, async {
                let listened = listener.listen(heard, &stop).await;
                if listened.is_err() {
                    stop.cancel();
                }
                listened
            });
            listened?;
            let pause = spec.restart_pause(restarts, &ending).filter(|_| !listener.has_ended());
            let Some(pause) = pause else { break ending };
            restarts += 1;
            self.restarting(name, restarts, &ending, pause).await?;
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = self.stop.cancelled() => break Ok(Ending::Stopped),
            }
        };
        self.agent_ended(errand, ending, listener.heard()).await
    }

    /// Finds the session in which the same agent worked on the same phase of this plan before. Reviewers
    /// always start a new session, so that they judge independently.
    async fn earlier_session(
        &self,
        errand: &AgentAssignment<'_>,
        spec: &AgentSpec,
    ) -> Result<Option<EarlierSession>, EngineError> {
        if errand.role == AgentRole::Reviewer || spec.protocol() != "acp" {
            return Ok(None);
        }
        let phase = self.plan.stage.phase().name();
        let recent = self.engine.store().event_recent(&self.plan.id, SESSION_EVENTS_MAX).await?;
        let same = |event: &&StoredEvent| {
            event.kind == "agent.session"
                && event.details["agent"] == errand.name
                && event.details["phase"] == phase
        };
        let session = recent.iter().find(same).and_then(|event| event.details["session"].as_str());
        Ok(session.map(|id| {
            let told = recent.iter().find_map(|event| told_of_session(event, errand.name, id));
            EarlierSession { id: id.to_owned(), told: told.unwrap_or_default() }
        }))
    }

    /// Emits that an agent is restarted in the worktree as it left it.
    async fn restarting(
        &self,
        name: &str,
        restart: u32,
        ending: &Result<Ending, StartError>,
        pause: Duration,
    ) -> Result<(), EngineError> {
        let how = described(ending);
        let details = json!({ "agent": name, "how": how, "restart": restart, "pause_s": pause.as_secs() });
        self.emit(Event::Agent { what: "restarted", details }).await
    }

    /// Returns the directories of an agent or command of this run.
    pub(super) fn dirs(&self, tree: &Path) -> RunDirs {
        // Git in the worktree must read the repository. Nothing there can be written.
        let reads = vec![self.repository.common_dir().to_owned()];
        RunDirs { worktree: tree.to_owned(), temp: self.temp(), reads }
    }

    fn agent_task(
        &self,
        errand: &AgentAssignment<'_>,
        invariants: &[Invariant],
        carried: &[Choice],
    ) -> AgentTask {
        let plan = &self.plan;
        // A reviewer judges the result independently of an interruption.
        let interrupted = plan.interruption.as_ref().filter(|_| errand.role != AgentRole::Reviewer);
        let interrupted = interrupted.map(|one| one.feedback(plan));
        AgentTask {
            plan: plan.id.to_string(),
            run: self.run.to_string(),
            phase: plan.stage.phase().to_string(),
            role: errand.role.name().to_owned(),
            task: plan.spec.task.clone(),
            definition_of_done: plan.spec.definition_of_done.clone(),
            arguments: plan.spec.arguments.clone(),
            invariants: invariants.iter().map(describe).collect(),
            choices: plan.choices.iter().chain(carried).map(|choice| json!(choice)).collect(),
            feedback: plan.feedback.iter().chain(errand.said).cloned().chain(interrupted).collect(),
            worktree: errand.checkout.path().to_string_lossy().into_owned(),
            base: plan.base_commit.clone(),
            session: None,
            permitted: self.permits.clone(),
            proposal: errand
                .proposal
                .map(|(version, commit)| Proposal { version, commit: commit.to_owned() }),
        }
    }

    async fn agent_ended(
        &self,
        errand: &AgentAssignment<'_>,
        ending: Result<Ending, StartError>,
        heard: AgentReport,
    ) -> Result<AgentEnd, EngineError> {
        let name = errand.name;
        let AgentReport { choices, carried, subplans, mistake, verdict, question, limited, exhausted } =
            heard;
        let how = described(&ending);
        let stopped_for_budget =
            exhausted && matches!(ending, Ok(Ending::Stopped)) && !self.stop.is_cancelled();
        let outcome = match (stopped_for_budget, limited) {
            (true, _) => Some(AgentOutcome::Budget),
            (false, Some(_)) => Some(AgentOutcome::RateLimited),
            (false, None) => AgentOutcome::of(&ending),
        };
        // The end of a writer is emitted after its work is captured, because the capture shows whether it
        // changed anything.
        if outcome != Some(AgentOutcome::Done) || errand.role != AgentRole::Writer || question.is_some() {
            self.emit_ended(name, &how, outcome).await?;
        }
        // A subplan that could not be read would be missing from a strategy that looks complete.
        let over = matches!(ending, Ok(Ending::Finished | Ending::Stopped | Ending::RateLimited { .. }));
        if let Some(text) = mistake.filter(|_| over && !self.stop.is_cancelled()) {
            return Ok(AgentEnd::Ended(self.failed(ErrorClass::StrategyInvalid, text)));
        }
        if let Some(question) = question {
            return Ok(AgentEnd::Ended(self.asked(errand, question).await?));
        }
        let limited = limited.or(match &ending {
            Ok(Ending::RateLimited { resets }) => Some(*resets),
            _ => None,
        });
        if let Some(resets) = limited {
            return Ok(AgentEnd::Ended(self.postponed(errand, resets).await?));
        }
        // An agent that finished although the budget is used up counts as finished. No further agent is
        // started.
        if stopped_for_budget {
            return Ok(AgentEnd::Ended(self.exhausted(errand).await?));
        }
        let failed = |class, text: String| Ok(AgentEnd::Ended(self.failed(class, text)));
        let said = |tail: &str| if tail.is_empty() { String::new() } else { format!("; it said:\n{tail}") };
        match ending {
            Ok(Ending::Finished) => Ok(AgentEnd::Finished { choices, carried, subplans, verdict }),
            Ok(Ending::Stopped | Ending::RateLimited { .. }) => Ok(AgentEnd::Ended(RunOutcome::Stopped)),
            Ok(
                Ending::Failed { tail, .. }
                | Ending::Killed { tail, .. }
                | Ending::LimitExceeded { tail, .. }
                | Ending::Stalled { tail, .. }
                | Ending::ModelFailed { tail, .. }
                | Ending::Unfinished { tail, .. },
            ) => {
                let class = outcome.map_or(ErrorClass::AgentFailed, AgentOutcome::class);
                failed(class, format!("agent {name} {how}{}", said(&tail)))
            }
            Ok(Ending::TimedOut { tail, .. }) => {
                failed(ErrorClass::AgentTimedOut, format!("agent {name} {how}{}", said(&tail)))
            }
            Ok(Ending::OutputExceeded { .. }) => {
                failed(ErrorClass::AgentFailed, format!("agent {name} {how}"))
            }
            Err(error) => failed(
                ErrorClass::AgentMissing,
                format!("agent {name}: {}; {}", error_chain(&error), error.hint()),
            ),
        }
    }

    /// Checkpoints the work so far, and returns the end of a run whose agent asked a question. The next run
    /// continues from the checkpoint; a strategist starts again without it.
    async fn asked(
        &self,
        errand: &AgentAssignment<'_>,
        question: Question,
    ) -> Result<RunOutcome, EngineError> {
        let question = match self.work_or_alert(errand, BEFORE_QUESTION).await? {
            Some(work) => question.going_on_with(&work, &self.plan),
            None => question,
        };
        // The next run does not continue from files of other roles, but they are checkpointed too.
        if errand.role != AgentRole::Writer
            && let Err(error) = self.keep(errand.checkout, BEFORE_QUESTION).await
        {
            self.unkept(error).await?;
        }
        Ok(RunOutcome::Report(Box::new(Command::Ask(self.run.clone(), question))))
    }

    /// Checkpoints the worktree if it differs from `seen`, and updates `seen`.
    pub(super) async fn keep_change(
        &self,
        checkout: &Checkout,
        label: &str,
        seen: &mut Option<TreeId>,
    ) -> Result<Option<String>, EngineError> {
        let (checkout, from, plan) = (checkout.clone(), self.from()?, self.plan.id.clone());
        let (repository, label) =
            (self.repository.clone(), kept_by(self.run.as_str(), label, self.plan.id.as_str()));
        let before = seen.clone();
        let (tree, kept) = task::blocking(move || -> Result<_, EngineError> {
            let before = before.map_or_else(|| repository.tree_of(&from), Ok)?;
            let captured = checkout.capture(&from, &label, &signature(&repository))?;
            if captured.tree == before {
                return Ok((captured.tree, None));
            }
            let kept = write_checkpoint(&repository, plan.as_str(), &captured)?;
            Ok((captured.tree, Some(kept)))
        })
        .await?;
        *seen = Some(tree);
        Ok(kept)
    }

    /// Checkpoints the worktree and returns the ref.
    pub(super) async fn keep(&self, checkout: &Checkout, label: &str) -> Result<String, EngineError> {
        let (checkout, from, plan) = (checkout.clone(), self.from()?, self.plan.id.clone());
        let (repository, label) =
            (self.repository.clone(), kept_by(self.run.as_str(), label, self.plan.id.as_str()));
        task::blocking(move || {
            let captured = checkout.capture(&from, &label, &signature(&repository))?;
            write_checkpoint(&repository, plan.as_str(), &captured)
        })
        .await
    }
}

/// Returns the usage of a session that an event reports: when the session was opened, or as usage so far.
fn told_of_session(event: &StoredEvent, agent: &str, session: &str) -> Option<SessionUsage> {
    let details = &event.details;
    let told = match event.kind.as_str() {
        "agent.session" if details["session"] == session => &details["told"],
        "agent.usage" if details["session"]["id"] == session => &details["session"],
        _ => return None,
    };
    // A new session reports no usage: it has used nothing yet.
    (details["agent"] == agent).then(|| SessionUsage::deserialize(told).unwrap_or_default())
}

fn describe(invariant: &Invariant) -> String {
    let name = &invariant.name;
    match &invariant.rule {
        Rule::Cel(source) => format!("{name}: {source}"),
        Rule::Command(command) => format!("{name}: `{command}` must succeed"),
        Rule::Text(text) => format!("{name}: {text}"),
    }
}

/// Converts a person's grant into the form that the agent's runner uses.
pub(super) fn permitted(grant: &Grant) -> Permitted {
    let GrantTerms { tool, matches, answer, scope } = grant.terms.clone();
    Permitted { tool, matches, allowed: answer == GrantAnswer::Allow, once: scope == GrantScope::Once }
}
