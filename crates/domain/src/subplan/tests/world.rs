//! A plan with its child plans, changed by real commands one commit at a time, as the scheduler and workers
//! would. Stopping after any commit simulates a crash: the next step reads only committed state.

use std::collections::BTreeMap;

use crate::{
    Advance, Authority, CallSubplan, Changes, ChildState, Command, Completion, Context, CreatePlan, Decided,
    Decision, DecisionChange, DecisionId, Effect, Enforcement, ErrorClass, Failure, Fanout, Inherited,
    MergeStrategy, NewChild, NextPhase, OnFailure, Phase, Plan, PlanId, PlanSpec, Profile, Refusal, RunId,
    SpawnChild, Start, StoredPlan, Subplan, SubplanStatus, SubplanTask, SubplanUpdate, Target, Timestamp,
    create, decide, next_effect,
};

/// A parent, its children, and a clock that advances with every commit.
pub(super) struct World {
    pub(super) parent: StoredPlan,
    pub(super) children: BTreeMap<PlanId, StoredPlan>,
    pub(super) ticks: i64,
    /// Number of starts of each child's Execute.
    pub(super) starts: BTreeMap<PlanId, usize>,
}

pub(super) fn piece(name: &str, after: &[&str]) -> Subplan {
    Subplan {
        name: name.parse().unwrap(),
        task: SubplanTask::Words(format!("do {name}")),
        project: None,
        agent: None,
        after: after.iter().map(|name| name.parse().unwrap()).collect(),
        paths: Vec::new(),
        max_attempts: 1,
        timeout_s: None,
        mends: None,
        child: None,
        fate: SubplanStatus::Open,
        favour: None,
        failures: Vec::new(),
        forgiven: 0,
    }
}

pub(super) fn fanout(pieces: Vec<Subplan>, on_failure: OnFailure, max_parallel: u32) -> Fanout {
    Fanout { merge: MergeStrategy::ThreeWay, on_failure, max_parallel, pieces, head: None }
}

impl World {
    /// Creates a plan at `execute/queued` with these subplans.
    pub(super) fn of(fanout: Fanout) -> World {
        let new = CreatePlan { id: PlanId::from_random(1), spec: spec(), base_commit: "base".to_owned() };
        let made = create(new, &context(1));
        let parent = StoredPlan { plan: made.into_plan(), pending: None };
        let mut world = World { parent, children: BTreeMap::new(), ticks: 1, starts: BTreeMap::new() };
        world.parent(start(RunId::from_random(1))).unwrap();
        let strategized = Completion::Strategized { choices: Vec::new(), fanout: Some(fanout) };
        world.parent(Command::Complete(RunId::from_random(1), strategized)).unwrap();
        world.parent(advance()).unwrap();
        world
    }

    pub(super) fn fanout(&self) -> &Fanout {
        self.parent.plan.fanout.as_ref().expect("it has pieces")
    }

    pub(super) fn piece(&self, name: &str) -> &Subplan {
        self.fanout().pieces.iter().find(|piece| piece.name.as_str() == name).expect("there is one")
    }

    pub(super) fn child(&self, name: &str) -> &Plan {
        &self.children[self.piece(name).child.as_ref().expect("it is born")].plan
    }

    pub(super) fn seen(&self) -> Vec<ChildState> {
        let of = |piece: &Subplan| {
            piece.child.as_ref().map_or(ChildState::Unborn, |id| ChildState::of(&self.children[id].plan))
        };
        self.fanout().pieces.iter().map(of).collect()
    }

    /// Sends a command to the parent.
    pub(super) fn parent(&mut self, command: Command) -> Result<(), Refusal> {
        self.ticks += 1;
        let decided = decide(&self.parent, command, &context(self.ticks))?;
        if let Decided::Change(transition) = decided {
            for (child, _) in transition.children() {
                let known =
                    self.children.insert(child.id.clone(), StoredPlan { plan: child.clone(), pending: None });
                assert!(known.is_none(), "a child is born once");
            }
            commit(&mut self.parent, &transition);
        }
        Ok(())
    }

    /// Sends a command to a child.
    pub(super) fn give(&mut self, child: &PlanId, command: Command) -> Result<(), Refusal> {
        self.give_as(Authority::Person, child, command)
    }

    fn give_as(&mut self, authority: Authority, child: &PlanId, command: Command) -> Result<(), Refusal> {
        self.ticks += 1;
        let snapshot = self.children.get_mut(child).expect("there is such a child");
        let executes = snapshot.plan.stage.phase() == Phase::Execute;
        let begins = matches!(command, Command::Start(_)) && executes;
        // A run interrupted by a rate limit does not count as an attempt.
        let cut_short = matches!(command, Command::Postpone(..)) && executes;
        let context = Context { authority, ..context(self.ticks) };
        if let Decided::Change(transition) = decide(snapshot, command, &context)? {
            commit(snapshot, &transition);
            if begins {
                *self.starts.entry(child.clone()).or_default() += 1;
            }
            if cut_short {
                *self.starts.get_mut(child).expect("it was started") -= 1;
            }
        }
        Ok(())
    }

