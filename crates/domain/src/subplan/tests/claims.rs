//! The effect of subplans' ends on their parent.

use super::world::{End, World, fanout, piece, start};
use crate::{
    Answer, CallSubplan, ChildState, Command, DecisionKind, Effect, ErrorClass, Failure, INTERRUPTIONS_MAX,
    OnFailure, Phase, Plan, Refusal, Remains, RestartPoint, RunId, Stage, State, SubplanStatus,
    TakeOverCause, Turn, next_effect,
};

fn three(on_failure: OnFailure) -> World {
    World::of(fanout(vec![piece("a", &[]), piece("b", &[]), piece("c", &["a"])], on_failure, 4))
}

#[test]
fn pieces_join_in_their_order_and_then_the_whole_is_judged() {
    let mut world = three(OnFailure::Continue);
    assert_eq!(next_effect(&world.parent.plan), Some(Effect::Tend));
    world.settle(|_| End::Done);
    assert_eq!(world.fanout().head.as_deref(), Some("base+a+b+c"));
    assert_eq!(world.parent.plan.take_up.as_deref(), Some("base+a+b+c"));
    assert_eq!(next_effect(&world.parent.plan), Some(Effect::DrivePhase(Phase::Execute)));
    for name in ["a", "b", "c"] {
        assert_eq!(world.child(name).stage.state(), State::Applied);
        assert_eq!(world.child(name).root, world.parent.plan.id);
    }
}

#[test]
fn a_plan_with_unsettled_pieces_cannot_be_started_and_a_piece_in_line_cannot_either() {
    let mut world = three(OnFailure::Continue);
    assert!(world.tend());
    let waiting = world.child("c").clone();
    assert_eq!(ChildState::of(&waiting), ChildState::InLine);
    assert_eq!(next_effect(&waiting), None);
    let start = |run| {
        let enforcement = crate::Enforcement::nothing(Phase::Strategize);
        Command::Start(crate::Start { run, base: "base".into(), from: None, replaces: None, enforcement })
    };
    let refused = world.give(&waiting.id, start(crate::RunId::from_random(5)));
    assert!(matches!(refused, Err(crate::Refusal::NotCalled { parent }) if parent == world.parent.plan.id));
    assert_eq!(world.parent(start(crate::RunId::from_random(6))), Err(crate::Refusal::SubplansOpen));
}

/// Fails if a subplan keeps its turn while it waits for a rate limit, or gets no turn when the limit has
/// ended.
#[test]
fn a_piece_that_waits_for_a_rate_limit_gives_its_place_to_the_next() {
    let mut world = World::of(fanout(vec![piece("a", &[]), piece("b", &[])], OnFailure::Continue, 1));
    while world.tend() {}
    let a = world.child("a").id.clone();
    while world.child("a").waits().is_none() {
        world.work(&a, End::MeetsLimit);
    }
    assert!(matches!(&world.seen()[0], ChildState::Postponed { agent, .. } if agent == "writer"));
    assert_eq!((next_effect(world.child("a")), &world.seen()[1]), (None, &ChildState::InLine));
    assert!(world.tend());
    assert_eq!(world.seen()[1], ChildState::Busy);
    world.settle(|_| End::Done);
    assert_eq!(world.fanout().head.as_deref(), Some("base+a+b"));
}

#[test]
fn what_waits_for_a_failed_piece_is_cancelled_with_its_name_and_the_rest_goes_on() {
    let mut world = three(OnFailure::Continue);
    world.settle(|name| if name == "a" { End::FailsForGood } else { End::Done });
    assert_eq!(world.piece("a").fate, SubplanStatus::Failed);
    assert_eq!(world.piece("c").fate, SubplanStatus::Cancelled { reason: "subplan a failed".into() });
    assert!(matches!(world.piece("b").fate, SubplanStatus::Joined { .. }));
    assert_eq!(world.child("c").stage.state(), State::Cancelled);
    let asked = world.parent.pending.clone().expect("a person is asked");
    assert_eq!(asked.question.kind, DecisionKind::Subplans);
    assert!(asked.question.text.contains("a failed (agent_missing: it broke)"), "{}", asked.question.text);
    assert_eq!(asked.question.details["lost"][0]["failures"][0]["failure"]["class"], "agent_missing");
    assert_eq!(world.parent.plan.stage.state(), State::Errored);
    // B15: the error is a statement, and the question is stored with its decision only.
    let failure = world.parent.plan.stage.failure().expect("it failed");
    assert_eq!(format!("{}. What should happen next?", failure.text), asked.question.text);
}

