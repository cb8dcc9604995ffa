//! Commands of a person on a plan: continue, answer, cancel, retry, revert, prompt, take over. Each one takes
//! the plan's lock, reads the outside facts, commits once, and releases the lock.

use std::time::Duration;

use drydock_domain::{
    Advance, Answer, Authority, Changes, Command, Decision, DecisionOption, DecisionStatus, Enforcement,
    NextPhase, OptionEffect, Phase, Plan, PlanId, Progress, Refusal, Remains, Resolution, Stage, State,
    TakeOverCause, admit,
};
use drydock_store::{HolderRequest, RequestKind};

use crate::engine::{Actor, Engine, WORKER};
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::phase::{IntentEnd, intent_end};
use crate::rule::CommitRange;
use crate::task;

/// How long a cancel waits for the process that runs the plan.
const CANCEL_WAIT: Duration = Duration::from_secs(30);
const CANCEL_POLL: Duration = Duration::from_millis(200);

/// The caller of a command, and the revision that the caller saw.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the caller.
    pub by: String,
    /// The channel, e.g. `command line`.
    pub via: String,
    /// The caller's authority.
    pub authority: Authority,
    /// The revision that the command is based on, if the caller sent one.
    pub expected: Option<i64>,
}

impl Caller {
    /// Returns the engine as the caller. It issues automatic steps and never answers a decision.
    pub(crate) fn worker() -> Self {
        let (by, via) = (WORKER.to_owned(), WORKER.to_owned());
        Self { by, via, authority: Authority::Engine, expected: None }
    }
}

impl<'a> From<&'a Caller> for Actor<'a> {
    fn from(caller: &'a Caller) -> Self {
        Actor { name: &caller.by, via: &caller.via, authority: caller.authority }
    }
}

