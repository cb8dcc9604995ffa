//! Budgets: the usage of a run is recorded with its end, and a plan without budget asks.

use super::say::{Say, approve, nothing};
use super::world::{Seen, World, spec};
use crate::{Answer, Command, DecisionKind, Obstacle, Phase, PlanSpec, Remains, ResourceUsage, State};

const QUEUED: Seen = Seen::Now(Phase::Execute, State::Queued);
const WAITING: Seen = Seen::Now(Phase::Execute, State::Waiting);

fn executing(budget: &str) -> World {
    let mut world = World::of(PlanSpec { budget: budget.parse().unwrap(), ..spec("auto") });
    give(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Start]);
    world
}

fn give(world: &mut World, says: &[Say]) {
    for say in says {
        let command = say.to(world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
}

fn tokens(tokens: u64) -> ResourceUsage {
    ResourceUsage { tokens, ..ResourceUsage::default() }
}

fn answer(world: &mut World, option: &str) -> Seen {
    let decision = world.pending().id.clone();
    world.give(Command::Resolve(Answer { decision, option: option.into(), note: None }))
}

/// Fails if the usage of a run is lost with its end, counted twice, or reduced by a late report.
#[test]
fn what_a_run_used_is_kept_with_whatever_ends_it() {
    let mut world = executing("tokens=1000");
    world.spent = Some((world.run(), tokens(70)));
    give(&mut world, &[Say::Prompt]);
    world.spent = Some((world.run(), tokens(60)));
    give(&mut world, &[Say::Fail]);
    assert_eq!(world.plan().used(), tokens(70));
    world.spent = None;
    give(&mut world, &[Say::Retry, Say::Start]);
    assert_eq!((world.plan().spent, world.plan().run_spent), (tokens(70), ResourceUsage::default()));
    world.spent = Some((world.run(), tokens(5)));
    give(&mut world, &[Say::TakeOver]);
    assert_eq!(world.plan().used(), tokens(75));
    // A report of another run is ignored.
    world.spent = Some((world.fresh_run(), tokens(500)));
    give(&mut world, &[Say::Prompt]);
    assert_eq!(world.plan().used(), tokens(75));
}

/// Fails if a run starts without reserving the rest of the budget, or if its end does not release the
/// reservation.
#[test]
fn a_run_reserves_what_is_left_and_every_end_releases_it() {
    let left = |world: &World| world.plan().left().tokens;
    for end in [
        Say::Executed,
        Say::Fail,
        Say::Ask,
        Say::TakeOver,
        Say::Pause,
        Say::Postpone,
        Say::Exhaust,
        Say::Cancel,
    ] {
        let mut world = executing("tokens=1000");
        let reserved = world.plan().reserved.expect("a run that goes on has reserved something");
        assert_eq!((reserved.tokens, left(&world)), (Some(1000), Some(0)), "{end:?}");
        world.spent = Some((world.run(), tokens(70)));
        give(&mut world, &[Say::Prompt]);
        assert_eq!(left(&world), Some(0), "{end:?}");
        give(&mut world, &[end]);
        assert_eq!((world.plan().reserved, left(&world)), (None, Some(930)), "{end:?}");
    }
    let mut world = executing("tokens=1000");
    world.spent = Some((world.run(), tokens(70)));
    give(&mut world, &[Say::Fail, Say::Retry, Say::Start]);
    assert_eq!(world.plan().reserved.and_then(|reserved| reserved.tokens), Some(930));
    let free = World::of(spec("auto"));
    assert_eq!(free.plan().reserved, None);
}

/// Fails if a plan continues with an exhausted budget, or if an answer does not work.
#[test]
fn a_plan_with_nothing_left_starts_no_run_and_every_answer_works() {
    for (option, seen, budget) in [
        ("raise", QUEUED, "tokens=220"),
        ("unlimited", QUEUED, ""),
        ("abort", Seen::Now(Phase::Execute, State::Cancelled), "tokens=100"),
    ] {
        let mut world = executing("tokens=100");
        world.spent = Some((world.run(), tokens(120)));
        let stopped = Command::Exhaust { run: Some(world.run()), work: Remains::Work(Some("half".into())) };
        assert_eq!(world.give(stopped), WAITING);
        world.spent = None;
        let asked = world.pending().question.clone();
        assert_eq!(asked.kind, DecisionKind::Budget);
        assert!(asked.text.contains("120 tokens of 100 tokens"), "{}", asked.text);
        let approve = approve(nothing(&world));
        assert_eq!(world.give(approve), Seen::BudgetSpent);
        assert_eq!(answer(&mut world, option), seen, "{option}");
        assert_eq!(world.plan().budget.to_string(), budget);
        if option != "abort" {
            assert_eq!(world.plan().work_from.as_deref(), Some("half"));
            give(&mut world, &[Say::Start]);
        }
    }
    let mut world = executing("tokens=100");
    world.spent = Some((world.run(), tokens(100)));
    give(&mut world, &[Say::TakeOver]);
    world.spent = None;
    let start = Say::Start.to(&world);
    assert_eq!(world.give(start), Seen::BudgetSpent, "nothing is left to reserve");
}

/// Fails if a rolled-back result, which may already be on the remote, is merged with later work.
#[test]
fn a_rollback_replaces_what_was_completed() {
    let mut world = executing("tokens=1000");
    give(&mut world, &[Say::Executed]);
    let head = world.plan().head_commit.clone();
    assert!(head.is_some());
    assert_eq!(world.give(Command::RollBack { commit: "earlier".into() }), QUEUED);
    assert_eq!((&world.plan().replaces, &world.plan().head_commit), (&head, &None));
    assert_eq!(world.give(Command::RollBack { commit: "earliest".into() }), QUEUED);
    assert_eq!(world.plan().replaces, head, "it stays so");
}

/// Fails if the question about a plan that changed nothing has no working answer.
#[test]
fn a_plan_that_changed_nothing_can_run_again_or_end() {
    for (option, state) in [("run_again", State::Queued), ("finish", State::Cancelled)] {
        let mut world = executing("tokens=100");
        give(&mut world, &[Say::Executed]);
        assert_eq!(
            world.give(Command::HoldBack(Obstacle::NothingChanged)),
            Seen::Now(Phase::Execute, State::Complete)
        );
        assert_eq!(answer(&mut world, option), Seen::Now(Phase::Execute, state));
    }
}