#[test]
fn fail_fast_stops_those_at_work_and_counts_none_of_them_as_failed() {
    let mut world =
        World::of(fanout(vec![piece("a", &[]), piece("b", &[]), piece("c", &[])], OnFailure::FailFast, 2));
    while world.tend() {}
    let a = world.child("a").id.clone();
    while next_effect(&world.children[&a].plan).is_some() {
        world.work(&a, End::FailsForGood);
    }
    world.settle(|_| End::Done);
    let reason = "subplan a failed".to_owned();
    assert_eq!(world.piece("b").fate, SubplanStatus::Cancelled { reason: reason.clone() });
    assert_eq!(world.piece("c").fate, SubplanStatus::Cancelled { reason });
    assert!(world.piece("b").failures.is_empty());
    assert_eq!(world.child("b").stage.state(), State::Cancelled);
}

#[test]
fn all_failures_are_kept_and_the_attempts_are_counted() {
    let mut stubborn = piece("a", &[]);
    stubborn.max_attempts = 3;
    let mut world = World::of(fanout(vec![stubborn], OnFailure::Continue, 4));
    world.settle(|_| End::Fails);
    assert_eq!(world.piece("a").failures.len(), 3);
    let runs: std::collections::BTreeSet<_> =
        world.piece("a").failures.iter().map(|record| record.run.clone()).collect();
    assert_eq!(runs.len(), 3);
    assert_eq!(world.starts[&world.child("a").id], 3);
    // Three more attempts, because a person chose to retry.
    world.answer("retry");
    world.settle(|_| End::Fails);
    assert_eq!(world.piece("a").failures.len(), 6);
}

#[test]
fn a_person_can_go_on_without_what_was_lost_or_try_it_again() {
    let mut world = three(OnFailure::Continue);
    world.settle(|name| if name == "a" { End::FailsForGood } else { End::Done });
    world.answer("go_on");
    world.settle(|_| End::Done);
    assert_eq!((world.piece("a").fate.name(), world.piece("c").fate.name()), ("dropped", "dropped"));
    assert_eq!(next_effect(&world.parent.plan), Some(Effect::DrivePhase(Phase::Execute)));
    assert_eq!(world.parent.plan.take_up.as_deref(), Some("base+b"));

    let mut world = three(OnFailure::Continue);
    world.settle(|name| if name == "a" { End::FailsForGood } else { End::Done });
    let cancelled = world.child("c").id.clone();
    world.answer("retry");
    world.settle(|_| End::Done);
    assert_ne!(world.child("c").id, cancelled);
    assert_eq!(world.fanout().head.as_deref(), Some("base+b+a+c"));
}

#[test]
fn cancel_and_revert_go_down_the_tree() {
    for command in
        [Command::Cancel { reason: "enough".into() }, Command::Revert { reason: "another way".into() }]
    {
        let mut world = three(OnFailure::Continue);
        while world.tend() {}
        world.parent(command).unwrap();
        assert_eq!(next_effect(&world.parent.plan), Some(Effect::Tend), "its subplans are still to be ended");
        while world.tend() {}
        assert!(world.children.values().all(|child| child.plan.stage.state() == State::Cancelled));
        assert!(world.parent.plan.winding.is_empty());
    }
}

#[test]
fn a_piece_that_asks_gives_its_place_to_others_and_waits_in_line_again() {
    let mut world = World::of(fanout(vec![piece("a", &[]), piece("b", &[])], OnFailure::Continue, 1));
    world.settle(|name| if name == "a" { End::Asks } else { End::Done });
    assert_eq!(ChildState::of(world.child("a")), ChildState::Asking);
    assert_eq!(world.child("a").place.as_ref().unwrap().turn, Turn::InLine);
    assert!(
        matches!(ChildState::of(world.child("b")), ChildState::Finished { .. }),
        "b ran while a asked, and joins after it"
    );
    let id = world.child("a").id.clone();
    let decision = world.child("a").pending_decision().unwrap().clone();
    world
        .give(
            &id,
            Command::Resolve(crate::Answer { decision, option: "answered".into(), note: Some("red".into()) }),
        )
        .unwrap();
    world.settle(|_| End::Done);
    assert_eq!(world.fanout().head.as_deref(), Some("base+a+b"));
}

