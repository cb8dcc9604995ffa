//! Random histories against a small model of the lifecycle, with invariants checked after every step.

use std::collections::BTreeSet;

use proptest::prelude::{Just, ProptestConfig, Strategy, any, prop};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use proptest::{prop_assert_eq, prop_oneof, proptest};

use super::say::{Say, approve, choice, start, violated};
use super::world::{Seen, World, spec};
use crate::{
    Advance, Choice, Command, DecisionStatus, INTERRUPTIONS_MAX, POSTPONED_MAX, Phase, Plan, Profile,
    REVERSIONS_MAX, RunId, State, Timestamp, next_effect,
};

/// How a step deviates from the regular command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Twist {
    Plain,
    OldRun,
    Blocked,
}

/// The model of a plan.
#[derive(Debug, Clone, Copy)]
struct Model {
    phase: Phase,
    state: State,
    asks: Option<Open>,
    intent: bool,
    ran: bool,
    adopted: bool,
    started: bool,
    rolled_back: bool,
    reversions: u32,
    revision: i64,
    /// Number of consecutive rate limits.
    postponed: u32,
    /// Number of consecutive interruptions without a checkpoint.
    interruptions: u32,
    /// Divergences that wait for another decision to be answered.
    queued: [Option<Open>; 2],
    /// Whether the open question has the fact that its divergence no longer exists.
    together: bool,
}

/// The open question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Gate,
    Agent,
    Recovered,
    Paused,
    LostTrack,
}

impl Model {
    fn of(profile: &Profile) -> Model {
        Model {
            phase: Phase::Strategize,
            state: State::Queued,
            asks: profile.asks_before(Phase::Strategize).then_some(Open::Gate),
            intent: false,
            ran: false,
            adopted: false,
            started: false,
            rolled_back: false,
            reversions: 0,
            revision: 1,
            postponed: 0,
            interruptions: 0,
            queued: [None; 2],
            together: false,
        }
    }

