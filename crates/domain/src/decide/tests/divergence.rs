//! Divergences: the questions, the effect of each answer, and the adoption of a draft written by hand.

use super::say::{Say, diverge, rebased, reconcile, recovered, reset_failed, unreconciled, unrelated};
use super::world::{Seen, World};
use crate::{
    Answer, Authority, Choice, Command, DecisionKind, Event, OptionEffect, Phase, PublishResult, State,
    SyncOutcome, SyncStatus,
};

const EXECUTING: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start];
const APPLYING: &[Say] =
    &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed, Say::Apply, Say::Start];

fn reach(path: &[Say]) -> World {
    let mut world = World::under("auto");
    for say in path {
        let command = say.to(&world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    }
    world
}

fn answer(world: &mut World, option: &str) -> Seen {
    let decision = world.pending().id.clone();
    world.give(Command::Resolve(Answer { decision, option: option.to_owned(), note: None }))
}

fn offered(world: &World) -> Vec<&str> {
    world.pending().question.options.iter().map(|option| option.id.as_str()).collect()
}

/// Fails if a divergence needs two writes, or if its event is missing (S4.5).
#[test]
fn a_divergence_fails_the_plan_asks_and_tells_in_one_transition() {
    let mut world = reach(EXECUTING);
    let Ok(crate::Decided::Change(transition)) = world.judge(diverge(&recovered("p/1"))) else {
        panic!("it is refused")
    };
    let kinds: Vec<_> = transition.events().iter().map(Event::kind).collect();
    assert_eq!(kinds, ["sync.recovered_by_reset", "plan.errored", "decision.opened"]);
    assert_eq!(transition.plan().stage.state(), State::Errored);
    assert!(transition.plan().stage.decision().is_some());
}

/// Fails if an option is offered that cannot work, or if a working one is missing (S4.7).
#[test]
fn only_what_can_work_is_offered() {
    for (outcome, options) in [
        (recovered("p/1"), &["continue", "restore_local", "abort"][..]),
        (reset_failed("p/1"), &["sync_again", "restore_local", "abort"]),
        (unreconciled("p/1"), &["continue", "restore_local", "sync_again", "abort"]),
        // B6: a run cannot start on a history without the base commit.
        (unrelated("p/1"), &["restore_local", "sync_again", "abort"]),
    ] {
        let mut world = reach(EXECUTING);
        world.give(diverge(&outcome));
        assert_eq!(offered(&world), options, "{}", outcome.name());
        assert_eq!(world.pending().question.kind, DecisionKind::Divergence);
    }
}

/// Fails if the text of the question, the failure or the details describe another outcome than the actual one
/// (S4.11).
#[test]
fn the_words_are_made_from_the_outcome() {
    for (outcome, says) in [
        (recovered("p/1"), "was reset to the remote's c2"),
        (reset_failed("p/1"), "failed: index.lock exists"),
        (unreconciled("p/1"), "nothing was changed"),
    ] {
        let mut world = reach(EXECUTING);
        world.give(diverge(&outcome));
        let question = &world.pending().question;
        for text in [&question.text, &outcome.summary()] {
            assert!(text.contains(says), "{text}");
            assert!(text.contains("p/1") && text.contains("a.txt") && text.contains("“mine”"), "{text}");
        }
        assert_eq!(question.details["outcome"], outcome.name());
        assert_eq!(question.details["backup_ref"], "p/1");
        assert_eq!(question.details["discarded_commits"], serde_json::json!(["b1"]));
    }
}

/// B7, B6: fails if a successful outcome has the hint of a failure, if a failure has none, or if the reason
/// mentions edits for unrelated histories.
#[test]
fn hint_and_reason_are_those_of_the_outcome() {
    let idle = "no action is needed";
    for (publishing, settled) in [
        (PublishResult::Done, true),
        (PublishResult::NotAsked, true),
        (PublishResult::Failed { reason: "no".into() }, false),
    ] {
        let outcome = rebased(publishing);
        assert_eq!(outcome.standing() == SyncStatus::Settled, settled, "{outcome:?}");
        assert_eq!(outcome.hint() == idle, settled, "{outcome:?}: {}", outcome.hint());
    }
    let outcome = unrelated("p/1");
    assert!(outcome.summary().contains("no commit in common"), "{}", outcome.summary());
    assert!(!outcome.summary().contains("uncommitted edits conflict"), "{}", outcome.summary());
}

/// D7: fails if a rejected push has different JSON shapes for the plan's branch and for the target.
#[test]
fn a_push_that_failed_is_told_in_one_shape() {
    let told = |branch: &str| {
        let (branch, remote) = (branch.to_owned(), "origin".to_owned());
        Event::Synced(SyncOutcome::PushFailed { branch, remote, head: "c1".into(), reason: "no".into() })
    };
    for branch in ["main", "drydock/p/work"] {
        let details = told(branch).details();
        assert_eq!(told(branch).kind(), "sync.push_failed");
        for (field, value) in [("branch", branch), ("remote", "origin"), ("head", "c1"), ("reason", "no")] {
            assert_eq!(details[field], value, "{details}");
        }
    }
}

/// Fails if "continue" or "restore" starts the new run from another commit than its label says (S4.9).
#[test]
fn an_answer_says_where_the_new_run_begins() {
    let mut world = reach(EXECUTING);
    world.give(diverge(&recovered("p/1")));
    assert_eq!(answer(&mut world, "continue"), Seen::Now(Phase::Execute, State::Queued));
    assert_eq!((world.plan().work_from.as_deref(), &world.plan().replaces), (Some("c2"), &None));

    let mut world = reach(EXECUTING);
    world.give(diverge(&recovered("p/1")));
    assert_eq!(answer(&mut world, "restore_local"), Seen::Now(Phase::Execute, State::Queued));
    let plan = world.plan();
    assert_eq!((plan.work_from.as_deref(), plan.replaces.as_deref()), (Some("p1"), Some("c2")));
}

/// Fails if commits can land that were not validated, reviewed or approved (S4.9).
#[test]
fn what_execute_did_not_judge_goes_through_execute_before_it_lands() {
    for option in ["continue", "restore_local"] {
        let mut world = reach(APPLYING);
        world.give(diverge(&unreconciled("p/1")));
        assert_eq!(answer(&mut world, option), Seen::Now(Phase::Execute, State::Queued), "{option}");
        let plan = world.plan();
        assert_eq!((&plan.head_commit, &plan.head_run, plan.phase_started_at), (&None, &None, None));
    }
    let mut world = reach(APPLYING);
    let SyncOutcome::Unreconciled { mut pin, discarded, local, remote, arrived, clash } = unreconciled("p/1")
    else {
        unreachable!()
    };
    pin.commit = "head".to_owned();
    world.give(diverge(&SyncOutcome::Unreconciled { pin, discarded, local, remote, arrived, clash }));
    assert_eq!(answer(&mut world, "restore_local"), Seen::Now(Phase::Apply, State::Queued), "it was judged");
    assert_eq!(world.plan().head_commit.as_deref(), Some("head"));
}

/// Fails if an unknown, late or second answer changes anything (S4.8).
#[test]
fn an_answer_that_was_not_offered_changes_nothing_and_is_told() {
    let mut world = reach(EXECUTING);
    world.give(diverge(&reset_failed("p/1")));
    let before = world.snapshot.clone();
    assert_eq!(answer(&mut world, "continue"), Seen::UnknownOption, "it could not work");
    assert_eq!(world.snapshot, before);
    let decision = world.pending().id.clone();
    answer(&mut world, "abort");
    let late = Command::Resolve(Answer { decision, option: "restore_local".to_owned(), note: None });
    assert_eq!(world.give(late), Seen::DecisionClosed);
}

/// N5: fails if a sync closes the decision about a divergence that no longer exists, or does not add that
/// fact.
#[test]
fn a_divergence_that_is_gone_stays_asked_with_that_fact() {
    let mut world = reach(EXECUTING);
    world.give(diverge(&unreconciled("p/1")));
    let asked = world.pending().clone();
    let waiting = Seen::Now(Phase::Execute, State::Waiting);
    assert_eq!(world.give(reconcile("c9")), waiting);
    assert_eq!(world.give(reconcile("c9")), Seen::Already, "nothing new");
    assert_eq!(world.give(reconcile("d0")), waiting);
    let open = world.pending();
    assert_eq!((&open.id, open.created_at), (&asked.id, asked.created_at));
    let fact = "branch and remote are both at d0";
    assert_eq!(open.question.text, format!("{} Since then: {fact}", asked.question.text));
    assert_eq!(open.question.details["since"], fact);
    assert_eq!(offered(&world), ["continue", "restore_local", "sync_again", "abort"]);
    assert_eq!(answer(&mut world, "sync_again"), Seen::Now(Phase::Execute, State::Queued));
    assert_eq!(world.plan().take_up, None, "the branch stays where it came together");

    let mut world = reach(EXECUTING);
    world.give(diverge(&recovered("p/1")));
    assert_eq!(world.give(reconcile("c9")), Seen::Undecided);
}

/// Fails if queued divergences that moved nothing accumulate, or if one that moved something is dropped.
#[test]
fn of_queued_divergences_those_that_moved_something_are_all_asked_about() {
    let mut world = reach(EXECUTING);
    world.give(diverge(&unreconciled("p/1")));
    for outcome in [unreconciled("p/2"), unreconciled("p/3"), recovered("p/4")] {
        world.give(diverge(&outcome));
    }
    assert_eq!(world.pending().question.details["backup_ref"], "p/1");
    assert_eq!(world.plan().queued_divergences, [unreconciled("p/3"), recovered("p/4")]);
    answer(&mut world, "continue");
    assert_eq!(world.pending().question.details["backup_ref"], "p/4");
    answer(&mut world, "abort");
    assert_eq!(world.plan().stage.state(), State::Cancelled);
}

/// Fails if a draft written by hand does not complete Strategize, or skips the profile's gate.
#[test]
fn a_draft_by_hand_completes_strategize_as_an_agents_does() {
    let mut world = World::under("supervised");
    let drafted = |chosen: &str| {
        let choice = Choice { question: "how".into(), chosen: chosen.into(), ..Choice::default() };
        Command::Adopt { choices: vec![choice], fanout: None }
    };
    assert_eq!(world.give(drafted("by hand")), Seen::WrongStage, "there is no worktree yet");
    for say in [Say::Start, Say::Fail] {
        let command = say.to(&world);
        world.give(command);
    }
    assert_eq!(world.give(drafted("by hand")), Seen::Now(Phase::Strategize, State::Complete));
    assert_eq!(world.pending().question.kind, DecisionKind::Gate);
    assert_eq!(world.give(drafted("by hand")), Seen::Already);
    assert_eq!(world.give(drafted("otherwise")), Seen::Now(Phase::Strategize, State::Complete));
    assert_eq!(world.plan().choices[0].chosen, "otherwise");
    assert_eq!(world.pending().question.kind, DecisionKind::Gate, "the gate stays");
}

/// Fails if an option of any divergence has no effect in the state machine.
#[test]
fn every_option_of_a_divergence_does_something() {
    for outcome in [recovered("p/1"), reset_failed("p/1"), unreconciled("p/1")] {
        for path in [EXECUTING, APPLYING] {
            let mut world = reach(path);
            world.give(diverge(&outcome));
            let options = world.pending().question.options.clone();
            for option in options {
                let mut world = reach(path);
                world.give(diverge(&outcome));
                let seen = answer(&mut world, &option.id);
                let cancels = option.effect == OptionEffect::Cancel;
                let expected = if cancels { State::Cancelled } else { State::Queued };
                assert!(matches!(seen, Seen::Now(_, state) if state == expected), "{}: {seen:?}", option.id);
            }
        }
    }
}

/// B4: fails if unchecked commits land, if the approval of another head counts for them, or if a caller that
/// is not a person closes the gate.
#[test]
fn what_others_added_is_judged_without_a_writer_and_asked_about_again() {
    let mut world = World::under("manual");
    let give = |world: &mut World, say: Say| {
        let command = say.to(world);
        assert!(matches!(world.give(command), Seen::Now(..)), "{say:?}");
    };
    for say in [Say::Approve, Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed] {
        give(&mut world, say);
    }
    let gate = world.pending().id.clone();
    let command = Say::Reexamine.to(&world);
    for authority in [Authority::Engine, Authority::Operator] {
        assert_eq!(world.give_as(authority, command.clone()), Seen::Undecided);
    }
    // Approved first; the different head is found afterwards.
    give(&mut world, Say::Apply);
    assert_eq!(world.give_as(Authority::Engine, command), Seen::Now(Phase::Execute, State::Queued));
    assert!(world.plan().reexamines && world.plan().head_commit.is_none());
    assert_eq!(world.plan().work_from.as_deref(), Some("c2"));
    for say in [Say::Start, Say::TakeOver, Say::Start] {
        give(&mut world, say);
    }
    assert!(world.plan().reexamines, "a run that was cut short is repeated as it was");
    give(&mut world, Say::Executed);
    assert!(!world.plan().reexamines);
    assert_ne!(world.pending().id, gate, "it is asked about again");
}