impl Engine {
    /// Lets a queued Strategize start; for a person, this is the answer to its gate. A worker, or `drive`,
    /// runs the phase.
    pub async fn strategize(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let stored = self.load_plan(plan).await?;
        match (stored.stage.phase(), stored.stage.state()) {
            // Strategize is already running or complete: return the plan as it is.
            (Phase::Strategize, State::Processing | State::Complete) => Ok(stored),
            // A person's request does not wait for a rate limit.
            (Phase::Strategize, State::Queued) if hurries(&stored, caller) => self.retry(plan, caller).await,
            (Phase::Strategize, _) => {
                let hold = self.lock_idle_plan(plan, "strategize").await?;
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

    /// Advances to the next phase; a person's request is also the approval.
    pub async fn advance(&self, plan: &PlanId, to: NextPhase, caller: &Caller) -> Result<Plan, EngineError> {
        let hold = self.lock_idle_plan(plan, "start the next phase").await?;
        let done = self.advance_held(&hold, plan, to, None, caller).await;
        hold.release().await;
        done
    }

    pub(crate) async fn advance_held(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        to: NextPhase,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(id, caller).await?;
        // The phase was queued and then held at its gate, so a second request is the answer to the gate.
        if caller.authority == Authority::Person && plan.gate.is_some() && plan.stage == to.phase().queued() {
            return self.approve_held(hold, &plan, note, caller).await;
        }
        // The same applies to a phase that waits for a rate limit: a person's request ends the wait.
        if plan.stage == to.phase().queued() && hurries(&plan, caller) {
            return Ok(self.issue(hold, Command::Retry, caller).await?.plan);
        }
        let ready = matches!(
            (&plan.stage, to),
            (Stage::Strategize(Progress::Reached(_)), NextPhase::Execute)
                | (Stage::Execute(Progress::Reached(_)), NextPhase::Apply)
        );
        // Reading the outside facts only pays off if the state machine could accept the command. The lock is
        // renewed until it is released, so that cannot change in between.
        let (enforcement, changes) = if ready {
            self.advance_facts(&plan, to).await?
        } else {
            (Enforcement::nothing(to.phase()), Changes::Something)
        };
        let command = Command::Advance(Advance { to, enforcement, note, changes });
        Ok(self.issue(hold, command, caller).await?.plan)
    }

    /// Lets the queued phase start. The rules that would block its start block this command, before the gate
    /// is answered (S0.2).
    async fn approve_held(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<Plan, EngineError> {
        let phase = plan.stage.phase();
        let enforcement = match plan.stage.state() {
            State::Queued if phase == Phase::Strategize => {
                let project = self.project(plan.spec.project.as_str()).await?;
                // A subplan starts from the commit that its parent sets.
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

    async fn advance_facts(&self, plan: &Plan, to: NextPhase) -> Result<(Enforcement, Changes), EngineError> {
        let project = self.project(plan.spec.project.as_str()).await?;
        let subject = CommitRange::of(plan)?;
        let changes = match to {
            NextPhase::Execute => Changes::Something,
            NextPhase::Apply => {
                let (repository, subject) = (self.repository(&project).await?, subject.clone());
                let changed = task::blocking(move || repository.changes(&subject.from, &subject.to)).await?;
                if changed.is_empty() { Changes::Nothing } else { Changes::Something }
            }
        };
        Ok((self.enforce(plan, &project, to.phase(), subject, self.stopping()).await?, changes))
    }

    /// Answers a decision. The same answer again changes nothing. Another answer is refused, and so is the
    /// same one with a different note, because no run would read that note.
    pub async fn resolve(
        &self,
        decision: &Decision,
        option: &str,
        note: Option<String>,
        caller: &Caller,
    ) -> Result<(Decision, Plan), EngineError> {
        let hold = self.lock_idle_plan(&decision.plan, "answer a decision").await?;
        let done = self.resolve_held(&hold, decision, option, note, caller).await;
        hold.release().await;
        self.wind_down_after(&done).await;
        let plan = done?;
        let decision = self.decision(decision.id.as_str()).await?;
        Ok((decision, plan))
    }

    /// Refuses an answer that starts from a deleted backup: once recorded, it could never be carried out
    /// (S4.7).
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
        let found = task::blocking(move || repository.backup_find(&name)).await?;
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
        hold: &PlanLockGuard,
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
            // The state machine refuses the command, and the refusal raises the alert.
            DecisionStatus::Resolved(_) | DecisionStatus::Withdrawn { .. } => None,
        };
        match (effect, &plan.stage) {
            (Some(OptionEffect::Approve), Stage::Strategize(Progress::Reached(_))) => {
                self.advance_held(hold, &plan.id, NextPhase::Execute, note, caller).await
            }
            (Some(OptionEffect::Approve), Stage::Execute(Progress::Reached(_))) => {
                self.advance_held(hold, &plan.id, NextPhase::Apply, note, caller).await
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
                self.move_branch_for_answer(hold, &plan).await;
                Ok(plan)
            }
        }
    }

    /// Retries the failed phase.
    pub async fn retry(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.run_command(plan, caller, Command::Retry).await
    }

    /// Retries a failed Execute from the commit at which the plan's work started.
    pub async fn start_over(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.run_command(plan, caller, Command::StartOver).await
    }

    /// Accepts the work of a failed Execute as its result, which is then validated.
    pub async fn accept(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        self.run_command(plan, caller, Command::Accept).await
    }

    /// Reverts to Strategize.
    pub async fn revert(&self, plan: &PlanId, reason: String, caller: &Caller) -> Result<Plan, EngineError> {
        self.run_command(plan, caller, Command::Revert { reason }).await
    }

    /// Adds guidance for the next runs.
    pub async fn prompt(&self, plan: &PlanId, text: String, caller: &Caller) -> Result<Plan, EngineError> {
        if text.trim().is_empty() {
            return Err(EngineError::invalid("the guidance is empty", "write a sentence for the agent"));
        }
        self.run_command(plan, caller, Command::Prompt { text }).await
    }

    /// Takes a plan over from a worker that is gone. While the lock is alive, returns a conflict that names
    /// the holder.
    pub async fn take_over(&self, plan: &PlanId, caller: &Caller) -> Result<Plan, EngineError> {
        let hold = self.lock_idle_plan(plan, "takeover").await?;
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

    /// Cancels a plan. If another process runs it, asks that process to stop its agent and to record the
    /// cancellation.
    pub async fn cancel(&self, plan: &PlanId, reason: String, caller: &Caller) -> Result<Plan, EngineError> {
        let deadline = tokio::time::Instant::now() + CANCEL_WAIT;
        let (by, via, authority) = (caller.by.clone(), caller.via.clone(), caller.authority);
        let request = HolderRequest { kind: RequestKind::Cancel, reason: reason.clone(), by, via, authority };
        let mut caller = caller.clone();
        loop {
            let lock = match self.run_command(plan, &caller, Command::Cancel { reason: reason.clone() }).await
            {
                Err(EngineError::LockHeld { lock }) => lock,
                answered => return answered,
            };
            // The caller's revision is compared before the run is asked to stop, because the run then changes
            // the revision.
            let stored = self.expected(plan, &caller).await?;
            caller.expected = None;
            if stored.stage.state() == State::Cancelled {
                return Ok(stored);
            }
            if tokio::time::Instant::now() >= deadline {
                return Err(EngineError::LockHeld { lock });
            }
            // Checked and stored again in each round: a run that started since has removed earlier requests.
            if self.store().request_fetch(plan).await?.is_none() {
                self.store().request_put(plan, &request).await?;
            }
            tokio::time::sleep(CANCEL_POLL).await;
        }
    }

    async fn run_command(
        &self,
        plan: &PlanId,
        caller: &Caller,
        command: Command,
    ) -> Result<Plan, EngineError> {
        let hold = self.lock_idle_plan(plan, command.name()).await?;
        let done = self.steer_held(&hold, plan, caller, command).await;
        hold.release().await;
        self.wind_down_after(&done).await;
        done
    }

    async fn steer_held(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        caller: &Caller,
        command: Command,
    ) -> Result<Plan, EngineError> {
        let plan = self.expected(id, caller).await?;
        // A refused command must not record anything.
        admit(&plan, &command, caller.authority)?;
        // We hold its lock, so the process that ran it is gone and cannot report its usage.
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

    /// Cancels the subplans that a command marked for cancellation, as far as this process can.
    pub(crate) async fn wind_down_after(&self, done: &Result<Plan, EngineError>) {
        if let Some(plan) = done.as_ref().ok().filter(|plan| !plan.winding.is_empty()) {
            self.wind_down(plan.id.clone()).await;
        }
    }

    /// Cancels a locked child that is no longer needed, by the authority that ended its parent.
    pub(crate) async fn cancel_held(
        &self,
        hold: &PlanLockGuard,
        id: &PlanId,
        reason: &str,
        ended_by: Authority,
    ) -> Result<Plan, EngineError> {
        let command = Command::CancelBelow { reason: reason.to_owned(), ended_by };
        self.steer_held(hold, id, &Caller::worker(), command).await
    }

    /// Drops the intent of a landing that provably did not happen. If the landing happened, or the remote
    /// does not show whether it did, the intent stays, and the state machine refuses to cancel the plan.
    async fn forgo_unlanded(
        &self,
        hold: &PlanLockGuard,
        plan: &Plan,
        caller: &Caller,
    ) -> Result<(), EngineError> {
        let Some(intent) = plan.intent.clone() else { return Ok(()) };
        let project = self.project(plan.spec.project.as_str()).await?;
        let project_hold = self.lock_project(&project.name, self.stopping()).await?;
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
        let plan = self.load_plan(id).await?;
        match caller.expected {
            Some(expected) if expected != plan.revision => {
                Err(EngineError::StaleRevision { expected, found: plan.revision })
            }
            Some(_) | None => Ok(plan),
        }
    }
}

/// Returns true if an answer adds nothing to the first one.
fn says_no_more(first: &Resolution, option: &str, note: Option<&str>) -> bool {
    let note = note.map(str::trim).filter(|note| !note.is_empty());
    first.option == option && (note.is_none() || note == first.note.as_deref().map(str::trim))
}

/// Returns true if the caller's request for the queued phase ends its postponement.
fn hurries(plan: &Plan, caller: &Caller) -> bool {
    caller.authority == Authority::Person && plan.gate.is_none() && plan.waits().is_some()
}
