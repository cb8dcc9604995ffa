//! Rate limits: how long a plan waits automatically, and when a person is asked.

use super::say::{Say, limit};
use super::world::{Seen, World};
use crate::{
    Answer, Command, DecisionKind, Delay, POSTPONED_MAX, POSTPONED_MS_MAX, Phase, RateLimit, Remains, State,
    Timestamp,
};

const QUEUED: Seen = Seen::Now(Phase::Execute, State::Queued);
const WAITING: Seen = Seen::Now(Phase::Execute, State::Waiting);

fn give(world: &mut World, says: &[Say]) {
    for say in says {
        let command = say.to(world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
}

fn executing() -> World {
    let mut world = World::under("auto");
    give(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Start]);
    world
}

/// Reports a rate limit of the current run that ends at `resets`.
fn meet(world: &mut World, resets: Option<Timestamp>) -> Seen {
    world.give(Command::Postpone(world.run(), Delay::RateLimit(limit(resets))))
}

fn answer(world: &mut World, option: &str) -> Seen {
    let decision = world.pending().id.clone();
    world.give(Command::Resolve(Answer { decision, option: option.into(), note: None }))
}

/// Fails if the reset time or the work so far is lost.
#[test]
fn a_limited_run_is_due_when_its_limit_is_over_and_goes_on_with_its_work() {
    let mut world = executing();
    let resets = world.now().plus_ms(90_000);
    let work = Remains::Work(Some("half".to_owned()));
    let met = RateLimit { agent: "writer".into(), resets: Some(resets), work };
    assert_eq!(world.give(Command::Postpone(world.run(), Delay::RateLimit(met))), QUEUED);
    let waits = world.plan().waits().expect("it waits");
    assert_eq!((waits.until, waits.times), (resets, 1));
    assert_eq!(world.plan().work_from.as_deref(), Some("half"));
    give(&mut world, &[Say::Start]);
    assert_eq!(world.plan().waits(), None, "a phase that runs waits for nothing");
}

/// Fails if a plan waits without limit, or if an answer does not work.
#[test]
fn limits_in_a_row_are_counted_and_then_a_person_is_asked() {
    for (option, seen) in
        [("retry", QUEUED), ("wait", QUEUED), ("abort", Seen::Now(Phase::Execute, State::Cancelled))]
    {
        let mut world = executing();
        for _ in 0..POSTPONED_MAX {
            assert_eq!(meet(&mut world, None), QUEUED);
            give(&mut world, &[Say::Start]);
        }
        assert_eq!(meet(&mut world, None), WAITING);
        assert_eq!(world.pending().question.kind, DecisionKind::RateLimit);
        assert_eq!(answer(&mut world, option), seen, "{option}");
        assert_eq!(world.plan().waits().is_some(), option == "wait");
    }
}

/// Fails if another end of a run does not reset the counter.
#[test]
fn a_run_that_ends_otherwise_ends_the_count() {
    let mut world = executing();
    meet(&mut world, None);
    give(&mut world, &[Say::Start, Say::Fail, Say::Retry, Say::Start]);
    meet(&mut world, None);
    assert_eq!(world.plan().waits().map(|waits| waits.times), Some(1));
}

/// Fails if a plan waits for days without asking.
#[test]
fn a_limit_that_lasts_too_long_is_asked_about() {
    let mut world = executing();
    let far = world.now().plus_ms(POSTPONED_MS_MAX + 60_000);
    assert_eq!(meet(&mut world, Some(far)), WAITING);
    assert!(world.pending().question.text.contains("1970-01-02T00:01:00Z"), "{:?}", world.pending());
    assert_eq!(answer(&mut world, "wait"), QUEUED);
    assert_eq!(world.plan().waits().map(|waits| waits.until), Some(far));
}

/// Fails if a person cannot end the wait, or if the postponement outlives its time.
#[test]
fn a_person_can_go_on_at_once() {
    let mut world = executing();
    meet(&mut world, None);
    assert_eq!(world.give(Command::Retry), QUEUED);
    assert_eq!(world.plan().waits(), None);
    assert_eq!(world.give(Command::Retry), Seen::Already);
}
