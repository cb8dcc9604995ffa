//! Interrupted runs (N11): where the next run starts, what is stored, and when a person is asked.

use super::say::{Say, advance, approve, limit, nothing};
use super::world::{Seen, World};
use crate::{
    Answer, Authority, Command, DecisionKind, Delay, INTERRUPTIONS_MAX, NextPhase, Obstacle, Phase,
    RateLimit, Remains, RestartPoint, RestartReason, State, TakeOverCause, next_effect,
};

const QUEUED: Seen = Seen::Now(Phase::Execute, State::Queued);

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

/// Starts the next run at the commit stored in the plan, as the engine does.
fn start(world: &mut World) {
    let Command::Start(start) = Say::Start.to(world) else { panic!("it starts") };
    let from = world.plan().work_from.clone();
    let started = world.give(Command::Start(crate::Start { from, ..start }));
    assert_eq!(started, Seen::Now(Phase::Execute, State::Processing));
}

fn checkpoint(number: u64) -> Option<RestartPoint> {
    Some(RestartPoint { commit: format!("work{number}"), checkpoint: number })
}

fn interrupt(world: &mut World, cause: TakeOverCause, restart: Option<RestartPoint>) -> Seen {
    world.give_as(Authority::Engine, Command::TakeOver(cause, Remains::Work(restart)))
}

fn answer(world: &mut World, option: &str) -> Seen {
    let decision = world.pending().id.clone();
    world.give(Command::Resolve(Answer { decision, option: option.into(), note: None }))
}

fn text(world: &World) -> String {
    world.plan().interruption.as_ref().map(|one| one.describe(world.plan())).unwrap_or_default()
}

/// N11. Fails if the next run does not start from the interrupted run's checkpoint, if an interruption
/// without changes drops it, or if not every worker may continue.
#[test]
fn the_next_run_starts_from_the_checkpoint_of_the_interrupted_one() {
    let mut world = executing();
    let first = world.run();
    assert_eq!(interrupt(&mut world, TakeOverCause::Interrupted, checkpoint(1)), QUEUED);
    let plan = world.plan();
    assert_eq!((plan.take_up.as_deref(), plan.take_up_why), (Some("work1"), RestartReason::Interrupted));
    assert!(plan.gate.is_none() && next_effect(plan).is_some(), "any worker continues it");
    assert_eq!(text(&world), "interrupted, continues from checkpoint 1");
    start(&mut world);
    assert_ne!(world.run(), first, "a fresh run: no verdict or count of the old one counts");
    assert_eq!(world.plan().work_from.as_deref(), Some("work1"));
    assert_eq!(text(&world), "interrupted, continued from checkpoint 1");
    assert_eq!(interrupt(&mut world, TakeOverCause::OwnerGone, None), QUEUED);
    assert_eq!(world.plan().work_from.as_deref(), Some("work1"), "the second run changed nothing");
    assert_eq!(text(&world), "interrupted, continues from checkpoint 1");
    start(&mut world);
    give(&mut world, &[Say::Executed]);
    assert_eq!(world.plan().interruption, None, "the phase ended in another way");
}

/// N11. Breaks when a plan forgets that its interrupted run had a finished result, when a run whose agent was cut short counts as
/// finished, or when guidance of a person does not reach an agent.
#[test]
fn a_finished_result_is_judged_first_by_the_next_run() {
    let judges = |world: &World| world.plan().judges_first();
    let give_result = |world: &mut World, restart| {
        let command = Command::TakeOver(TakeOverCause::OwnerGone, Remains::Result(restart));
        assert_eq!(world.give_as(Authority::Engine, command), QUEUED);
    };
    let mut world = executing();
    give_result(&mut world, checkpoint(1));
    assert_eq!(world.plan().work_from.as_deref(), Some("work1"));
    start(&mut world);
    assert!(judges(&world), "while the next run works");
    // The second run judged the same commit.
    give_result(&mut world, None);
    assert!(judges(&world) && world.plan().work_from.as_deref() == Some("work1"));
    let stored: crate::Plan = serde_json::from_value(serde_json::json!(world.plan())).unwrap();
    assert!(stored.interruption.unwrap().judges, "it is stored");
    start(&mut world);
    interrupt(&mut world, TakeOverCause::OwnerGone, checkpoint(2));
    assert!(!judges(&world), "its agent was fixing it");
    start(&mut world);
    give_result(&mut world, checkpoint(3));
    world.give(Command::Prompt { text: "do more".into() });
    assert!(!judges(&world), "a person wants an agent to read this");
    // An interruption as earlier versions stored it.
    let mut old = serde_json::json!(world.plan());
    old["interruption"].as_object_mut().unwrap().remove("judges");
    assert!(!serde_json::from_value::<crate::Plan>(old).unwrap().interruption.unwrap().judges);
}

