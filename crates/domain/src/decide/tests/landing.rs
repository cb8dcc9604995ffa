//! Landings on a remote: an intent outlives an unavailable remote, and a landing is recorded once.

use super::say::{Say, remote_away};
use super::world::{Seen, World};
use crate::{Command, Effect, Landed, LandingProof, Phase, State, next_effect};

const QUEUED: Seen = Seen::Now(Phase::Apply, State::Queued);

fn applying(then: &[Say]) -> World {
    let mut world = World::under("auto");
    let way = [Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed, Say::Apply, Say::Start];
    for say in way.iter().chain(then) {
        let command = say.to(&world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
    world
}

fn away(world: &mut World) -> Seen {
    let command = remote_away(world);
    world.give(command)
}

fn found(commit: &str) -> Landed {
    Landed { commit: commit.into(), proof: LandingProof::Found, warning: None }
}

/// N2, BUG-2. Fails if a landing whose remote did not respond is given up, recorded, or asked about instead
/// of retried with growing delays.
#[test]
fn a_remote_that_is_away_is_waited_for_and_the_intent_stays() {
    let mut world = applying(&[Say::Intend]);
    let mut pauses = Vec::new();
    for times in 1..=12 {
        assert_eq!(away(&mut world), QUEUED);
        let (plan, now) = (world.plan().clone(), world.plan().updated_at);
        let waits = plan.waits().expect("it waits");
        assert_eq!((waits.times, waits.cause()), (times, "remote_unreachable"));
        assert_eq!(waits.reason(), "origin cannot be reached: connection refused");
        pauses.push((waits.until.as_micros() - now.as_micros()) / 1_000_000);
        assert!(plan.intent.is_some() && plan.pending_decision().is_none());
        assert_eq!(next_effect(&plan), Some(Effect::DrivePhase(Phase::Apply)));
        let start = Say::Start.to(&world);
        assert_eq!(world.give(start), Seen::Now(Phase::Apply, State::Processing));
    }
    assert_eq!(pauses[..5], [2, 4, 8, 16, 32]);
    assert_eq!(pauses.last(), Some(&300));
    let land = Say::Land.to(&world);
    assert_eq!(world.give(land), Seen::Now(Phase::Apply, State::Applied));
    assert_eq!(world.plan().postponed, None);
}

/// N2. Fails if a plan whose landing may have happened is cancelled or sent back before the target was
/// checked.
#[test]
fn a_landing_of_unknown_end_is_not_cancelled_away() {
    let mut world = applying(&[Say::Intend]);
    away(&mut world);
    let cancel = Say::Cancel.to(&world);
    assert_eq!(world.give(cancel), Seen::IntentOpen);
}

/// Fails if a landing that cannot start is not postponed, or if another phase waits for a remote.
#[test]
fn apply_alone_waits_for_a_remote() {
    let mut world = applying(&[Say::TakeOver]);
    assert_eq!(away(&mut world), QUEUED);
    let mut world = World::under("auto");
    let start = Say::Start.to(&world);
    world.give(start);
    assert_eq!(away(&mut world), Seen::WrongStage);
}

/// S2.3, B8, BUG-7. Fails if a landing that is missing in the store cannot be recorded.
#[test]
fn a_landing_that_was_found_needs_no_intent() {
    for then in [&[][..], &[Say::Intend]] {
        let mut world = applying(then);
        let run = world.run();
        let seen = world.give(Command::Land(run.clone(), found("earlier")));
        assert_eq!(seen, Seen::Now(Phase::Apply, State::Applied));
        let plan = world.plan();
        assert_eq!((plan.landed_commit.as_deref(), &plan.intent), (Some("earlier"), &None));
        assert_eq!(world.give(Command::Land(run, found("earlier"))), Seen::Already);
    }
}
