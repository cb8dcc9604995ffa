//! What a person asks of a plan: go on, answer, cancel, retry, revert, prompt, take over. Each takes the plan's
//! lock, looks outside, commits once, and lets go.

use std::time::Duration;

use drydock_domain::{
    Advance, Answer, Authority, Changes, Command, Decision, DecisionOption, DecisionStatus, Enforcement,
    Next, OptionEffect, Phase, Plan, PlanId, Progress, Refusal, Remains, Resolution, Stage, State,
    TakeOverCause, admit,
};
use drydock_store::{Request, RequestKind};

use crate::engine::{Engine, WORKER, Who};
use crate::error::EngineError;
use crate::hold::Hold;
use crate::phase::{IntentEnd, intent_end};
use crate::rule::Subject;
use crate::task;

/// How long a cancel waits for the process that runs the plan.
const CANCEL_WAIT: Duration = Duration::from_secs(30);
const CANCEL_POLL: Duration = Duration::from_millis(200);

/// Who asks, and which revision they saw.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Who.
    pub by: String,
    /// From where, e.g. `command line`.
    pub via: String,
    /// In what capacity.
    pub authority: Authority,
    /// The revision that the answer is based on, when the caller says so.
    pub expected: Option<i64>,
}

impl Caller {
    /// Returns the engine itself, which asks for automatic steps and answers nothing.
    pub(crate) fn worker() -> Self {
        let (by, via) = (WORKER.to_owned(), WORKER.to_owned());
        Self { by, via, authority: Authority::Engine, expected: None }
    }
}

impl<'a> From<&'a Caller> for Who<'a> {
    fn from(caller: &'a Caller) -> Self {
        Who { name: &caller.by, via: &caller.via, authority: caller.authority }
    }
}

impl Engine {
    /// Lets a queued Strategize start: a person answers its gate by that. A worker, or `drive`, does the rest.
    pub async fn strategize(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let stored = self.plan_stored(plan).await?;
        match (stored.stage.phase(), stored.stage.state()) {
            // Already running or done: the answer is the plan as it is.
            (Phase::Strategize, State::Processing | State::Complete) => Ok(stored),
            // Asked for by a person, it does not wait for a rate limit.
            (Phase::Strategize, State::Queued) if hurries(&stored, caller) => self.retry(plan, caller).await,
            (Phase::Strategize, _) => {
                let hold = self.hold_at_rest(plan, "strategize").await?;
                let done = async {
                    let stored = self.expected(plan, caller).await?;
                    self.approve_held(&hold, &stored, None, caller).await
                };
                let done = done.await;
                hold.release().await;
                done
            }
            (Phase::Execute | Phase::Apply, state) => {
                let phase = stored.stage.phase();
                Err(Refusal::WrongStage { command: "strategize", phase, state }.into())
            }
        }
    }

    /// Goes on to the next phase; when a person asks, that is the approval.
    pub async fn advance(&self, plan: &PlanId, to: Next, caller: &Caller) -> Result<Plan, EngineError> {
        let hold = self.hold_at_rest(plan, "go on to the next phase").await?;
        let done = self.advance_held(&hold, plan, to, None, caller).await;
        hold.release().await;
        done
    }

    pub(crate) async fn advance_held(
        &self,
        hold: &Hold,
        id: &PlanId,
        to: Next,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(id, caller).await?;
        // The phase was queued before and then held back: asking for it again is the answer to its gate.
        if caller.authority == Authority::Person && plan.gate.is_some() && plan.stage == to.phase().queued() {
            return self.approve_held(hold, &plan, note, caller).await;
        }
        // So it is where the phase waits for a rate limit: a person who asks for it does not want to wait.
        if plan.stage == to.phase().queued() && hurries(&plan, caller) {
            return Ok(self.issue(hold, Command::Retry, caller).await?.plan);
        }
        let ready = matches!(
            (&plan.stage, to),
            (Stage::Strategize(Progress::Reached(_)), Next::Execute)
                | (Stage::Execute(Progress::Reached(_)), Next::Apply)
        );
        // Looking outside is only worth it when the state machine could accept; while the lock is held, and it is
        // renewed until it is released, that cannot change.
        let (enforcement, changes) = if ready {
            self.advance_facts(&plan, to).await?
        } else {
            (Enforcement::nothing(to.phase()), Changes::Something)
        };
        let command = Command::Advance(Advance { to, enforcement, note, changes });
        Ok(self.issue(hold, command, caller).await?.plan)
    }