/// N11. Fails if a person's note with the answer to a stopped run reaches no agent, because the next run only judges.
#[test]
fn a_note_with_the_answer_to_a_stopped_run_starts_the_agent() {
    for (note, judges) in [(None, true), (Some("also update the docs"), false)] {
        let mut world = executing();
        let command = Command::TakeOver(TakeOverCause::Stopped, Remains::Result(checkpoint(1)));
        world.give_as(Authority::Engine, command);
        let (note, enforcement) = (note.map(str::to_owned), nothing(&world));
        assert_eq!(world.give(Command::Approve { note: note.clone(), enforcement }), QUEUED);
        assert_eq!(world.plan().interruption.as_ref().map(|one| one.judges), Some(judges), "{note:?}");
    }
}

/// N11. Fails if a rate limit or a used-up budget makes the next run start the agent of a finished result, if it
/// keeps the agent from unfinished work, or if guidance of a person reaches no agent.
#[test]
fn a_finished_result_is_judged_first_after_a_limit() {
    let judges = |world: &World| world.plan().judges_first();
    let judging = || {
        let mut world = executing();
        let command = Command::TakeOver(TakeOverCause::OwnerGone, Remains::Result(checkpoint(1)));
        assert_eq!(world.give_as(Authority::Engine, command), QUEUED);
        world
    };
    for (work, kept) in [
        (Remains::Result(Some("work1".to_owned())), true),
        (Remains::Result(Some("work2".to_owned())), true),
        (Remains::Work(Some("work2".to_owned())), false),
    ] {
        // The first judgement of a result, in the run that made it.
        let mut world = executing();
        let met = RateLimit { work: work.clone(), ..limit(None) };
        assert_eq!(world.give(Command::Postpone(world.run(), Delay::RateLimit(met))), QUEUED);
        assert_eq!((judges(&world), &world.plan().work_from.as_ref()), (kept, &work.restart()), "{work:?}");
        let stored: crate::Plan = serde_json::from_value(serde_json::json!(world.plan())).unwrap();
        assert_eq!(stored.judges_first(), kept, "it is stored");
        start(&mut world);
        assert_eq!(judges(&world), kept, "while the next run works");
        interrupt(&mut world, TakeOverCause::OwnerGone, checkpoint(2));
        assert!(!judges(&world), "its agent was fixing it");
        let mut world = executing();
        let met = RateLimit { work: work.clone(), ..limit(None) };
        world.give(Command::Postpone(world.run(), Delay::RateLimit(met)));
        world.give(Command::Prompt { text: "do more".into() });
        assert!(!judges(&world), "a person wants an agent to read this");
        let mut world = executing();
        world.give(Command::Exhaust { run: Some(world.run()), work: work.clone() });
        assert_eq!(answer(&mut world, "unlimited"), QUEUED);
        assert_eq!((judges(&world), &world.plan().work_from.as_ref()), (kept, &work.restart()), "{work:?}");
        start(&mut world);
        give(&mut world, &[Say::Executed]);
        assert!(!judges(&world), "the phase ended");
        let mut world = judging();
        start(&mut world);
        let met = RateLimit { work: work.clone(), ..limit(None) };
        assert_eq!(world.give(Command::Postpone(world.run(), Delay::RateLimit(met))), QUEUED);
        assert_eq!((judges(&world), &world.plan().work_from.as_ref()), (kept, &work.restart()), "{work:?}");
        // A limit that takes days is asked about.
        let mut world = judging();
        start(&mut world);
        let resets = world.now().plus_ms(2 * crate::POSTPONED_MS_MAX);
        let met = RateLimit { work: work.clone(), ..limit(Some(resets)) };
        world.give(Command::Postpone(world.run(), Delay::RateLimit(met)));
        assert_eq!(answer(&mut world, "retry"), QUEUED);
        assert_eq!(judges(&world), kept, "{work:?}");
        let mut world = judging();
        start(&mut world);
        world.give(Command::Exhaust { run: Some(world.run()), work: work.clone() });
        assert_eq!(answer(&mut world, "unlimited"), QUEUED);
        assert_eq!((judges(&world), &world.plan().work_from.as_ref()), (kept, &work.restart()), "{work:?}");
    }
    let mut world = judging();
    world.give(Command::Exhaust { run: None, work: Remains::Result(None) });
    assert!(judges(&world));
    world.give(Command::Prompt { text: "do more".into() });
    assert_eq!(answer(&mut world, "unlimited"), QUEUED);
    assert!(!judges(&world), "a person wants an agent to read this");
}