#[test]
fn a_conflict_is_settled_as_the_person_says() {
    for (option, fate) in
        [("take_child", "joined"), ("take_parent", "joined"), ("drop", "dropped"), ("agent", "joined")]
    {
        let mut world = World::of(fanout(vec![piece("a", &[])], OnFailure::Continue, 1));
        while !matches!(world.seen()[0], ChildState::Finished { .. }) {
            world.tend();
            for child in world.children.keys().cloned().collect::<Vec<_>>() {
                world.work(&child, End::Done);
            }
        }
        world.conflict("a");
        assert!(matches!(world.parent.plan.stage, Stage::Execute(crate::Progress::Waiting(_))));
        world.answer(option);
        world.settle(|_| End::Done);
        assert_eq!(world.piece("a").fate.name(), fate, "{option}");
        assert_eq!(next_effect(&world.parent.plan), Some(Effect::DrivePhase(Phase::Execute)), "{option}");
        let resolver = world.fanout().pieces.iter().find(|piece| piece.mends.is_some());
        assert_eq!(resolver.is_some(), option == "agent");
    }
}

#[test]
fn a_piece_whose_resolver_is_stopped_is_lost_with_it_and_can_be_tried_again() {
    let mut world = World::of(fanout(vec![piece("two", &[]), piece("other", &[])], OnFailure::FailFast, 4));
    while !matches!(world.seen().first(), Some(ChildState::Finished { .. })) {
        world.tend();
        if world.piece("two").child.is_some() {
            let two = world.child("two").id.clone();
            world.work(&two, End::Done);
        }
    }
    world.conflict("two");
    world.answer("agent");
    world.settle(|name| if name == "other" { End::FailsForGood } else { End::Done });
    let asked = world.parent.pending.clone().expect("a person is asked");
    assert!(
        asked.question.text.contains("two failed (its conflict was not resolved)"),
        "{}",
        asked.question.text
    );
    world.answer("retry");
    while world.tend() {
        if matches!(ChildState::of(world.child("two")), ChildState::Finished { .. })
            && world.piece("two").fate == SubplanStatus::Open
        {
            break;
        }
    }
    world.conflict("two");
    world.answer("agent");
    let names: Vec<_> = world.fanout().pieces.iter().map(|piece| piece.name.to_string()).collect();
    assert_eq!(names, ["two", "resolve-two-2", "resolve-two", "other"], "no two have the same name");
    world.settle(|_| End::Done);
    assert_eq!((world.piece("two").fate.name(), world.piece("other").fate.name()), ("joined", "joined"));
}

#[test]
fn a_rollback_goes_on_from_its_checkpoint_and_not_from_what_has_joined() {
    let mut world = three(OnFailure::Continue);
    world.settle(|name| if name == "a" { End::FailsForGood } else { End::Done });
    world.parent(Command::RollBack { commit: "snapshot".into() }).unwrap();
    while world.tend() {}
    assert_eq!(world.parent.plan.stage.state(), State::Queued);
    assert_eq!(world.parent.plan.work_from.as_deref(), Some("snapshot"));
    assert_eq!(next_effect(&world.parent.plan), Some(Effect::DrivePhase(Phase::Execute)));
}

/// Fails if the unused budget of subplans does not return to their parent, or if their usage, even beyond
/// their share, is not counted.
#[test]
fn what_pieces_did_not_use_is_their_parents_again() {
    let mut world = three(OnFailure::Continue);
    world.parent.plan.budget.tokens = Some(400);
    assert!(world.tend());
    assert_eq!((world.parent.plan.used().tokens, world.parent.plan.handed.len()), (300, 3));
    let (more, less) = (world.child("b").id.clone(), world.child("c").id.clone());
    world.children.get_mut(&more).unwrap().plan.spent.tokens = 130;
    world.children.get_mut(&less).unwrap().plan.spent.tokens = 20;
    world.children.get_mut(&more).unwrap().plan.budget.tokens = None;
    world.settle(|name| if name == "a" { End::FailsForGood } else { End::Done });
    assert_eq!(
        world.parent.plan.used().tokens,
        100 + 130 + 20,
        "what failed may be tried anew and keeps its share"
    );
    world.answer("go_on");
    while world.tend() {}
    assert_eq!((world.parent.plan.used().tokens, world.parent.plan.handed.len()), (130 + 20, 0));
    let mut whole = three(OnFailure::Continue);
    whole.parent.plan.budget.tokens = Some(400);
    whole.settle(|_| End::Done);
    assert_eq!(whole.parent.plan.used().tokens, 0);
}