    /// Returns the model after the step, or `None` if the step must change nothing.
    fn after(self, say: Say, twist: Twist, profile: &Profile) -> Option<Model> {
        let terminal = matches!(self.state, State::Applied | State::Cancelled);
        let allowed =
            !terminal && (!reports(say) || (self.state == State::Processing && twist != Twist::OldRun));
        let gate = |next| profile.asks_before(next).then_some(Open::Gate);
        let mut to = Model { revision: self.revision + 1, ..self };
        let done = match say {
            Say::Start | Say::StartAgain => self.starts(&mut to, say, twist),
            Say::Strategized => {
                to.adopted = false;
                (to.state, to.asks) = (State::Complete, gate(Phase::Execute));
                self.phase == Phase::Strategize
            }
            Say::Executed => {
                (to.state, to.asks) = (State::Complete, gate(Phase::Apply));
                self.phase == Phase::Execute
            }
            Say::Fail => to.becomes(State::Errored, None),
            Say::FailAsking => to.becomes(State::Errored, Some(Open::LostTrack)),
            Say::Ask => to.becomes(State::Waiting, Some(Open::Agent)),
            Say::Recover => self.diverges(&mut to, Open::Recovered),
            Say::Pause => self.diverges(&mut to, Open::Paused),
            Say::Postpone => {
                to.postponed += 1;
                to.interruptions = 0;
                let often = self.postponed >= POSTPONED_MAX;
                let (state, asks) =
                    if often { (State::Waiting, Some(Open::Agent)) } else { (State::Queued, None) };
                to.becomes(state, asks) && self.phase != Phase::Apply
            }
            Say::Exhaust => {
                let open = self.state == State::Queued && self.asks.is_none();
                to.becomes(State::Waiting, Some(Open::Agent))
                    && self.phase != Phase::Apply
                    && (open || self.state == State::Processing)
            }
            Say::Reconcile => {
                to.together = true;
                self.asks == Some(Open::Paused) && !self.together
            }
            // A sync records nothing.
            Say::Sync => false,
            Say::RollBack => self.rolls_back(&mut to),
            Say::Reexamine => {
                (to.phase, to.started, to.rolled_back) = (Phase::Execute, false, false);
                let from = [(Phase::Execute, State::Complete), (Phase::Apply, State::Queued)];
                to.becomes(State::Queued, None) && from.contains(&(self.phase, self.state)) && !self.intent
            }
            // The plan has no subplans to schedule and no parent that gives it a turn.
            Say::Spawn | Say::Tend | Say::WoundUp | Say::Call | Say::Join => false,
            Say::Adopt => self.adopts(&mut to, gate(Phase::Execute)),
            Say::TakeOver => {
                to.interruptions += u32::from(self.phase != Phase::Apply);
                let often = to.interruptions >= INTERRUPTIONS_MAX;
                if often {
                    to.interruptions = 0;
                }
                to.becomes(State::Queued, often.then_some(Open::Gate)) && self.state == State::Processing
            }
            Say::Approve => {
                let gated = self.state == State::Queued && self.asks.is_some();
                to.becomes(State::Queued, None) && gated && twist != Twist::Blocked
            }
            Say::Execute => self.advances(&mut to, Phase::Strategize, Phase::Execute, twist),
            Say::ExecuteAlone => {
                self.asks.is_none() && self.advances(&mut to, Phase::Strategize, Phase::Execute, twist)
            }
            Say::Apply => self.advances(&mut to, Phase::Execute, Phase::Apply, twist),
            Say::ApplyAlone => {
                self.asks.is_none() && self.advances(&mut to, Phase::Execute, Phase::Apply, twist)
            }
            Say::Intend => {
                to.intent = true;
                self.phase == Phase::Apply && !self.intent
            }
            Say::Forgo => {
                to.intent = false;
                self.intent
            }
            Say::Land => {
                to.intent = false;
                to.becomes(State::Applied, None) && self.phase == Phase::Apply && self.intent
            }
            Say::Constrain => {
                to.becomes(State::Constrained, None) && self.phase == Phase::Apply && !self.intent
            }
            Say::AnswerFirst => {
                to.intent &= self.asks != Some(Open::LostTrack);
                if matches!(self.asks, Some(Open::Recovered | Open::Paused)) {
                    to.rolled_back = false;
                }
                // The remote's commits were not checked, so they do not land without Execute.
                if matches!(self.asks, Some(Open::Recovered | Open::Paused)) && self.phase == Phase::Apply {
                    to.phase = Phase::Execute;
                }
                // Approving a gate is another command, which carries the enforcement.
                to.becomes(State::Queued, None) && self.asks.is_some() && self.asks != Some(Open::Gate)
            }
            Say::AnswerLast => {
                to.intent &= self.asks != Some(Open::LostTrack);
                to.becomes(State::Cancelled, None) && self.asks.is_some() && !to.intent
            }
            Say::Retry if self.state == State::Queued && self.postponed > 0 => {
                to.postponed = 0;
                true
            }
            Say::Retry => to.becomes(State::Queued, None) && self.failed() && self.asks.is_none(),
            Say::StartOver => {
                to.rolled_back = false;
                let failed = (self.phase, self.state) == (Phase::Execute, State::Errored);
                to.becomes(State::Queued, None) && failed && self.asks.is_none()
            }
            // The sample failure has no work.
            Say::Accept => false,
            Say::Revert => self.reverts(&mut to),
            Say::Cancel | Say::CancelBelow => to.becomes(State::Cancelled, None) && !self.intent,
            Say::Prompt => true,
            Say::HoldBack => {
                to.asks = Some(Open::Gate);
                matches!(self.state, State::Queued | State::Complete) && self.asks.is_none()
            }
        };
        // Another end of a run resets the counters.
        let goes_on = matches!(to.state, State::Queued | State::Processing) && to.phase == self.phase;
        if !goes_on || say == Say::RollBack || say == Say::Revert {
            to.postponed = 0;
            to.interruptions = 0;
        }
        to.asks_next(self, matches!(say, Say::AnswerFirst | Say::AnswerLast));
        (allowed && done).then_some(to)
    }

