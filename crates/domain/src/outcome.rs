//! The result of `decide`: a transition that is committed as a whole, or the fact that nothing needs to
//! change.

use crate::decide::ask_about;
use crate::event::Event;
use crate::stage::Common;
use crate::{
    Authority, Complete, Context, Decision, DecisionChange, DecisionStatus, Effect, Plan, PlanId, Question,
    Resolution, Stage, State, StoredPlan, SyncOutcome, Turn, next_effect,
};

/// The result of an accepted command.
#[must_use = "a decision changes nothing until it is committed"]
#[derive(Debug, PartialEq)]
pub enum Decided {
    /// The plan changes.
    Change(Box<Transition>),
    /// The command has already taken effect; nothing changes.
    Already,
}

/// Everything that an accepted command writes. Only `decide` and `create` build one.
#[must_use = "a transition changes nothing until it is committed"]
#[derive(Debug, PartialEq)]
pub struct Transition {
    plan: Plan,
    events: Vec<Event>,
    decisions: Vec<DecisionChange>,
    children: Vec<(Plan, Vec<Event>)>,
    ground: RequiredLocks,
}

/// The locks that a commit of the transition needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RequiredLocks {
    Plan,
    Project,
}

impl Transition {
    /// Returns the plan after the transition.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the events to store in the feed.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the decisions that are opened and closed.
    pub fn decisions(&self) -> &[DecisionChange] {
        &self.decisions
    }

    /// Returns the child plans to create in the same commit, each with its events.
    pub fn children(&self) -> &[(Plan, Vec<Event>)] {
        &self.children
    }

    /// Returns the work that is due next without a person.
    pub fn effect(&self) -> Option<Effect> {
        next_effect(&self.plan)
    }

    /// Returns true if the commit also needs the project's lock (S1.2).
    pub fn needs_project(&self) -> bool {
        self.ground == RequiredLocks::Project
    }

    /// Returns the plan after the transition, by value.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

/// Builds a transition. Used by `decide`.
pub(crate) struct TransitionBuilder<'a> {
    pub(crate) plan: Plan,
    events: Vec<Event>,
    decisions: Vec<DecisionChange>,
    children: Vec<(Plan, Vec<Event>)>,
    ground: RequiredLocks,
    ended_by: Authority,
    context: &'a Context,
}

impl<'a> TransitionBuilder<'a> {
    pub(crate) fn after(snapshot: &StoredPlan, context: &'a Context) -> Self {
        let mut plan = snapshot.plan.clone();
        plan.revision += 1;
        // The usage of a run is recorded with the next transition. Taking the maximum ignores a late, lower
        // report.
        if let Some((run, spent)) = &context.spent
            && plan.run.as_ref() == Some(run)
        {
            plan.run_spent = plan.run_spent.at_least(*spent);
        }
        Self::of(plan, context)
    }

    pub(crate) fn of(mut plan: Plan, context: &'a Context) -> Self {
        plan.updated_at = context.now;
        let (events, decisions, children) = (Vec::new(), Vec::new(), Vec::new());
        let (ground, ended_by) = (RequiredLocks::Plan, context.authority);
        Self { plan, events, decisions, children, ground, ended_by, context }
    }

    pub(crate) fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn stage(mut self, common: Common) -> Self {
        match &common {
            // A run that restarts after a rate limit may meet it again, and consecutive limits are counted.
            // So the postponement is kept.
            Common::Queued | Common::Processing => {}
            Common::Waiting(_) | Common::Errored { .. } | Common::Cancelled { .. } => {
                self.plan.postponed = None;
                self.plan.clear_interruption();
            }
        }
        self.plan.stage = self.plan.stage.same_phase(common);
        self
    }

    pub(crate) fn enter(mut self, stage: Stage) -> Self {
        self.plan.stage = stage;
        self.plan.postponed = None;
        self.plan.clear_interruption();
        self.plan.phase_started_at = None;
        self.plan.phase_completed_at = None;
        self
    }

    /// Uses the authority that ended the parent for this transition.
    pub(crate) fn ended_by(mut self, authority: Authority) -> Self {
        self.ended_by = authority;
        self
    }

    /// Returns true if a person's authority ends this plan and its subplans.
    pub(crate) fn is_ended_by_person(&self) -> bool {
        self.ended_by == Authority::Person
    }

    /// Marks subplans for cancellation, including their open questions if a person ended the plan.
    pub(crate) fn wind(&mut self, children: impl IntoIterator<Item = PlanId>) {
        for child in children {
            if self.is_ended_by_person() {
                self.plan.ended_by_person.push(child.clone());
            }
            self.plan.winding.push(child);
        }
    }

    pub(crate) fn under_project(mut self) -> Self {
        self.ground = RequiredLocks::Project;
        self
    }