/// N11. Fails if an interruption after a limit is described as one without work, or if starting over is not offered:
/// the commit of the result is known, but no checkpoint of the interrupted run.
#[test]
fn an_interruption_after_a_limit_names_the_work_so_far() {
    let mut world = executing();
    let met = RateLimit { work: Remains::Result(Some("work1".to_owned())), ..limit(None) };
    world.give(Command::Postpone(world.run(), Delay::RateLimit(met)));
    for _ in 0..INTERRUPTIONS_MAX {
        start(&mut world);
        let command = Command::TakeOver(TakeOverCause::OwnerGone, Remains::Result(None));
        world.give_as(Authority::Engine, command);
    }
    assert_eq!(
        text(&world),
        "interrupted, continues from the work so far; its finished result is validated and reviewed again"
    );
    let options: Vec<_> = world.pending().question.options.iter().map(|option| option.id.as_str()).collect();
    assert_eq!(options, ["approve", "start_over", "reject"]);
    let feedback = world.plan().interruption.as_ref().unwrap().feedback(world.plan());
    assert!(feedback.contains("continue that work"), "{feedback}");
}

/// N11. Fails if a checkpoint is still used after a later command of a person about the work: rollback,
/// revert, an answer or a retry.
#[test]
fn no_run_starts_from_a_checkpoint_that_is_older_than_a_persons_word() {
    let interrupted = || {
        let mut world = executing();
        interrupt(&mut world, TakeOverCause::Interrupted, checkpoint(1));
        world
    };
    let mut world = interrupted();
    give(&mut world, &[Say::RollBack]);
    assert_eq!(world.plan().take_up.as_deref(), Some("snapshot"));
    assert_eq!(world.plan().interruption, None);
    let mut world = interrupted();
    give(&mut world, &[Say::Revert]);
    assert_eq!((&world.plan().take_up, &world.plan().work_from), (&None, &None));
    assert_eq!(world.plan().interruption, None);
    // A divergence is found before the next run; its answer determines where that run starts.
    let mut world = interrupted();
    give(&mut world, &[Say::Recover, Say::AnswerFirst]);
    assert_ne!(world.plan().take_up.as_deref(), Some("work1"));
    assert_eq!(world.plan().interruption, None);
    // A run that continued and then failed is retried; the interruption no longer counts.
    let mut world = interrupted();
    start(&mut world);
    give(&mut world, &[Say::Fail, Say::Retry]);
    assert_eq!(world.plan().interruption, None);
    // A later rate limit has its own work to continue from.
    let mut world = interrupted();
    start(&mut world);
    let met = RateLimit { work: Remains::Work(Some("later".into())), ..limit(None) };
    world.give(Command::Postpone(world.run(), Delay::RateLimit(met)));
    assert_eq!(world.plan().take_up.as_deref(), Some("later"));
    assert_eq!(world.plan().interruption, None);
}