    /// Does the next step of the scheduler, and returns true if there was one.
    pub(super) fn tend(&mut self) -> bool {
        if next_effect(&self.parent.plan) != Some(Effect::Tend) {
            return false;
        }
        if let Some(child) = self.parent.plan.winding.first().cloned() {
            if !self.children[&child].plan.stage.is_terminal() {
                let ended_by = match self.parent.plan.ended_by_person.contains(&child) {
                    true => Authority::Person,
                    false => Authority::Engine,
                };
                let command = Command::CancelBelow { reason: "not needed".into(), ended_by };
                return self.give_as(Authority::Engine, &child, command).is_ok();
            } else {
                let used = self.children[&child].plan.used();
                self.parent(Command::WoundUp(vec![(child, used)])).unwrap();
            }
            return true;
        }
        let unborn = self
            .fanout()
            .pieces
            .iter()
            .position(|piece| piece.fate == SubplanStatus::Open && piece.child.is_none());
        if unborn.is_some() {
            let births = self.births();
            self.parent(Command::Spawn(births)).unwrap();
            return true;
        }
        let seen = self.seen();
        let mut news = self.fanout().updates(&seen);
        if !news.is_empty() {
            let handed = self.parent.plan.handed.keys();
            news.extend(handed.filter_map(|id| SubplanUpdate::of_end(&self.children[id].plan)));
            self.parent(Command::Tend(news)).unwrap();
            return true;
        }
        self.act(&seen)
    }

    fn act(&mut self, seen: &[ChildState]) -> bool {
        let acts = self.fanout().due_steps(seen, Timestamp::from_micros(self.ticks));
        let id =
            |world: &World, index: usize| world.fanout().pieces[index].child.clone().expect("it is born");
        if let Some(index) = acts.retry.first() {
            let child = id(self, *index);
            self.give(&child, Command::Retry).unwrap();
        } else if let Some(index) = acts.call.first() {
            let child = id(self, *index);
            self.give(&child, Command::Call(CallSubplan { base: "base".into(), from: None })).unwrap();
        } else if let Some(index) = acts.join {
            // First the child, then the parent: a crash in between leads to `ChildState::Landed`.
            let child = id(self, index);
            let commit = format!(
                "{}+{}",
                self.fanout().head.as_deref().unwrap_or("base"),
                self.fanout().pieces[index].name
            );
            self.give(&child, Command::Join { commit }).unwrap();
        } else if acts.wake_at.is_some() {
            self.ticks += 1_000_000;
        } else {
            return false;
        }
        true
    }

    fn births(&self) -> Vec<SpawnChild> {
        let unborn = |piece: &Subplan| piece.fate == SubplanStatus::Open && piece.child.is_none();
        let pieces = self.fanout().pieces.iter().enumerate().filter(|(_, piece)| unborn(piece));
        let inherited = Inherited::of(&self.parent.plan, Vec::new(), pieces.clone().count());
        pieces
            .map(|(index, _)| {
                let id = PlanId::from_random((self.ticks as u128) << 32 | (index as u128 + 2));
                SpawnChild {
                    piece: index,
                    child: NewChild { id, spec: spec(), inherited: inherited.clone() },
                }
            })
            .collect()
    }

    /// Performs the next step of a child that is due; its last step ends as given by `end`.
    pub(super) fn work(&mut self, child: &PlanId, end: End) {
        let plan = self.children[child].plan.clone();
        let run = plan.run.clone().unwrap_or_else(|| RunId::from_random(9));
        let fresh = RunId::from_random(((self.ticks as u128) << 16) | 7);
        let command = match (next_effect(&plan), plan.stage.phase(), plan.stage.state()) {
            (None, ..) | (Some(Effect::Tend), ..) => return,
            (Some(Effect::AdvanceToExecute | Effect::AdvanceToApply), ..) => advance(),
            (Some(Effect::DrivePhase(_)), _, crate::State::Queued) => start(fresh),
            (Some(Effect::DrivePhase(_)), Phase::Strategize, _) => {
                Command::Complete(run, Completion::Strategized { choices: Vec::new(), fanout: None })
            }
            (Some(Effect::DrivePhase(_)), _, _) => end.command(run),
        };
        self.give(child, command).unwrap();
    }

