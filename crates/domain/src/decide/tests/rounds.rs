//! Results that are sent back to their agent: the required acknowledgements, and the answers of a person when
//! they are missing.

use super::say::Say;
use super::world::{Seen, World, spec};
use crate::{
    Answer, Command, Completion, DecisionKind, ErrorClass, Failure, Phase, Progress, Question, RejectedBy,
    ReviewOpinion, ReviewResult, ReviewerSpec, Stage, State,
};

fn executing(reviewers: &[(&str, bool)]) -> World {
    let mut spec = spec("auto");
    spec.agents.reviewers = reviewers
        .iter()
        .map(|(agent, critical)| ReviewerSpec { agent: (*agent).into(), critical: *critical })
        .collect();
    let mut world = World::of(spec);
    for say in [Say::Start, Say::Strategized, Say::Execute, Say::Start] {
        let command = say.to(&world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
    world
}

fn executed(world: &World, reviews: Vec<ReviewResult>) -> Command {
    let completion = Completion::Executed { head: "head".into(), validations: Vec::new(), reviews };
    Command::Complete(world.run(), completion)
}

fn review(agent: &str, commit: &str, opinion: ReviewOpinion) -> ReviewResult {
    ReviewResult { agent: agent.into(), critical: true, commit: commit.into(), opinion }
}

/// Fails if a phase completes without every critical reviewer's acknowledgement of exactly that commit.
#[test]
fn execute_completes_only_with_every_critical_yes_to_that_very_commit() {
    use ReviewOpinion::{Acknowledged, Refused, Silent};
    let complete = Seen::Now(Phase::Execute, State::Complete);
    let refused = || Refused { reason: "no".into() };
    for (said, seen) in [
        (vec![], Seen::Unreviewed),
        (vec![review("critic", "head", Acknowledged)], complete),
        (vec![review("critic", "older", Acknowledged)], Seen::Unreviewed),
        (vec![review("other", "head", Acknowledged)], Seen::Unreviewed),
        (vec![review("critic", "head", refused())], Seen::Unreviewed),
        (vec![review("critic", "head", Silent { reason: "it crashed".into() })], Seen::Unreviewed),
        (vec![review("critic", "head", Acknowledged), review("adviser", "head", refused())], complete),
    ] {
        let mut world = executing(&[("critic", true), ("adviser", false)]);
        let command = executed(&world, said.clone());
        assert_eq!(world.give(command), seen, "{said:?}");
    }
}

/// Fails if a refused result is lost, or if an answer of the person does not work (S4.12).
#[test]
fn used_up_rounds_are_asked_about_and_every_answer_works() {
    for (kind, option, expected) in [
        (RejectedBy::Review, "another_round", (Phase::Execute, State::Queued)),
        (RejectedBy::Review, "revise_strategy", (Phase::Strategize, State::Queued)),
        (RejectedBy::Validation, "abort", (Phase::Execute, State::Cancelled)),
        (RejectedBy::Validation, "another_round", (Phase::Execute, State::Queued)),
    ] {
        let mut world = executing(&[]);
        let question = Question::rounds_used_up(kind, 5, &["no tests".into()], "work", world.plan());
        let failure = Failure::new(ErrorClass::ValidationFailed, "no");
        let command = match kind {
            RejectedBy::Validation => Command::Fail(world.run(), failure, Some(question)),
            RejectedBy::Review => Command::Ask(world.run(), question),
        };
        world.give(command);
        let decision = world.pending().id.clone();
        let answer = Answer { decision, option: option.into(), note: None };
        assert_eq!(world.give(Command::Resolve(answer)), Seen::Now(expected.0, expected.1), "{option}");
        if option == "another_round" {
            assert_eq!(world.plan().work_from.as_deref(), Some("work"), "it goes on with the work so far");
        }
        if option == "abort" {
            // B15: the question is stored with its decision only.
            let Stage::Execute(Progress::Cancelled { reason }) = &world.plan().stage else {
                panic!("not cancelled")
            };
            assert_eq!(reason, "validation question answered with abort");
        }
        let told = world.plan().feedback.last().map(String::as_str).unwrap_or_default();
        assert!(option == "abort" || told.contains("no tests"), "{told}");
    }
}

/// Fails if a retry by a person is refused because of the open question, or if the question stays open.
#[test]
fn trying_anew_answers_a_result_that_was_sent_back_too_often() {
    let mut world = executing(&[]);
    let question = Question::rounds_used_up(RejectedBy::Validation, 4, &["no".into()], "work", world.plan());
    assert_eq!(question.kind, DecisionKind::Validation);
    let failure = Failure::new(ErrorClass::ValidationFailed, "no");
    world.give(Command::Fail(world.run(), failure, Some(question)));
    assert_eq!(world.give(Command::Retry), Seen::Now(Phase::Execute, State::Queued));
    assert!(world.snapshot.pending.is_none());
    assert_eq!(world.plan().work_from, None, "it begins anew");
}
