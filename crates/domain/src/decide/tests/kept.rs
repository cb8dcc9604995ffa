//! Work of a failed run: where a retry starts, and which authority may accept the work (N1).

use super::say::Say;
use super::world::{Seen, World};
use crate::{Act, Answer, Authority, Command, ErrorClass, Failure, Phase, Question, State, offers};

const QUEUED: Seen = Seen::Now(Phase::Execute, State::Queued);

/// Returns a plan whose Execute failed with this work.
fn failed(work: Option<&str>) -> World {
    let mut world = World::under("auto");
    for say in [Say::Start, Say::Strategized, Say::Execute, Say::Start] {
        world.give(say.to(&world));
    }
    let failure = Failure { work: work.map(str::to_owned), ..Failure::new(ErrorClass::FailedModel, "500") };
    world.give(Command::Fail(world.run(), failure, None));
    world
}

/// N1: fails if a retry drops the kept work, or if starting over keeps it.
#[test]
fn a_retry_continues_from_the_kept_work_and_starting_over_does_not() {
    let mut world = failed(Some("kept"));
    assert_eq!(world.give(Command::Retry), QUEUED);
    let plan = world.plan();
    assert_eq!((plan.work_from.as_deref(), plan.take_up.as_deref()), (Some("kept"), Some("kept")));
    assert!(!plan.reexamines, "an agent continues it");

    let mut world = failed(Some("kept"));
    assert_eq!(world.give(Command::StartOver), QUEUED);
    assert_eq!(world.plan().work_from.as_deref(), Some(world.plan().base_commit.as_str()));

    let mut world = failed(None);
    assert_eq!(world.give(Command::Retry), QUEUED);
    assert_eq!(world.plan().work_from, None);
}

/// DESIGN 2: breaks when a repeated command is refused although it took effect, or passes for another one that did.
#[test]
fn starting_over_and_accepting_can_be_repeated() {
    for (command, other) in [(Command::StartOver, Command::Accept), (Command::Accept, Command::StartOver)] {
        let mut world = failed(Some("kept"));
        assert_eq!(world.give(command.clone()), QUEUED);
        let queued = world.snapshot.clone();
        assert_eq!(world.give(command.clone()), Seen::Already);
        assert_eq!(world.give(other.clone()), Seen::WrongStage, "the other one did not take effect");
        assert_eq!(world.snapshot, queued);
        let Command::Start(start) = Say::Start.to(&world) else { panic!("it starts") };
        let from = world.plan().work_from.clone();
        world.give(Command::Start(crate::Start { from, ..start }));
        assert_eq!(world.give(command.clone()), Seen::Already, "while its run works");
        assert_eq!(world.give(other), Seen::WrongStage);
        world.give(Say::Executed.to(&world));
        assert_eq!(world.give(command), Seen::WrongStage, "its run is over");
    }
    let mut world = failed(Some("kept"));
    world.give(Command::Retry);
    assert_eq!(
        (world.give(Command::StartOver), world.give(Command::Accept)),
        (Seen::WrongStage, Seen::WrongStage)
    );
}

/// N1: fails if unfinished work is accepted without a person's authority, without being checked, or where
/// there is none.
#[test]
fn only_a_person_accepts_kept_work_and_it_is_judged_without_a_writer() {
    for authority in [Authority::Operator, Authority::Agent, Authority::Engine] {
        let mut world = failed(Some("kept"));
        assert_eq!(world.give_as(authority, Command::Accept), Seen::NotAllowed, "{authority:?}");
        let offered = offers(&world.snapshot, None, authority);
        assert!(offered.iter().all(|offer| offer.act != Act::Accept), "{authority:?}");
    }
    let mut world = failed(Some("kept"));
    assert!(offers(&world.snapshot, None, Authority::Person).iter().any(|offer| offer.act == Act::Accept));
    assert_eq!(world.give(Command::Accept), QUEUED);
    assert_eq!((world.plan().work_from.as_deref(), world.plan().reexamines), (Some("kept"), true));
    assert_eq!(failed(None).give(Command::Accept), Seen::WrongStage);
}

/// Finding 8 of agents: fails if asking a silent reviewer again also runs the writer again.
#[test]
fn asking_a_reviewer_again_has_no_writer() {
    for (option, writer) in [("ask_again", false), ("another_round", true)] {
        let mut world = World::under("auto");
        for say in [Say::Start, Say::Strategized, Say::Execute, Say::Start] {
            world.give(say.to(&world));
        }
        let question = Question::no_verdict("critic", 3, "it gave no verdict", "head", world.plan());
        world.give(Command::Ask(world.run(), question));
        let decision = world.pending().id.clone();
        let answer = Answer { decision, option: option.into(), note: None };
        assert_eq!(world.give(Command::Resolve(answer)), QUEUED);
        assert_eq!(world.plan().work_from.as_deref(), Some("head"));
        assert_eq!(world.plan().reexamines, !writer, "{option}");
    }
}

/// N1. Fails if a question in a run without a writer makes the next run have one, or if one about refused
/// work does not.
#[test]
fn an_answer_leaves_a_run_without_a_writer_as_it_is() {
    for (asks_for_work, writer) in [(false, false), (true, true)] {
        let mut world = failed(Some("kept"));
        world.give(Command::Accept);
        let start = Say::Start.to(&world);
        world.give(start);
        let question = match asks_for_work {
            false => Question::from_agent("Tabs?".into(), Vec::new()).going_on_with("kept", world.plan()),
            true => Question::no_verdict("critic", 3, "it gave no verdict", "kept", world.plan()),
        };
        let option = if asks_for_work { "another_round" } else { Question::ANSWERED };
        world.give(Command::Ask(world.run(), question));
        let decision = world.pending().id.clone();
        let answer = Answer { decision, option: option.into(), note: Some("yes".into()) };
        assert_eq!(world.give(Command::Resolve(answer)), QUEUED);
        assert_eq!((world.plan().take_up.as_deref(), world.plan().reexamines), (Some("kept"), !writer));
    }
    let mut world = failed(Some("kept"));
    world.give(Command::Accept);
    let start = Say::Start.to(&world);
    world.give(start);
    let question = Question::budget(world.plan(), Some("kept".into()));
    world.give(Command::Ask(world.run(), question));
    let decision = world.pending().id.clone();
    world.give(Command::Resolve(Answer { decision, option: "unlimited".into(), note: None }));
    assert!(world.plan().reexamines, "a budget says nothing of the work");
}
