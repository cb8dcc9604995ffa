//! Gates: the phases before which each profile asks, and the effect of the answers.

use super::say::{Say, advance, approve, violated};
use super::world::{Seen, World};
use crate::{Authority, DecisionKind, Effect, Event, NextPhase, Phase, Profile, State, next_effect};

/// Advances a plan until a gate opens, records the phase and approves it; repeats until the plan is queued
/// for Apply.
fn asked_before(profile: &str) -> Vec<Phase> {
    let mut world = World::under(profile);
    let mut asked = Vec::new();
    while world.plan().stage.phase() != Phase::Apply || world.plan().stage.state() != State::Processing {
        if let Some(gate) = &world.snapshot.pending {
            assert_eq!(gate.question.kind, DecisionKind::Gate);
            asked.push(serde_json::from_value(gate.question.details["before"].clone()).unwrap());
        }
        let say = match (next_effect(world.plan()), world.plan().stage.phase(), world.plan().stage.state()) {
            (Some(Effect::AdvanceToExecute), ..) => Say::ExecuteAlone,
            (Some(Effect::AdvanceToApply), ..) => Say::ApplyAlone,
            (Some(Effect::Tend), ..) => unreachable!("a plan without pieces is not tended"),
            (Some(Effect::DrivePhase(_)), _, State::Queued) => Say::Start,
            (Some(Effect::DrivePhase(_)), Phase::Strategize, _) => Say::Strategized,
            (Some(Effect::DrivePhase(_)), _, _) => Say::Executed,
            (None, _, State::Queued) => Say::Approve,
            (None, Phase::Strategize, _) => Say::Execute,
            (None, _, _) => Say::Apply,
        };
        let command = say.to(&world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
    asked
}

/// Fails if a profile skips a gate, or asks where it must not.
#[test]
fn each_profile_asks_before_its_own_phases_and_no_other() {
    assert_eq!(asked_before("manual"), Phase::ALL);
    assert_eq!(asked_before("supervised"), [Phase::Execute, Phase::Apply]);
    assert_eq!(asked_before("trusted"), [Phase::Apply]);
    assert_eq!(asked_before("auto"), []);
    assert_eq!(Profile::DEFAULT, "supervised");
}

fn strategized(profile: &str) -> World {
    let mut world = World::under(profile);
    for say in [Say::Start, Say::Strategized] {
        let command = say.to(&world);
        world.give(command);
    }
    world
}

/// Fails if a gate is answered without a record of the person.
#[test]
fn a_person_who_goes_on_is_the_one_who_answered_the_gate() {
    let mut world = strategized("supervised");
    let gate = world.pending().id.clone();
    let answer = world.judge(advance(NextPhase::Execute, Some("mind the tests")));
    let Ok(crate::Decided::Change(transition)) = answer else { panic!("{answer:?}") };
    let resolved = transition.events().iter().find_map(|event| match event {
        Event::DecisionResolved(id, resolution) => Some((id.clone(), resolution.clone())),
        _ => None,
    });
    let (id, resolution) = resolved.expect("the gate is answered");
    assert_eq!((id, resolution.option.as_str(), resolution.by.as_str()), (gate, "approve", "ada"));
    assert_eq!(transition.plan().feedback, ["mind the tests"], "the words reach the agents");
}

/// Fails if a person's note is dropped because no gate was open.
#[test]
fn the_words_of_an_approval_are_kept_where_no_gate_asked() {
    let mut world = strategized("auto");
    world.give(advance(NextPhase::Execute, Some("mind the tests")));
    assert_eq!(world.plan().feedback, ["mind the tests"]);
}

/// Fails if a gate whose decision was not read with the plan counts as no gate.
#[test]
fn a_gate_whose_decision_is_missing_stays_shut() {
    for authority in [Authority::Engine, Authority::Operator, Authority::Person] {
        let mut world = strategized("supervised");
        world.snapshot.pending = None;
        assert_eq!(world.give_as(authority, advance(NextPhase::Execute, None)), Seen::Undecided);
    }
    let mut world = World::under("manual");
    world.snapshot.pending = None;
    let approve = Say::Approve.to(&world);
    assert_eq!(world.give(approve), Seen::Undecided);
}

/// S0.1, S0.2, B5: fails if a Strategize that an invariant blocks loses its gate, or if anything else
/// changes.
#[test]
fn a_blocked_strategize_changes_nothing() {
    for profile in ["manual", "auto"] {
        let mut world = World::under(profile);
        let before = world.snapshot.clone();
        assert_eq!(world.give(approve(violated(Phase::Strategize))), Seen::Blocked, "{profile}");
        assert_eq!(world.snapshot, before);
    }
    let mut world = World::under("manual");
    let blocked = approve(violated(Phase::Strategize));
    assert_eq!(world.give_as(Authority::Operator, blocked), Seen::Undecided, "the gate is no operator's");
    let answer = Say::AnswerFirst.to(&world);
    assert_eq!(world.give(answer), Seen::WrongStage, "an approval comes with what the invariants said");
    let passes = Say::Approve.to(&world);
    assert_eq!(world.give(passes), Seen::Now(Phase::Strategize, State::Queued));
    assert_eq!(
        (&world.plan().gate, next_effect(world.plan())),
        (&None, Some(Effect::DrivePhase(Phase::Strategize)))
    );
}

/// Fails if a rejected plan can still be moved by the gate's other answer.
#[test]
fn a_rejected_gate_ends_the_plan() {
    let mut world = strategized("supervised");
    let (reject, approve) = (Say::AnswerLast.to(&world), Say::AnswerFirst.to(&world));
    assert_eq!(world.give(reject), Seen::Now(Phase::Strategize, State::Cancelled));
    assert_eq!(world.give(approve), Seen::DecisionClosed);
    assert_eq!(world.plan().gate, None);
}

/// N5: fails if an answer without a person's authority is accepted, or if an agent moves a plan.
#[test]
fn only_a_person_answers_and_an_agent_changes_nothing() {
    for authority in [Authority::Operator, Authority::Agent, Authority::Engine] {
        for say in [Say::AnswerFirst, Say::AnswerLast] {
            let mut world = strategized("supervised");
            let answer = say.to(&world);
            assert_eq!(world.give_as(authority, answer), Seen::NotAllowed, "{say:?} by {authority:?}");
        }
        let mut world = World::under("manual");
        let approve = Say::Approve.to(&world);
        let refused = if authority == Authority::Agent { Seen::NotAllowed } else { Seen::Undecided };
        assert_eq!(world.give_as(authority, approve), refused);
    }
    for say in Say::ALL {
        let mut world = World::under("auto");
        let command = say.to(&world);
        assert_eq!(world.give_as(Authority::Agent, command), Seen::NotAllowed, "{say:?}");
    }
}
