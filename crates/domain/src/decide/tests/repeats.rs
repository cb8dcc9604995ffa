//! Repeated commands: a commit whose response was lost is retried unchanged, and a command without a subject
//! is refused.

use super::say::{Say, failure, limit, remote_away};
use super::world::{Seen, World, spec};
use crate::{
    Answer, Budget, Command, ConflictResolution, DecisionKind, DecisionOption, Delay, ErrorClass,
    OptionEffect, POSTPONED_MAX, POSTPONED_MS_MAX, Phase, PlanSpec, Question, Remains, ResourceUsage, State,
    TakeOverCause,
};

fn give(world: &mut World, says: &[Say]) {
    for say in says {
        let command = say.to(world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
}

fn executing() -> World {
    let budget: Budget = "tokens=100".parse().unwrap();
    let mut world = World::of(PlanSpec { budget, ..spec("auto") });
    give(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Start]);
    world
}

fn applying() -> World {
    let mut world = executing();
    give(&mut world, &[Say::Executed, Say::Apply, Say::Start]);
    world
}

/// Sends a command twice, the second time later and with more usage, like a retry under the same lock.
fn twice(world: &mut World, command: Command) -> (Seen, Seen) {
    let used = |tokens, wall_ms| ResourceUsage { tokens, wall_ms, ..ResourceUsage::default() };
    let run = world.run();
    world.spent = Some((run.clone(), used(120, 1000)));
    let first = world.give(command.clone());
    let after = world.snapshot.clone();
    world.spent = Some((run, used(120, 61_000)));
    let second = world.give(command);
    assert_eq!(world.snapshot, after);
    (first, second)
}

/// code 8.5: fails if the end of a run is refused because its first commit took effect and the response was
/// lost.
#[test]
fn every_end_of_a_run_can_be_retried_after_a_commit_whose_answer_was_lost() {
    let ends = [Say::Executed, Say::Fail, Say::FailAsking, Say::Ask, Say::Recover, Say::Pause, Say::Postpone];
    for end in ends.into_iter().chain([Say::Exhaust, Say::Cancel]) {
        let mut world = executing();
        let command = end.to(&world);
        let (first, second) = twice(&mut world, command);
        assert!(matches!(first, Seen::Now(..)), "{end:?}: {first:?}");
        assert_eq!(second, Seen::Already, "{end:?}");
    }
    let mut world = executing();
    let (_, second) = twice(&mut world, Command::TakeOver(TakeOverCause::Interrupted, Remains::Work(None)));
    assert_eq!(second, Seen::Already, "a run that is handed back");
    for ends in [&[Say::Constrain][..], &[Say::Intend, Say::Land]] {
        let mut world = applying();
        for end in ends {
            let command = end.to(&world);
            let (_, second) = twice(&mut world, command);
            assert_eq!(second, Seen::Already, "{end:?}");
        }
    }
}

/// code 8.5: fails if a rate limit that asks a person is refused on retry.
#[test]
fn a_rate_limit_that_asks_can_be_retried() {
    let asked = Seen::Now(Phase::Execute, State::Waiting);
    let mut world = executing();
    let far = world.now().plus_ms(POSTPONED_MS_MAX + 60_000);
    let command = Command::Postpone(world.run(), Delay::RateLimit(limit(Some(far))));
    assert_eq!(twice(&mut world, command), (asked, Seen::Already));

    let mut world = World::under("auto");
    give(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Start]);
    for _ in 0..POSTPONED_MAX {
        give(&mut world, &[Say::Postpone, Say::Start]);
    }
    let command = Say::Postpone.to(&world);
    assert_eq!(twice(&mut world, command), (asked, Seen::Already));
    // A different open question of the same run does not come from a rate limit.
    let mut world = executing();
    give(&mut world, &[Say::Ask]);
    let command = Say::Postpone.to(&world);
    assert_eq!(world.give(command), Seen::WrongStage);
    let command = Say::Exhaust.to(&world);
    assert_eq!(world.give(command), Seen::Undecided);
}

/// code 8.5: fails if a landing with an unavailable remote is refused, postponed longer or counted twice on
/// retry; or if the next failure of the same run is mistaken for a retry.
#[test]
fn a_landing_that_waits_for_its_remote_can_be_retried() {
    let queued = Seen::Now(Phase::Apply, State::Queued);
    let mut world = applying();
    give(&mut world, &[Say::Intend]);
    // The first time from the run, then each time the next run could not start.
    for times in 1..=3 {
        let command = remote_away(&world);
        assert_eq!(twice(&mut world, command), (queued, Seen::Already), "{times}");
        assert_eq!(world.plan().waits().map(|waits| waits.times), Some(times));
    }
    give(&mut world, &[Say::Start]);
    let command = remote_away(&world);
    assert_eq!(twice(&mut world, command), (queued, Seen::Already));
    assert_eq!(world.plan().waits().map(|waits| waits.times), Some(4));
}

/// code 8.10: fails if an answer about subplans gives a plan without subplans an empty fan-out.
#[test]
fn an_answer_about_subplans_is_refused_where_there_are_none() {
    let drop_one = OptionEffect::Join(ConflictResolution::Drop { piece: "one".parse().unwrap() });
    let effects = [("retry", OptionEffect::RetryLost), ("go_on", OptionEffect::DropLost), ("drop", drop_one)];
    let option = |(id, effect): &(&str, OptionEffect)| DecisionOption {
        id: (*id).to_owned(),
        label: (*id).to_owned(),
        effect: effect.clone(),
    };
    let options: Vec<_> = effects.iter().map(option).collect();
    for (id, _) in &effects {
        let mut world = executing();
        let question = Question {
            kind: DecisionKind::Subplans,
            text: "lost".to_owned(),
            options: options.clone(),
            details: serde_json::Value::Null,
        };
        let failed = Command::Fail(world.run(), failure(ErrorClass::SubplanFailed), Some(question));
        assert!(matches!(world.give(failed), Seen::Now(..)));
        let (before, decision) = (world.snapshot.clone(), world.pending().id.clone());
        let answer = Answer { decision, option: (*id).to_owned(), note: None };
        assert_eq!(world.give(Command::Resolve(answer)), Seen::WrongStage, "{id}");
        assert_eq!(world.give(Command::Retry), Seen::WrongStage, "{id}");
        assert_eq!(world.snapshot, before);
    }
    for say in [Say::Spawn, Say::Tend, Say::Call, Say::Join] {
        let mut world = executing();
        give(&mut world, &[Say::TakeOver]);
        let command = say.to(&world);
        assert_eq!(world.give(command), Seen::WrongStage, "{say:?}");
    }
}