    /// Lets the queued phase start. What its start would be blocked by blocks this, before the gate is answered (S0.2).
    async fn approve_held(
        &self,
        hold: &Hold,
        plan: &Plan,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let phase = plan.stage.phase();
        let enforcement = match plan.stage.state() {
            State::Queued if phase == Phase::Strategize => {
                let project = self.project(plan.spec.project.as_str()).await?;
                // A subplan begins where its parent says.
                let base = match plan.place {
                    Some(_) => plan.base_commit.clone(),
                    None => self.target_tip(&project, plan.target(&project)).await?,
                };
                self.enforce_start(plan, &project, &base).await?
            }
            _ => Enforcement::nothing(phase),
        };
        Ok(self.issue(hold, Command::Approve { note, enforcement }, caller).await?.plan)
    }

    async fn advance_facts(&self, plan: &Plan, to: Next) -> Result<(Enforcement, Changes), EngineError> {
        let project = self.project(plan.spec.project.as_str()).await?;
        let subject = Subject::of(plan)?;
        let changes = match to {
            Next::Execute => Changes::Something,
            Next::Apply => {
                let (repository, subject) = (self.repository(&project).await?, subject.clone());
                let changed = task::blocking(move || repository.changes(&subject.from, &subject.to)).await?;
                if changed.is_empty() { Changes::Nothing } else { Changes::Something }
            }
        };
        Ok((self.enforce(plan, &project, to.phase(), subject, self.stopping()).await?, changes))
    }

