//! The answer of `decide`: a transition that records everything at once, or that nothing needs to change.

use crate::decide::ask_about;
use crate::event::Event;
use crate::stage::Common;
use crate::{
    Authority, Complete, Context, Decision, DecisionChange, DecisionStatus, Effect, Plan, PlanId, Question,
    Resolution, Snapshot, Stage, State, SyncOutcome, Turn, due,
};

/// What an accepted command does.
#[must_use = "a decision changes nothing until it is committed"]
#[derive(Debug, PartialEq)]
pub enum Decided {
    /// The plan changes.
    Change(Box<Transition>),
    /// The command took effect before; nothing changes.
    Already,
}

/// What an accepted command records and asks for. Only `decide` and `create` make one.
#[must_use = "a transition changes nothing until it is committed"]
#[derive(Debug, PartialEq)]
pub struct Transition {
    plan: Plan,
    events: Vec<Event>,
    decisions: Vec<DecisionChange>,
    children: Vec<(Plan, Vec<Event>)>,
    ground: Ground,
}

/// Which locks a transition needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ground {
    Plan,
    Project,
}

impl Transition {
    /// Returns the plan as it will be.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns what the feed will tell.
    pub fn events(&self) -> &[Event] {
        &self.events
    }

    /// Returns the decisions that are opened and closed.
    pub fn decisions(&self) -> &[DecisionChange] {
        &self.decisions
    }

    /// Returns the plans that are born with it, each with what the feed will tell of it.
    pub fn children(&self) -> &[(Plan, Vec<Event>)] {
        &self.children
    }

    /// Returns what must happen next without a person.
    pub fn effect(&self) -> Option<Effect> {
        due(&self.plan)
    }

    /// Says whether it may only be committed under the project's lock as well (S1.2).
    pub fn needs_project(&self) -> bool {
        self.ground == Ground::Project
    }

    /// Gives the plan as it will be.
    pub fn into_plan(self) -> Plan {
        self.plan
    }
}

/// A transition while `decide` writes it.
pub(crate) struct Draft<'a> {
    pub(crate) plan: Plan,
    events: Vec<Event>,
    decisions: Vec<DecisionChange>,
    children: Vec<(Plan, Vec<Event>)>,
    ground: Ground,
    ended_by: Authority,
    context: &'a Context,
}

impl<'a> Draft<'a> {
    pub(crate) fn after(snapshot: &Snapshot, context: &'a Context) -> Self {
        let mut plan = snapshot.plan.clone();
        plan.revision += 1;
        // What a run used is recorded with whatever is recorded next; a report that comes late takes nothing back.
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
        let (ground, ended_by) = (Ground::Plan, context.authority);
        Self { plan, events, decisions, children, ground, ended_by, context }
    }

    pub(crate) fn event(mut self, event: Event) -> Self {
        self.events.push(event);
        self
    }

    pub(crate) fn stage(mut self, common: Common) -> Self {
        match &common {
            // A run that begins again after a rate limit may meet it again, which is counted.
            Common::Queued | Common::Processing => {}
            Common::Waiting(_) | Common::Errored { .. } | Common::Cancelled { .. } => {
                self.plan.postponed = None;
                self.plan.interruption = None;
            }
        }
        self.plan.stage = self.plan.stage.same_phase(common);
        self
    }

    pub(crate) fn enter(mut self, stage: Stage) -> Self {
        self.plan.stage = stage;
        self.plan.postponed = None;
        self.plan.interruption = None;
        self.plan.phase_started_at = None;
        self.plan.phase_completed_at = None;
        self
    }

    /// Acts with the authority that ended the plan above.
    pub(crate) fn ended_by(mut self, authority: Authority) -> Self {
        self.ended_by = authority;
        self
    }

    /// Says whether a person ends the plans that end with this one.
    pub(crate) fn is_ended_by_person(&self) -> bool {
        self.ended_by == Authority::Person
    }

    /// Lets subplans be ended, and their questions with them if a person ends them.
    pub(crate) fn wind(&mut self, children: impl IntoIterator<Item = PlanId>) {
        for child in children {
            if self.is_ended_by_person() {
                self.plan.ended_by_person.push(child.clone());
            }
            self.plan.winding.push(child);
        }
    }

    pub(crate) fn under_project(mut self) -> Self {
        self.ground = Ground::Project;
        self
    }

    /// Drops the intent, if there is one.
    pub(crate) fn forgo(mut self) -> Self {
        self.events.extend(self.plan.intent.take().map(Event::ApplyForgone));
        self
    }

    /// Drops the queued divergences that moved nothing.
    pub(crate) fn forget_unreconciled(mut self) -> Self {
        let moved = |one: &SyncOutcome| !matches!(one, SyncOutcome::Unreconciled { .. });
        self.plan.queued_divergences.retain(moved);
        self
    }

    /// Opens a decision under the fresh id of the context. It belongs to a run of its own phase only: before
    /// the phase started, the plan's latest run is one of another phase.
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

    /// Keeps the open decision open, with its question as it is put now.
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

    /// Closes the open decision, if there is one, because its cause is gone.
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
        draft.step_back();
        draft.release();
        let Draft { plan, events, decisions, children, ground, .. } = draft;
        Transition { plan, events, decisions, children, ground }
    }

    /// Gives the plan and its events, to be written with its parent's.
    pub(crate) fn into_child(self) -> (Plan, Vec<Event>) {
        (self.plan, self.events)
    }

    pub(crate) fn bear(mut self, child: (Plan, Vec<Event>)) -> Self {
        self.children.push(child);
        self
    }

    /// Asks about the oldest divergence that was found under another question, once no other is open.
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

    /// However a run ends, what it reserved is free again; what it used is recorded with the same commit.
    fn release(&mut self) {
        if self.plan.stage.state() != State::Processing {
            self.plan.reserved = None;
        }
    }

    /// A subplan that rests, or waits for a person, gives its place among those at work to others.
    fn step_back(&mut self) {
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
