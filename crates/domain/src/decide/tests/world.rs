//! One plan with its decisions, changed by real commands and committed as a store would. Panics on a decision
//! that is opened twice, closed while closed, or open without a plan that waits for it.

use std::collections::BTreeMap;

use crate::{
    Authority, Budget, Command, Context, CreatePlan, Decided, Decision, DecisionChange, DecisionId, Phase,
    Plan, PlanAgents, PlanId, PlanSpec, Profile, Refusal, ResourceUsage, RunId, State, StoredPlan, Target,
    Timestamp, Transition, create, decide,
};

/// A plan, and the records of all its decisions.
pub(super) struct World {
    pub(super) snapshot: StoredPlan,
    open: BTreeMap<DecisionId, Decision>,
    closed: Vec<DecisionId>,
    ticks: i64,
    /// The authority that commands are sent with.
    pub(super) authority: Authority,
    /// The usage that the run reports.
    pub(super) spent: Option<(RunId, ResourceUsage)>,
}

/// The result of a command, without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Seen {
    Now(Phase, State),
    Already,
    WrongStage,
    NotAllowed,
    Blocked,
    Undecided,
    StaleRun,
    DecisionClosed,
    UnknownOption,
    EmptyAnswer,
    NothingChanged,
    BudgetSpent,
    Unvalidated,
    Unreviewed,
    TooManyReversions,
    IntentOpen,
}

impl World {
    /// Creates a plan with a built-in profile.
    pub(super) fn under(profile: &str) -> World {
        World::of(spec(profile))
    }

    /// Creates a plan with this spec.
    pub(super) fn of(spec: PlanSpec) -> World {
        let new = CreatePlan { id: PlanId::from_random(1), spec, base_commit: "base".to_owned() };
        let made = create(new, &context(1));
        let snapshot = StoredPlan { plan: made.plan().clone(), pending: None };
        let authority = Authority::Person;
        let (open, closed) = (BTreeMap::new(), Vec::new());
        let mut world = World { snapshot, open, closed, ticks: 1, authority, spent: None };
        world.commit(made);
        world
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.snapshot.plan
    }

    pub(super) fn pending(&self) -> &Decision {
        self.snapshot.pending.as_ref().expect("a decision is open")
    }

    /// Returns the time of the latest command.
    pub(super) fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.ticks)
    }

    /// Returns an unused run id.
    pub(super) fn fresh_run(&self) -> RunId {
        RunId::from_random(1000 + self.ticks as u128)
    }

    /// Returns the plan's run, or an id that was never started.
    pub(super) fn run(&self) -> RunId {
        self.plan().run.clone().unwrap_or_else(|| RunId::from_random(7))
    }

    /// Sends a command and commits the result.
    pub(super) fn give(&mut self, command: Command) -> Seen {
        match self.judge(command) {
            Ok(Decided::Change(transition)) => {
                self.commit(*transition);
                Seen::Now(self.plan().stage.phase(), self.plan().stage.state())
            }
            Ok(Decided::Already) => Seen::Already,
            Err(refusal) => Seen::from(&refusal),
        }
    }

    /// Sends a command with this authority, and commits the result.
    pub(super) fn give_as(&mut self, authority: Authority, command: Command) -> Seen {
        let before = std::mem::replace(&mut self.authority, authority);
        let seen = self.give(command);
        self.authority = before;
        seen
    }

    /// Sends a command without committing the result.
    pub(super) fn judge(&mut self, command: Command) -> Result<Decided, Refusal> {
        self.ticks += 1;
        let (authority, spent) = (self.authority, self.spent.clone());
        let context = Context { authority, spent, ..context(self.ticks) };
        let answer = decide(&self.snapshot, command.clone(), &context);
        assert_eq!(answer, decide(&self.snapshot, command, &context), "the same question, another answer");
        answer
    }

    fn commit(&mut self, transition: Transition) {
        for change in transition.decisions() {
            match change {
                DecisionChange::Open(decision) => {
                    assert!(!self.closed.contains(&decision.id), "{} is used twice", decision.id);
                    assert_eq!(self.open.insert(decision.id.clone(), decision.clone()), None);
                }
                DecisionChange::Amend(decision) => {
                    assert!(self.open.insert(decision.id.clone(), decision.clone()).is_some(), "it was open");
                }
                DecisionChange::Resolve(id, _) | DecisionChange::Withdraw { id, .. } => {
                    assert!(self.open.remove(id).is_some(), "{id} is closed and was not open");
                    self.closed.push(id.clone());
                }
            }
        }
        let plan = transition.into_plan();
        let waits_for: Vec<_> = plan.pending_decision().into_iter().collect();
        assert_eq!(
            self.open.keys().collect::<Vec<_>>(),
            waits_for,
            "open decisions, and what the plan awaits"
        );
        self.snapshot = StoredPlan { pending: self.open.values().next().cloned(), plan };
    }
}

impl From<&Refusal> for Seen {
    fn from(refusal: &Refusal) -> Seen {
        match refusal {
            Refusal::WrongStage { .. } => Seen::WrongStage,
            Refusal::NotAllowed { .. } => Seen::NotAllowed,
            Refusal::Blocked(_) => Seen::Blocked,
            Refusal::Undecided { .. } => Seen::Undecided,
            Refusal::StaleRun { .. } => Seen::StaleRun,
            Refusal::DecisionClosed(_) => Seen::DecisionClosed,
            Refusal::UnknownOption { .. } => Seen::UnknownOption,
            Refusal::EmptyAnswer(_) => Seen::EmptyAnswer,
            Refusal::NothingChanged => Seen::NothingChanged,
            Refusal::BudgetSpent { .. } => Seen::BudgetSpent,
            Refusal::Unreviewed(_) => Seen::Unreviewed,
            Refusal::Unvalidated(_) => Seen::Unvalidated,
            Refusal::TooManyReversions { .. } => Seen::TooManyReversions,
            Refusal::IntentOpen => Seen::IntentOpen,
            Refusal::NotCalled { .. } | Refusal::SubplansOpen => Seen::WrongStage,
        }
    }
}

/// Returns a simple spec with a built-in profile.
pub(super) fn spec(profile: &str) -> PlanSpec {
    PlanSpec {
        action: "fix".parse().unwrap(),
        project: "site".parse().unwrap(),
        task: "fix it".to_owned(),
        definition_of_done: None,
        arguments: BTreeMap::new(),
        profile: Profile::built_in().into_iter().find(|known| known.name == profile).unwrap(),
        agents: PlanAgents::default(),
        validations: Vec::new(),
        invariants: Vec::new(),
        target: Target::default(),
        allow_empty: false,
        budget: Budget::UNLIMITED,
    }
}

fn context(ticks: i64) -> Context {
    Context {
        now: Timestamp::from_micros(ticks),
        by: "ada".to_owned(),
        via: "a test".to_owned(),
        authority: Authority::Person,
        spent: None,
        fresh_decision: DecisionId::from_random(ticks as u128),
    }
}