    fn diverges(self, to: &mut Model, open: Open) -> bool {
        let known = self.asks == Some(open) || self.queued.contains(&Some(open));
        match (self.asks, open) {
            (None | Some(Open::Gate), Open::Recovered) => drop(to.becomes(State::Errored, Some(open))),
            (None | Some(Open::Gate), _) => drop(to.becomes(State::Waiting, Some(open))),
            // Refused below; the queue may be full.
            (Some(_), _) if known => {}
            (Some(_), _) => {
                let free = to.queued.iter_mut().find(|one| one.is_none());
                *free.expect("each is queued once") = Some(open);
                // The fact that it no longer exists is replaced by the new one.
                to.together = false;
            }
        }
        !known && !self.intent
    }

    /// Asks about a queued divergence if no other question is open.
    fn asks_next(&mut self, before: Model, answers: bool) {
        if self.asks != before.asks {
            self.together = false;
        }
        // The answer to a divergence also settles queued ones that moved nothing.
        let answered = matches!(before.asks, Some(Open::Recovered | Open::Paused)) && self.asks.is_none();
        if answered && answers {
            self.queued = self.queued.map(|one| one.filter(|open| *open != Open::Paused));
        }
        self.queued.sort_by_key(Option::is_none);
        let busy = matches!(self.state, State::Processing | State::Applied | State::Cancelled);
        if busy || self.asks.is_some() || self.intent {
            return;
        }
        let [next, rest] = self.queued;
        if let Some(next) = next {
            let state = if next == Open::Recovered { State::Errored } else { State::Waiting };
            self.queued = [rest, None];
            self.becomes(state, Some(next));
            self.postponed = 0;
            self.interruptions = 0;
        }
    }

    fn rolls_back(self, to: &mut Model) -> bool {
        let from = match self.phase {
            Phase::Strategize => false,
            Phase::Execute => self.state != State::Processing,
            Phase::Apply => self.state != State::Processing,
        };
        let again = self.rolled_back && (self.phase, self.state) == (Phase::Execute, State::Queued);
        let diverged = matches!(self.asks, Some(Open::Recovered | Open::Paused));
        (to.phase, to.rolled_back) = (Phase::Execute, true);
        to.becomes(State::Queued, None)
            && from
            && !diverged
            && !self.intent
            && !(again && self.asks.is_none())
    }

    fn adopts(self, to: &mut Model, gate: Option<Open>) -> bool {
        let done = self.state == State::Complete;
        to.adopted = true;
        if !done {
            (to.state, to.asks) = (State::Complete, gate);
        }
        let open = match self.state {
            State::Queued => self.started && self.asks.is_none(),
            _ => self.state == State::Errored && self.asks.is_none(),
        };
        self.phase == Phase::Strategize && (open || (done && !self.adopted))
    }

    fn starts(self, to: &mut Model, say: Say, twist: Twist) -> bool {
        (to.state, to.ran, to.started, to.rolled_back) = (State::Processing, true, true, false);
        let blocked = twist == Twist::Blocked && self.phase == Phase::Strategize;
        let fresh = say == Say::Start || !self.ran;
        self.state == State::Queued && self.asks.is_none() && !blocked && fresh
    }

    fn advances(self, to: &mut Model, from: Phase, next: Phase, twist: Twist) -> bool {
        to.phase = next;
        to.becomes(State::Queued, None)
            && (self.phase, self.state) == (from, State::Complete)
            && twist != Twist::Blocked
    }

    fn reverts(self, to: &mut Model) -> bool {
        (to.phase, to.started, to.rolled_back) = (Phase::Strategize, false, false);
        to.reversions += 1;
        let from = self.phase == Phase::Execute || (self.phase == Phase::Apply && self.failed());
        to.becomes(State::Queued, None) && from && !self.intent && self.reversions < REVERSIONS_MAX
    }

    fn failed(self) -> bool {
        matches!(self.state, State::Errored | State::Constrained)
    }