/// Fails if the usage of a subplan with an empty share is not counted, or if an unlimited resource is
/// counted.
#[test]
fn what_a_piece_used_beyond_a_share_of_nothing_counts() {
    let mut world = three(OnFailure::Continue);
    world.parent.plan.budget.tokens = Some(3);
    assert!(world.tend());
    assert_eq!((world.parent.plan.used().tokens, world.parent.plan.handed.len()), (0, 3));
    let child = world.child("b").id.clone();
    let plan = &mut world.children.get_mut(&child).unwrap().plan;
    (plan.spent.tokens, plan.spent.tool_calls) = (50, 7);
    for child in world.children.values_mut() {
        child.plan.budget.tokens = None;
    }
    world.settle(|_| End::Done);
    let used = world.parent.plan.used();
    assert_eq!((used.tokens, used.tool_calls, world.parent.plan.handed.len()), (50, 0, 0));
    assert_eq!(world.parent.plan.budget.used_up(used), ["50 tokens of 3 tokens"]);
}

#[test]
fn a_result_that_was_handed_over_is_not_taken_back() {
    let mut world = three(OnFailure::Continue);
    while !matches!(
        ChildState::of(world.children.values().next().map_or(&world.parent.plan, |child| &child.plan)),
        ChildState::Finished { .. }
    ) {
        world.tend();
        if let Some(child) = world.children.keys().next().cloned() {
            world.work(&child, End::Done);
        }
    }
    let child = world.children.keys().next().cloned().unwrap();
    assert!(world.give(&child, Command::Revert { reason: "again".into() }).is_err());
    assert!(world.give(&child, Command::RollBack { commit: "snapshot".into() }).is_err());
}

/// Interrupts runs of a queued Execute until a person is asked; the first one leaves a checkpoint.
fn interrupt_often(mut give: impl FnMut(Command) -> Result<(), Refusal>) {
    for number in 0..=u128::from(INTERRUPTIONS_MAX) {
        give(start(RunId::from_random(900 + number))).unwrap();
        let point = RestartPoint { commit: "work".into(), checkpoint: 1 };
        let restart = (number == 0).then_some(point);
        give(Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(restart))).unwrap();
    }
}

/// Fails a run of a queued Execute that left work, retries from the work, and fails that run too.
fn fail_twice(mut give: impl FnMut(Command) -> Result<(), Refusal>) {
    for number in [800, 801] {
        let run = RunId::from_random(number);
        give(start(run.clone())).unwrap();
        let failure =
            Failure { work: Some("work".into()), ..Failure::new(ErrorClass::FailedModel, "it broke") };
        give(Command::Fail(run, failure, None)).unwrap();
        if number == 800 {
            give(Command::Retry).unwrap();
        }
    }
}

fn answer(plan: &Plan, option: &str) -> Command {
    let decision = plan.pending_decision().expect("it asks").clone();
    Command::Resolve(Answer { decision, option: option.into(), note: None })
}

/// N1, N11. Fails if starting over drops the joined results of the subplans, or continues the work of an
/// earlier run.
#[test]
fn starting_over_keeps_the_joined_results() {
    let mut world = three(OnFailure::Continue);
    world.settle(|_| End::Done);
    interrupt_often(|command| world.parent(command));
    let start_over = answer(&world.parent.plan, "start_over");
    world.parent(start_over).unwrap();
    assert_eq!(world.parent.plan.take_up.as_deref(), Some("base+a+b+c"));
    fail_twice(|command| world.parent(command));
    world.parent(Command::StartOver).unwrap();
    assert_eq!(world.parent.plan.take_up.as_deref(), Some("base+a+b+c"));
}

/// N1, N11. Fails if a conflict-resolving subplan starts over without the conflict markers, or if a retry
/// changes the commit at which it starts.
#[test]
fn a_subplan_starts_over_from_the_commit_of_its_call() {
    for (from, began) in [(Some("marked"), "marked"), (None, "called")] {
        let mut world = three(OnFailure::Continue);
        assert!(world.tend());
        let child = world.child("a").id.clone();
        let call = CallSubplan { base: "called".into(), from: from.map(str::to_owned) };
        world.give(&child, Command::Call(call)).unwrap();
        let executes = |world: &World| {
            let stage = &world.child("a").stage;
            (stage.phase(), stage.state()) == (Phase::Execute, State::Queued)
        };
        while !executes(&world) {
            world.work(&child, End::Done);
        }
        world.children.get_mut(&child).unwrap().plan.base_commit = "called".into();
        interrupt_often(|command| world.give(&child, command));
        let start_over = answer(world.child("a"), "start_over");
        world.give(&child, start_over).unwrap();
        assert_eq!(world.child("a").take_up.as_deref(), Some(began));
        fail_twice(|command| {
            if matches!(command, Command::Start(_)) {
                world.give(&child, Command::Call(CallSubplan { base: "later".into(), from: None }))?;
            }
            world.give(&child, command)
        });
        world.give(&child, Command::StartOver).unwrap();
        assert_eq!(world.child("a").take_up.as_deref(), Some(began));
    }
}