    /// Drops the intent, if there is one.
    pub(crate) fn drop_intent(mut self) -> Self {
        self.events.extend(self.plan.intent.take().map(Event::ApplyForgone));
        self
    }

    /// Drops the queued divergences that moved nothing.
    pub(crate) fn forget_unreconciled(mut self) -> Self {
        let moved = |one: &SyncOutcome| !matches!(one, SyncOutcome::Unreconciled { .. });
        self.plan.queued_divergences.retain(moved);
        self
    }

    /// Opens a decision with the unused id from the context. The decision refers to a run only if the phase
    /// has started: before that, the plan's latest run belongs to an earlier phase.
    pub(crate) fn open(mut self, question: Question) -> Self {
        let decision = Decision {
            id: self.context.fresh_decision.clone(),
            plan: self.plan.id.clone(),
            phase: self.plan.stage.phase(),
            run: self.plan.phase_started_at.and(self.plan.run.clone()),
            question,
            status: DecisionStatus::Open,
            created_at: self.context.now,
        };
        self.events.push(Event::DecisionOpened(Box::new(decision.clone())));
        self.decisions.push(DecisionChange::Open(decision));
        self
    }

    /// Keeps the decision open and replaces its question.
    pub(crate) fn amend(mut self, decision: &Decision, question: Question) -> Self {
        let decision = Decision { question, ..decision.clone() };
        self.events.push(Event::DecisionAmended(Box::new(decision.clone())));
        self.decisions.push(DecisionChange::Amend(decision));
        self
    }

    pub(crate) fn resolve(mut self, decision: &Decision, option: &str, note: Option<String>) -> Self {
        let Context { now, by, via, .. } = self.context.clone();
        let resolution = Resolution { option: option.to_owned(), note, by, via, at: now };
        self.events.push(Event::DecisionResolved(decision.id.clone(), resolution.clone()));
        self.decisions.push(DecisionChange::Resolve(decision.id.clone(), resolution));
        self.plan.gate = None;
        self
    }

    /// Closes the open decision, if there is one, because it no longer applies.
    pub(crate) fn withdraw(mut self, pending: Option<&Decision>, reason: &str) -> Self {
        if let Some(decision) = pending {
            let (id, reason) = (decision.id.clone(), reason.to_owned());
            self.events.push(Event::DecisionWithdrawn { id: id.clone(), reason: reason.clone() });
            self.decisions.push(DecisionChange::Withdraw { id, reason, at: self.context.now });
        }
        self.plan.gate = None;
        self
    }

    pub(crate) fn done(self) -> Decided {
        Decided::Change(Box::new(self.into_transition()))
    }

    pub(crate) fn into_transition(self) -> Transition {
        let mut draft = self.ask_what_is_queued();
        draft.yield_turn();
        draft.release();
        let TransitionBuilder { plan, events, decisions, children, ground, .. } = draft;
        Transition { plan, events, decisions, children, ground }
    }

    /// Returns the plan and its events, to be written in the parent's transition.
    pub(crate) fn into_child(self) -> (Plan, Vec<Event>) {
        (self.plan, self.events)
    }

    pub(crate) fn add_child(mut self, child: (Plan, Vec<Event>)) -> Self {
        self.children.push(child);
        self
    }

    /// Asks about the oldest queued divergence, if no other decision is open.
    fn ask_what_is_queued(mut self) -> Self {
        let busy = match self.plan.stage.state() {
            State::Processing | State::Applied | State::Cancelled => true,
            State::Queued | State::Waiting | State::Complete | State::Errored | State::Constrained => {
                self.plan.pending_decision().is_some() || self.plan.intent.is_some()
            }
        };
        if busy || self.plan.queued_divergences.is_empty() {
            return self;
        }
        let context = self.context;
        match self.plan.queued_divergences.remove(0).divergence() {
            Some(divergence) => ask_about(self, &divergence, context),
            None => self,
        }
    }

    /// Releases the run's budget reservation when the run has ended. The same commit records its usage.
    fn release(&mut self) {
        if self.plan.stage.state() != State::Processing {
            self.plan.reserved = None;
        }
    }

    /// Gives up the turn of a subplan that is idle or waits for a person, so that a sibling can run.
    fn yield_turn(&mut self) {
        let rests = self.plan.pending_decision().is_some()
            || match &self.plan.stage {
                Stage::Strategize(progress) => progress.rests(|Complete| false),
                Stage::Execute(progress) => progress.rests(|Complete| true),
                Stage::Apply(progress) => progress.rests(|_| true),
            };
        if let Some(place) = self.plan.place.as_mut().filter(|_| rests) {
            place.turn = Turn::InLine;
        }
    }
}