    fn becomes(&mut self, state: State, asks: Option<Open>) -> bool {
        (self.state, self.asks) = (state, asks);
        true
    }
}

/// Returns true for reports of a run.
fn reports(say: Say) -> bool {
    use Say::{Ask, Constrain, Executed, Fail, FailAsking, Intend, Land, Postpone, Strategized};
    matches!(say, Strategized | Executed | Fail | FailAsking | Ask | Intend | Land | Constrain | Postpone)
}

pub(super) fn command(say: Say, twist: Twist, world: &World) -> Command {
    let blocked = |command| match command {
        Command::Advance(one) => Command::Advance(Advance { enforcement: violated(one.to.phase()), ..one }),
        Command::Approve { .. } => approve(violated(world.plan().stage.phase())),
        Command::Start(one) => start(one.run, violated(world.plan().stage.phase())),
        other => other,
    };
    match twist {
        Twist::OldRun if reports(say) => say.of_run(world, RunId::from_random(8)),
        Twist::Plain | Twist::OldRun => say.to(world),
        Twist::Blocked => blocked(say.to(world)),
    }
}

/// Draws steps; `None` stands for the regular next command.
pub(super) fn steps() -> impl Strategy<Value = Vec<(Option<Say>, Twist)>> {
    let ends = [Say::Cancel, Say::AnswerLast];
    let other: Vec<_> = Say::ALL.into_iter().filter(|say| !ends.contains(say)).collect();
    let say = prop_oneof![
        50 => Just(None),
        50 => prop::sample::select(other).prop_map(Some),
        16 => Just(Some(Say::Revert)),
        1 => prop::sample::select(ends.to_vec()).prop_map(Some),
    ];
    let twist = prop_oneof![8 => Just(Twist::Plain), 1 => Just(Twist::OldRun), 1 => Just(Twist::Blocked)];
    prop::collection::vec((say, twist), 0..120)
}

pub(super) fn onward(plan: &Plan) -> Say {
    match (plan.stage.phase(), plan.stage.state(), plan.pending_decision()) {
        (_, State::Queued, None) => Say::Start,
        (Phase::Strategize, State::Processing, _) => Say::Strategized,
        (Phase::Execute, State::Processing, _) => Say::Executed,
        (Phase::Apply, State::Processing, _) if plan.intent.is_none() => Say::Intend,
        (Phase::Apply, State::Processing, _) => Say::Land,
        (Phase::Strategize, State::Complete, _) => Say::Execute,
        (_, State::Complete, _) => Say::Apply,
        (_, State::Queued, Some(_)) => Say::Approve,
        (_, State::Waiting | State::Errored, Some(_)) => Say::AnswerFirst,
        (_, State::Waiting | State::Errored | State::Constrained, _) => Say::Retry,
        (_, State::Applied | State::Cancelled, _) => Say::Prompt,
    }
}

pub(super) fn profiles() -> impl Strategy<Value = Profile> {
    prop::sample::select(Profile::built_in())
}

/// Fails if times contradict the stage or each other (S4.10).
fn check_times(plan: &Plan, now: Timestamp) {
    assert_eq!(plan.updated_at, now, "a change says when");
    if let Some(completed) = plan.phase_completed_at {
        let started = plan.phase_started_at.expect("what completed had started");
        assert!(plan.created_at <= started && started <= completed && completed <= now);
    }
    match plan.stage.state() {
        State::Complete | State::Applied => assert!(plan.phase_completed_at.is_some()),
        State::Queued | State::Waiting | State::Errored => assert_eq!(plan.phase_completed_at, None),
        State::Processing | State::Constrained => {
            assert!(plan.phase_started_at.is_some() && plan.phase_completed_at.is_none());
        }
        State::Cancelled => {}
    }
}