    /// Adds usage to a child that has not ended.
    pub(super) fn spend(&mut self, child: &PlanId, tokens: u64) {
        let plan = &mut self.children.get_mut(child).expect("there is such a child").plan;
        if SubplanUpdate::of_end(plan).is_none() {
            plan.spent.tokens += tokens;
        }
    }

    /// Schedules and works until no automatic step is left.
    pub(super) fn settle(&mut self, end: impl Fn(&str) -> End) {
        loop {
            let moved = self.tend();
            let due: Vec<_> = self
                .children
                .keys()
                .filter(|id| next_effect(&self.children[*id].plan).is_some())
                .cloned()
                .collect();
            if !moved && due.is_empty() {
                return;
            }
            for child in due {
                let name = self.children[&child].plan.place.as_ref().unwrap().name.to_string();
                self.work(&child, end(&name));
            }
        }
    }

    /// Answers the parent's open question.
    pub(super) fn answer(&mut self, option: &str) {
        let decision = self.parent.plan.pending_decision().expect("it asks").clone();
        let answer = crate::Answer { decision, option: option.to_owned(), note: None };
        self.parent(Command::Resolve(answer)).unwrap();
    }

    /// Reports a conflict of a subplan, as the scheduler does when a join fails.
    pub(super) fn conflict(&mut self, name: &str) {
        let piece = self.fanout().position(&name.parse().unwrap()).unwrap();
        let clash = crate::ConflictReport {
            files: serde_json::json!([]),
            clashes: vec![crate::ConflictSummary {
                paths: vec!["a.txt".into()],
                about: "content".into(),
                marks: crate::ConflictMarkers::InFile,
            }],
            onto: "base".into(),
            marked: "marked".into(),
        };
        let question =
            Box::new(crate::Question::conflict(self.fanout(), &self.fanout().pieces[piece], clash, None));
        self.parent(Command::Tend(vec![SubplanUpdate::Conflict { piece, question }])).unwrap();
    }
}

/// How the Execute of a child ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Done,
    Fails,
    FailsForGood,
    Asks,
    MeetsLimit,
}

impl End {
    fn command(self, run: RunId) -> Command {
        let failure = |class| Failure::new(class, "it broke");
        match self {
            End::Done => Command::Complete(
                run,
                Completion::Executed { head: "head".into(), validations: Vec::new(), reviews: Vec::new() },
            ),
            End::Fails => Command::Fail(run, failure(ErrorClass::AgentFailed), None),
            End::FailsForGood => Command::Fail(run, failure(ErrorClass::AgentMissing), None),
            End::MeetsLimit => {
                let limit = crate::RateLimit {
                    agent: "writer".into(),
                    resets: None,
                    work: crate::Remains::Work(None),
                };
                Command::Postpone(run, crate::Delay::RateLimit(limit))
            }
            End::Asks => Command::Ask(run, crate::Question::from_agent("Tabs?".into(), Vec::new())),
        }
    }
}

fn commit(snapshot: &mut StoredPlan, transition: &crate::Transition) {
    let mut pending: Option<Decision> = snapshot.pending.clone();
    for change in transition.decisions() {
        match change {
            DecisionChange::Open(decision) | DecisionChange::Amend(decision) => {
                pending = Some(decision.clone())
            }
            DecisionChange::Resolve(..) | DecisionChange::Withdraw { .. } => pending = None,
        }
    }
    snapshot.plan = transition.plan().clone();
    snapshot.pending = pending;
    assert_eq!(snapshot.plan.pending_decision(), snapshot.pending.as_ref().map(|open| &open.id));
}

pub(super) fn start(run: RunId) -> Command {
    let enforcement = Enforcement::nothing(Phase::Strategize);
    Command::Start(Start { run, base: "base".into(), from: None, replaces: None, enforcement })
}

fn advance() -> Command {
    let enforcement = Enforcement::nothing(Phase::Execute);
    let (note, changes) = (None, Changes::Something);
    Command::Advance(Advance { to: NextPhase::Execute, enforcement, note, changes })
}

fn spec() -> PlanSpec {
    let profile = Profile::built_in().into_iter().find(|profile| profile.name == "auto").unwrap();
    PlanSpec {
        action: "run".parse().unwrap(),
        project: "shop".parse().unwrap(),
        task: "do it".into(),
        definition_of_done: None,
        arguments: BTreeMap::new(),
        profile,
        agents: crate::PlanAgents::default(),
        validations: Vec::new(),
        invariants: Vec::new(),
        target: Target::default(),
        allow_empty: true,
        budget: crate::Budget::UNLIMITED,
    }
}

fn context(ticks: i64) -> Context {
    Context {
        now: Timestamp::from_micros(ticks),
        by: "test".into(),
        via: "test".into(),
        authority: Authority::Person,
        fresh_decision: DecisionId::from_random(ticks as u128),
        spent: None,
    }
}