    /// Answers a decision. The same answer again changes nothing; another one is refused, and so is one with a note that the
    /// first had not, since nobody would read it.
    pub async fn resolve(
        &self,
        decision: &Decision,
        option: &str,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<(Decision, Plan), EngineError> {
        let hold = self.hold_at_rest(&decision.plan, "answer a decision").await?;
        let done = self.resolve_held(&hold, decision, option, note, caller).await;
        hold.release().await;
        self.wind_down_after(&done).await;
        let plan = done?;
        let decision = self.decision(decision.id.as_str()).await?;
        Ok((decision, plan))
    }

    /// Refuses an answer that begins on a backup which is gone: recorded, it could never be carried out (S4.7).
    async fn backup_is_there(
        &self,
        plan: &Plan,
        decision: &Decision,
        option: &str,
    ) -> Result<(), EngineError> {
        let details = &decision.question.details;
        let (Some(backup), Some(kept)) = (details["backup_ref"].as_str(), details["backup_commit"].as_str())
        else {
            return Ok(());
        };
        let begins_on_it = |one: &&DecisionOption| match &one.effect {
            OptionEffect::StartFrom { commit, replaces } => commit == kept && replaces.is_some(),
            OptionEffect::Approve
            | OptionEffect::Requeue
            | OptionEffect::Grant { .. }
            | OptionEffect::Review { .. }
            | OptionEffect::WaitUntil(_)
            | OptionEffect::SetBudget { .. }
            | OptionEffect::Join(_)
            | OptionEffect::RetryLost
            | OptionEffect::DropLost
            | OptionEffect::Revert
            | OptionEffect::Cancel => false,
        };
        let needing: Vec<_> =
            decision.question.options.iter().filter(begins_on_it).map(|one| one.id.as_str()).collect();
        if !needing.contains(&option) {
            return Ok(());
        }
        let project = self.project(plan.spec.project.as_str()).await?;
        let (repository, name) = (self.repository(&project).await?, backup.to_owned());
        let found = task::blocking(move || repository.pin_find(&name)).await?;
        if found.is_some_and(|found| found.commit.as_str() == kept) {
            return Ok(());
        }
        let others = decision.question.options.iter().map(|one| one.id.clone());
        Err(EngineError::BackupGone {
            decision: decision.id.clone(),
            option: option.to_owned(),
            backup: backup.to_owned(),
            others: others.filter(|id| !needing.contains(&id.as_str())).collect(),
        })
    }

    async fn resolve_held(
        &self,
        hold: &Hold,
        decision: &Decision,
        option: &str,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(&decision.plan, caller).await?;
        let stored = self.decision(decision.id.as_str()).await?;
        let effect = match &stored.status {
            DecisionStatus::Open => stored
                .question
                .options
                .iter()
                .find(|offered| offered.id == option)
                .map(|it| it.effect.clone()),
            DecisionStatus::Resolved(first) if says_no_more(first, option, note.as_deref()) => {
                return Ok(plan);
            }
            // The state machine refuses it, and that raises the alert.
            DecisionStatus::Resolved(_) | DecisionStatus::Withdrawn { .. } => None,
        };
        match (effect, &plan.stage) {
            (Some(OptionEffect::Approve), Stage::Strategize(Progress::Reached(_))) => {
                self.advance_held(hold, &plan.id, Next::Execute, note, caller).await
            }
            (Some(OptionEffect::Approve), Stage::Execute(Progress::Reached(_))) => {
                self.advance_held(hold, &plan.id, Next::Apply, note, caller).await
            }
            (Some(OptionEffect::Approve), _) => self.approve_held(hold, &plan, note, caller).await,
            (
                Some(
                    OptionEffect::Requeue
                    | OptionEffect::Grant { .. }
                    | OptionEffect::WaitUntil(_)
                    | OptionEffect::SetBudget { .. }
                    | OptionEffect::StartFrom { .. }
                    | OptionEffect::Review { .. }
                    | OptionEffect::Join(_)
                    | OptionEffect::RetryLost
                    | OptionEffect::DropLost
                    | OptionEffect::Revert
                    | OptionEffect::Cancel,
                )
                | None,
                _,
            ) => {
                self.backup_is_there(&plan, &stored, option).await?;
                let answer = Answer { decision: stored.id, option: option.to_owned(), note };
                let plan = self.issue(hold, Command::Resolve(answer), caller).await?.plan;
                self.carry_out(hold, &plan).await;
                Ok(plan)
            }
        }
    }

    /// Tries the failed phase again.
    pub async fn retry(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.steer(plan, caller, Command::Retry).await
    }

    /// Tries a failed Execute again from where the plan's work began.
    pub async fn start_over(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.steer(plan, caller, Command::StartOver).await
    }

    /// Takes the work that a failed Execute left for its result, to be judged.
    pub async fn accept(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.steer(plan, caller, Command::Accept).await
    }

    /// Goes back to Strategize.
    pub async fn revert(&self, plan: &PlanId, reason: String, caller: &Caller) -> Result<Plan, EngineError> {
        self.steer(plan, caller, Command::Revert { reason }).await
    }

    /// Adds guidance for the runs to come.
    pub async fn prompt(&self, plan: &PlanId, text: String, caller: &Caller) -> Result<Plan, EngineError> {
        if text.trim().is_empty() {
            return Err(EngineError::invalid("the guidance is empty", "say what the agent should know"));
        }
        self.steer(plan, caller, Command::Prompt { text }).await
    }

    /// Frees a plan whose worker is gone. While its lock is alive this is a conflict that names the holder.
    pub async fn take_over(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let hold = self.hold_at_rest(plan, "takeover").await?;
        let done = async {
            let stored = self.expected(plan, caller).await?;
            let unknown = Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None));
            admit(&stored, &unknown, caller.authority)?;
            let command = match stored.stage.state() {
                State::Processing => self.taken_over_by_person(&hold, &stored).await,
                _ => unknown,
            };
            self.steer_held(&hold, plan, caller, command).await
        };
        let done = done.await;
        hold.release().await;
        done
    }

    /// Ends a plan. When another process runs it, that process is asked to stop its agent and to record the end.
    pub async fn cancel(&self, plan: &PlanId, reason: String, caller: &Caller) -> Result<Plan, EngineError> {
        let deadline = tokio::time::Instant::now() + CANCEL_WAIT;
        let (by, via, authority) = (caller.by.clone(), caller.via.clone(), caller.authority);
        let request = Request { kind: RequestKind::Cancel, reason: reason.clone(), by, via, authority };
        let mut caller = caller.clone();
        loop {
            let lock = match self.steer(plan, &caller, Command::Cancel { reason: reason.clone() }).await {
                Err(EngineError::LockHeld { lock }) => lock,
                answered => return answered,
            };
            // What the caller saw is compared before anything is asked of the run, which then moves because of it.
            let stored = self.expected(plan, &caller).await?;
            caller.expected = None;
            if stored.stage.state() == State::Cancelled {
                return Ok(stored);
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(EngineError::LockHeld { lock });
            }
            // Put again after a look: a run that began since has swept earlier requests away.
            if self.store().request_fetch(plan).await?.is_none() {
                self.store().request_put(plan, &request).await?;
            }
            tokio::time::sleep(CANCEL_POLL).await;
        }
    }

    async fn steer(&self, plan: &PlanId, caller: &Caller, command: Command) -> Result<Plan, EngineError> {
        let hold = self.hold_at_rest(plan, command.name()).await?;
        let done = self.steer_held(&hold, plan, caller, command).await;
        hold.release().await;
        self.wind_down_after(&done).await;
        done
    }

    async fn steer_held(
        &self,
        hold: &Hold,
        id: &PlanId,
        caller: &Caller,
        command: Command,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(id, caller).await?;
        // Nothing is recorded on the way to a refusal.
        admit(&plan, &command, caller.authority)?;
        // We hold its lock, so whoever ran it is gone and cannot say itself what it used.
        if plan.stage.state() == State::Processing {
            self.recover_usage(hold, &plan).await?;
        }
        let ends =
            matches!(command, Command::Cancel { .. } | Command::CancelBelow { .. } | Command::Revert { .. });
        if ends && plan.intent.is_some() {
            self.forgo_unlanded(hold, &plan, caller).await?;
        }
        Ok(self.issue(hold, command, caller).await?.plan)
    }

    /// Ends what a command left to be ended below its plan, as far as it can be done here.
    pub(crate) async fn wind_down_after(&self, done: &Result<Plan, EngineError>) {
        if let Some(plan) = done.as_ref().ok().filter(|plan| !plan.winding.is_empty()) {
            self.wind_down(plan.id.clone()).await;
        }
    }

    /// Ends a subplan that is held, because nothing needs it any more, by the authority that ended the plan above.
    pub(crate) async fn cancel_held(
        &self,
        hold: &Hold,
        id: &PlanId,
        reason: &str,
        ended_by: Authority,
    ) -> Result<Plan, EngineError> {
        let command = Command::CancelBelow { reason: reason.to_owned(), ended_by };
        self.steer_held(hold, id, &Caller::worker(), command).await
    }

    /// Drops the intent of a landing that is seen not to have happened. One that did happen, or of which the remote does
    /// not say, stays, and the state machine refuses to cancel it away.
    async fn forgo_unlanded(&self, hold: &Hold, plan: &Plan, caller: &Caller) -> Result<(), EngineError> {
        let Some(intent) = plan.intent.clone() else { return Ok(()) };
        let project = self.project(plan.spec.project.as_str()).await?;
        let project_hold = self.hold_project(&project.name, self.stopping()).await?;
        let done = async {
            let repository = self.repository(&project).await?;
            let (of, plan) = (project.clone(), plan.clone());
            match task::blocking(move || intent_end(&repository, &of, &plan, &intent)).await? {
                IntentEnd::NotLanded | IntentEnd::Rewritten => {
                    self.issue_landing(hold, &project_hold, Command::Forgo, caller).await.map(drop)
                }
                IntentEnd::Landed(..) | IntentEnd::Unknown(_) => Ok(()),
            }
        }
        .await;
        project_hold.release().await;
        done
    }

    /// Reads the plan under its lock and compares the revision that the caller saw.
    pub(crate) async fn expected(&self, id: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let plan = self.plan_stored(id).await?;
        match caller.expected {
            Some(expected) if expected != plan.revision => {
                Err(EngineError::StaleRevision { expected, found: plan.revision })
            }
            Some(_) | None => Ok(plan),
        }
    }
}

/// Says whether an answer has nothing that the first one had not.
fn says_no_more(first: &Resolution, option: &str, note: Option<&str>) -> bool {
    let note = note.map(str::trim).filter(|note| !note.is_empty());
    first.option == option && (note.is_none() || note == first.note.as_deref().map(str::trim))
}

/// Says whether asking for the queued phase of this plan ends its wait.
fn hurries(plan: &Plan, caller: &Caller) -> bool {
    caller.authority == Authority::Person && plan.gate.is_none() && plan.waits().is_some()
}