/// Fails if the stored decision does not match the stage, belongs to another plan or run, or if an effect is
/// due despite it.
fn check_decision(world: &World) {
    let plan = world.plan();
    assert_eq!(plan.pending_decision(), world.snapshot.pending.as_ref().map(|open| &open.id));
    assert!(plan.gate.is_none() || plan.stage.decision().is_none(), "two decisions at once");
    assert!(plan.stage.state() != State::Waiting || plan.stage.decision().is_some());
    let Some(open) = &world.snapshot.pending else { return };
    assert_eq!((&open.plan, open.phase, &open.status), (&plan.id, plan.stage.phase(), &DecisionStatus::Open));
    assert_eq!(open.run, plan.phase_started_at.and(plan.run.clone()));
    assert_eq!(next_effect(plan), None, "work is due though a person must decide");
}

fn check_stored(plan: &Plan) {
    let text = serde_json::to_string(plan).expect("a plan is JSON");
    assert_eq!(serde_json::from_str::<Plan>(&text).expect("a plan reads back"), *plan);
}

pub(super) fn settings() -> ProptestConfig {
    ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(settings())]

    /// Fails if a history deviates from the model, changes a plan without a new revision or the reverse, or
    /// leaves contradictory times, decisions or effects.
    #[test]
    fn any_history_goes_where_the_model_goes(profile in profiles(), steps in steps()) {
        let mut world = World::under(&profile.name);
        let mut model = Model::of(&profile);
        for (say, twist) in steps {
            let say = say.unwrap_or_else(|| onward(world.plan()));
            let before = world.snapshot.clone();
            let given = command(say, twist, &world);
            let seen = world.give_as(say.authority(), given);
            match model.after(say, twist, &profile) {
                Some(next) => {
                    prop_assert_eq!(seen, Seen::Now(next.phase, next.state), "{:?} {:?} of {:?}", twist, say, model);
                    model = next;
                    check_times(world.plan(), world.now());
                }
                None => {
                    prop_assert_eq!(&world.snapshot, &before, "{:?} {:?} of {:?} changed it", twist, say, model);
                }
            }
            let plan = world.plan();
            prop_assert_eq!(plan.revision, model.revision);
            prop_assert_eq!(plan.reversions, model.reversions);
            prop_assert_eq!(plan.intent.is_some(), model.intent);
            prop_assert_eq!(plan.postponed.as_ref().map_or(0, |one| one.times), model.postponed);
            let interruptions = plan.interruption.as_ref().map_or(0, |one| one.without_checkpoint);
            prop_assert_eq!(interruptions, model.interruptions);
            prop_assert_eq!(world.snapshot.pending.is_some(), model.asks.is_some());
            prop_assert_eq!(plan.queued_divergences.len(), model.queued.iter().flatten().count());
            check_decision(&world);
            check_stored(plan);
        }
    }

    /// Fails if a number from an agent changes when it is stored and read.
    #[test]
    fn any_confidence_reads_back_as_it_was_written(confidence in any::<f64>().prop_filter("finite", |one| one.is_finite())) {
        let mut plan = World::of(spec("auto")).plan().clone();
        plan.choices = vec![Choice { confidence: Some(confidence), ..choice() }];
        check_stored(&plan);
    }
}

/// Fails if the random histories become too shallow to be useful.
#[test]
fn the_random_histories_reach_every_stage_and_the_limit_of_reversions() {
    let mut runner = TestRunner::deterministic();
    let mut reached = BTreeSet::new();
    let (mut applied, mut exhausted) = (0, 0);
    for _ in 0..400 {
        let steps = steps().new_tree(&mut runner).expect("steps can be drawn").current();
        let mut world = World::under("trusted");
        for (say, twist) in steps {
            let say = say.unwrap_or_else(|| onward(world.plan()));
            let given = command(say, twist, &world);
            world.give_as(say.authority(), given);
            reached.insert((world.plan().stage.phase(), world.plan().stage.state().name()));
        }
        applied += u32::from(world.plan().stage.state() == State::Applied);
        exhausted += u32::from(world.plan().reversions == REVERSIONS_MAX);
    }
    assert_eq!(reached.len(), 19, "{reached:?}");
    assert!(applied >= 40 && exhausted >= 40, "of 400, {applied} landed and {exhausted} went back too often");
}