/// page B10. Fails if a worker may continue a plan that a person stopped, if the person's command does not
/// continue it, or if an answer does not work.
#[test]
fn what_a_person_stopped_waits_for_a_person() {
    let stopped = || {
        let mut world = executing();
        assert_eq!(interrupt(&mut world, TakeOverCause::Stopped, checkpoint(1)), QUEUED);
        assert_eq!((world.pending().question.kind, next_effect(world.plan())), (DecisionKind::Gate, None));
        world
    };
    let mut world = stopped();
    assert!(world.pending().question.text.contains("Continue from checkpoint 1?"));
    assert_eq!(interrupt(&mut world, TakeOverCause::Stopped, checkpoint(1)), Seen::Already, "reported twice");
    let start = Say::Start.to(&world);
    assert_eq!(world.give_as(Authority::Engine, start), Seen::Undecided);
    let approved = approve(nothing(&world));
    assert_eq!(world.give(approved), QUEUED);
    assert!(next_effect(world.plan()).is_some());
    assert_eq!(text(&world), "interrupted, continues from checkpoint 1", "the approval forgets nothing");
    let mut world = stopped();
    assert_eq!(answer(&mut world, "reject"), Seen::Now(Phase::Execute, State::Cancelled));
    // Between two phases there is no run to stop; the plan waits anyway.
    let mut world = executing();
    give(&mut world, &[Say::Executed]);
    assert_eq!(
        world.give_as(Authority::Engine, Command::HoldBack(Obstacle::Stopped)),
        Seen::Now(Phase::Execute, State::Complete)
    );
    assert_eq!(next_effect(world.plan()), None);
    assert_eq!(world.give(advance(NextPhase::Apply, None)), Seen::Now(Phase::Apply, State::Queued));
}

/// N11. Fails if consecutive interruptions without progress are not asked about, if progress does not reset
/// the counter, or if an answer does not work.
#[test]
fn three_interruptions_in_a_row_without_a_checkpoint_ask_a_person() {
    for option in ["approve", "start_over", "reject"] {
        let mut world = executing();
        for without in 1..INTERRUPTIONS_MAX {
            interrupt(&mut world, TakeOverCause::OwnerGone, None);
            assert!(world.plan().gate.is_none(), "after {without}");
            start(&mut world);
        }
        interrupt(&mut world, TakeOverCause::Interrupted, checkpoint(1));
        assert!(world.plan().gate.is_none(), "it made progress");
        for _ in 0..INTERRUPTIONS_MAX {
            assert!(world.plan().gate.is_none());
            start(&mut world);
            interrupt(&mut world, TakeOverCause::Interrupted, None);
        }
        assert_eq!(next_effect(world.plan()), None, "a person is asked");
        let asked = &world.pending().question.text;
        assert_eq!(
            asked,
            "execute was interrupted 3 times in a row without a new checkpoint. Run it again from checkpoint 1?"
        );
        match option {
            "approve" => {
                let approved = approve(nothing(&world));
                assert_eq!(world.give(approved), QUEUED);
                assert_eq!(world.plan().work_from.as_deref(), Some("work1"));
                start(&mut world);
                interrupt(&mut world, TakeOverCause::Interrupted, None);
                assert!(world.plan().gate.is_none(), "an answer starts the count again");
            }
            "start_over" => {
                assert_eq!(answer(&mut world, option), QUEUED);
                let plan = world.plan();
                assert_eq!(plan.take_up.as_ref(), Some(&plan.base_commit));
                assert_eq!(plan.interruption, None, "the next agent is not told to continue");
            }
            _ => assert_eq!(answer(&mut world, option), Seen::Now(Phase::Execute, State::Cancelled)),
        }
    }
}

/// Fails if an interrupted landing starts from a checkpoint, or is counted.
#[test]
fn an_interrupted_landing_has_no_checkpoint() {
    let mut world = executing();
    give(&mut world, &[Say::Executed, Say::Apply]);
    for _ in 0..=INTERRUPTIONS_MAX {
        give(&mut world, &[Say::Start]);
        interrupt(&mut world, TakeOverCause::OwnerGone, None);
        assert!(world.plan().gate.is_none() && world.plan().interruption.is_none());
    }
}
