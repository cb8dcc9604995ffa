//! Individual guarantees of the state machine.

use super::say::{Say, advance, diverge, intent, landed, nothing, recovered, start, violated};
use super::world::{Seen, World, spec};
use crate::{
    Advance, Answer, Authority, Changes, Command, Completion, Decided, DecisionChange, DecisionKind,
    Enforcement, Event, InvariantCheck, NextPhase, Phase, Question, REVERSIONS_MAX, Refusal, State,
    Validation, ValidationResult,
};

fn walk(world: &mut World, says: &[Say]) {
    for say in says {
        let command = say.to(world);
        let seen = world.give(command);
        assert!(matches!(seen, Seen::Now(..)), "{say:?} is {seen:?}");
    }
}

fn reach(says: &[Say]) -> World {
    let mut world = World::under("auto");
    walk(&mut world, says);
    world
}

const EXECUTING: &[Say] = &[Say::Start, Say::Strategized, Say::Execute, Say::Start];
const APPLYING: &[Say] =
    &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed, Say::Apply, Say::Start];

/// Fails if a violated rule, or one that could not be checked, does not block a phase (S0.5).
#[test]
fn an_invariant_that_is_not_known_to_hold_blocks_and_changes_nothing() {
    let unknown = |at| {
        let mut seen = violated(at);
        seen.findings[0].check = InvariantCheck::Unknown("no such field".into());
        seen
    };
    let kinds: [fn(Phase) -> Enforcement; 2] = [violated, unknown];
    let advance = |to: NextPhase, enforcement| {
        Command::Advance(Advance { to, enforcement, note: None, changes: Changes::Something })
    };
    for seen in kinds {
        let mut fresh = reach(&[]);
        let run = fresh.fresh_run();
        assert_eq!(fresh.give(start(run, seen(Phase::Strategize))), Seen::Blocked);
        assert_eq!((fresh.plan().revision, &fresh.plan().run), (1, &None));

        let mut strategized = reach(&[Say::Start, Say::Strategized]);
        assert_eq!(strategized.give(advance(NextPhase::Execute, seen(Phase::Execute))), Seen::Blocked);
        assert_eq!(strategized.plan().stage.state(), State::Complete);

        let mut executed = reach(&[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed]);
        assert_eq!(executed.give(advance(NextPhase::Apply, seen(Phase::Apply))), Seen::Blocked);
        assert_eq!(executed.plan().stage.phase(), Phase::Execute);
    }
    let kept = Refusal::Blocked(violated(Phase::Apply)).events();
    assert!(matches!(kept.as_slice(), [Event::InvariantBlocked(_)]), "{kept:?}");
}

/// Fails if an empty result advances to Apply without a question.
#[test]
fn nothing_is_applied_only_where_the_spec_allows_it() {
    for (allow_empty, seen) in [(false, Seen::NothingChanged), (true, Seen::Now(Phase::Apply, State::Queued))]
    {
        let mut world = World::of(crate::PlanSpec { allow_empty, ..spec("auto") });
        walk(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed]);
        let Command::Advance(facts) = advance(NextPhase::Apply, None) else { unreachable!() };
        assert_eq!(world.give(Command::Advance(Advance { changes: Changes::Nothing, ..facts })), seen);
    }
}

/// Fails if Execute completes although a required validation failed or was not run.
#[test]
fn execute_completes_only_when_every_required_validation_passed() {
    let asked = |name: &str, required| Validation {
        name: name.parse().unwrap(),
        command: "true".into(),
        required,
        timeout_s: None,
    };
    let ran = |name: &str, required, passed| ValidationResult {
        name: name.parse().unwrap(),
        required,
        passed,
        text: String::new(),
    };
    let complete = Seen::Now(Phase::Execute, State::Complete);
    for (validations, seen) in [
        (vec![ran("tests", true, true), ran("style", false, true)], complete),
        (vec![ran("tests", true, true), ran("style", false, false)], complete),
        (vec![ran("tests", true, true)], complete),
        (vec![ran("tests", true, false), ran("style", false, true)], Seen::Unvalidated),
        (vec![ran("tests", false, false)], Seen::Unvalidated),
        (vec![ran("style", false, true)], Seen::Unvalidated),
        (vec![], Seen::Unvalidated),
    ] {
        let asked = vec![asked("tests", true), asked("style", false)];
        let mut world = World::of(crate::PlanSpec { validations: asked, ..spec("auto") });
        walk(&mut world, EXECUTING);
        let run = world.run();
        let done = Completion::Executed {
            head: "head".into(),
            validations: validations.clone(),
            reviews: Vec::new(),
        };
        assert_eq!(world.give(Command::Complete(run, done)), seen, "{validations:?}");
    }
}

/// Fails if an unknown or late answer closes or moves anything, or raises no alert (S4.8).
#[test]
fn an_unknown_or_stale_answer_changes_nothing_and_raises_an_alert() {
    let mut world = reach(&[Say::Start, Say::Recover]);
    let decision = world.pending().id.clone();
    let answer = |option: &str| {
        Command::Resolve(Answer { decision: decision.clone(), option: option.into(), note: None })
    };
    let before = world.snapshot.clone();
    let unknown = world.judge(answer("sync_again")).expect_err("it is not offered");
    assert!(
        matches!(&unknown, Refusal::UnknownOption { offered, .. } if offered == &["continue", "restore_local", "abort"])
    );
    assert_eq!(world.snapshot, before);
    world.give(answer("continue"));
    let stale = world.judge(answer("continue")).expect_err("it was answered before");
    for refusal in [unknown, stale] {
        let kept = refusal.events();
        assert!(matches!(kept.as_slice(), [Event::Alert { .. }]), "{refusal}: {kept:?}");
    }
}

/// Fails if a reader could see the failure without its question, or the question without the failure (S4.5):
/// both are in one transition, for every way to fail with a question.
#[test]
fn a_failure_and_its_question_are_one_transition() {
    for (path, say) in [
        (&[][..], Say::Recover),
        (EXECUTING, Say::Recover),
        (&[Say::Start, Say::Strategized], Say::Recover),
        (EXECUTING, Say::FailAsking),
        (EXECUTING, Say::Ask),
        (EXECUTING, Say::Pause),
    ] {
        let mut world = reach(path);
        let command = say.to(&world);
        let Ok(Decided::Change(transition)) = world.judge(command) else { panic!("{say:?}") };
        let awaited = transition.plan().stage.decision().expect("the stage names its decision");
        let [DecisionChange::Open(opened)] = transition.decisions() else { panic!("{transition:?}") };
        assert_eq!(&opened.id, awaited);
        assert!(transition.events().iter().any(|event| match event {
            Event::Errored(_, named) => named.as_ref() == Some(awaited),
            Event::Waiting(named) => named == awaited,
            _ => false,
        }));
    }
}

/// Fails if a report of the run before an answer is accepted for the run after it (S4.9).
#[test]
fn going_on_starts_a_run_that_no_older_report_can_touch() {
    let mut world = reach(EXECUTING);
    let old = world.run();
    walk(&mut world, &[Say::Recover]);
    let asked = world.pending().question.text.clone();
    walk(&mut world, &[Say::AnswerFirst]);
    assert_eq!(world.plan().feedback, [format!("{} — continue: as you like", asked)]);
    assert_eq!(world.give(start(old.clone(), nothing(&world))), Seen::StaleRun, "a run id is used once");
    walk(&mut world, &[Say::Start]);
    for say in [Say::Executed, Say::Fail, Say::FailAsking, Say::Ask] {
        assert_eq!(world.give(say.of_run(&world, old.clone())), Seen::StaleRun, "{say:?}");
    }
}

/// Fails if a phase that never started gets a completion time or the run of another phase (S4.10).
#[test]
fn a_phase_that_never_started_has_no_times_and_no_run() {
    let mut world = reach(&[Say::Start, Say::Strategized, Say::Execute, Say::Recover]);
    let plan = world.plan();
    assert_eq!((plan.phase_started_at, plan.phase_completed_at), (None, None));
    assert_eq!((world.pending().phase, &world.pending().run), (Phase::Execute, &None));
    walk(&mut world, &[Say::AnswerLast]);
    assert_eq!(world.plan().phase_completed_at, None);
}

/// N5: fails if a divergence closes a decision that a person was to answer, or is not asked about afterwards.
#[test]
fn a_divergence_under_an_open_question_keeps_it_and_asks_next() {
    for authority in [Authority::Operator, Authority::Engine] {
        let mut world = World::under("supervised");
        walk(&mut world, &[Say::Start, Say::Strategized]);
        let gate = world.pending().clone();
        let diverged = Say::Recover.to(&world);
        assert_eq!(world.give_as(authority, diverged.clone()), Seen::Now(Phase::Strategize, State::Complete));
        assert_eq!(world.give_as(authority, diverged), Seen::Already, "it is queued once");
        assert_eq!(world.pending(), &gate);
        let approve = advance(NextPhase::Execute, None);
        assert_eq!(world.give(approve), Seen::Now(Phase::Execute, State::Errored));
        assert_eq!(world.pending().question.kind, DecisionKind::Divergence);
        assert_eq!(world.plan().queued_divergences, []);
        walk(&mut world, &[Say::AnswerFirst, Say::Start]);
        assert_eq!(world.plan().work_from, None, "the sample starts without one");
    }
}

/// S4.5: fails if a person whose sync finds a divergence is still asked about the phase that failed because
/// of it.
#[test]
fn a_persons_sync_that_finds_a_divergence_withdraws_the_gate() {
    let mut world = World::under("supervised");
    walk(&mut world, &[Say::Start, Say::Strategized]);
    let diverged = Say::Recover.to(&world);
    assert_eq!(
        world.give_as(Authority::Person, diverged.clone()),
        Seen::Now(Phase::Strategize, State::Errored)
    );
    assert_eq!(world.give_as(Authority::Person, diverged), Seen::Already);
    assert_eq!(world.pending().question.kind, DecisionKind::Divergence);
    assert_eq!(world.plan().gate, None);
}

/// Fails if a second loss of commits is hidden by the question about the first, or if one divergence is asked
/// about twice.
#[test]
fn each_divergence_asks_once() {
    let mut world = reach(EXECUTING);
    let recovered = |pin| diverge(&recovered(pin));
    let errored = Seen::Now(Phase::Execute, State::Errored);
    assert_eq!(world.give(recovered("refs/drydock/pin/a/1")), errored);
    assert_eq!(world.give(recovered("refs/drydock/pin/a/1")), Seen::Already);
    assert_eq!(world.give(recovered("refs/drydock/pin/a/9")), errored);
    assert_eq!(world.pending().question.details["backup_ref"], "refs/drydock/pin/a/1");
    walk(&mut world, &[Say::AnswerFirst]);
    assert_eq!(
        world.plan().stage.state(),
        State::Errored,
        "the second is asked about when the first is settled"
    );
    assert_eq!(world.pending().question.details["backup_ref"], "refs/drydock/pin/a/9");
    walk(&mut world, &[Say::AnswerFirst]);
    assert_eq!(world.plan().stage.state(), State::Queued);
}

/// code 8.1, page B4: fails if an agent gets an option id instead of the label that the person saw, or if an
/// empty answer is accepted.
#[test]
fn an_answer_reaches_the_agent_by_its_label_and_is_never_empty() {
    let mut world = reach(&[Say::Start]);
    let asked = Question::from_agent("May I?".into(), vec![("allow".into(), "No".into())]);
    world.give(Command::Ask(world.run(), asked));
    walk(&mut world, &[Say::AnswerFirst, Say::Start]);
    assert_eq!(world.plan().feedback, ["May I? — No: as you like"]);

    walk(&mut world, &[Say::Ask]);
    for note in [None, Some(String::new()), Some(" \n".to_owned())] {
        let (before, decision) = (world.snapshot.clone(), world.pending().id.clone());
        let empty = Command::Resolve(Answer { decision, option: "answered".into(), note });
        assert_eq!(world.give(empty), Seen::EmptyAnswer);
        assert_eq!(world.snapshot, before, "it stays open");
    }
    walk(&mut world, &[Say::AnswerFirst]);
    assert_eq!(world.plan().feedback[1], "Tabs? — as you like");
}

/// Fails if a question counts as asked while a different one is open.
#[test]
fn another_question_of_the_same_run_does_not_pass_for_asked() {
    let mut world = reach(&[Say::Start, Say::Ask]);
    let another = Question::from_agent("Spaces?".into(), Vec::new());
    assert_eq!(world.give(Command::Ask(world.run(), another)), Seen::Undecided);
}

/// Fails if a plan can go back without limit, or if the reason is lost.
#[test]
fn a_plan_goes_back_at_most_so_often_and_remembers_why() {
    let mut world = reach(&[]);
    for _ in 0..REVERSIONS_MAX {
        walk(&mut world, &[Say::Start, Say::Strategized, Say::Execute, Say::Revert]);
        assert_eq!((&world.plan().head_commit, world.plan().choices.len()), (&None, 0));
    }
    walk(&mut world, &[Say::Start, Say::Strategized, Say::Execute]);
    let once_more = Say::Revert.to(&world);
    assert_eq!(world.give(once_more), Seen::TooManyReversions);
    assert_eq!(world.plan().feedback, vec!["another way"; REVERSIONS_MAX as usize]);
}

/// Fails if a commit lands without an intent, or if a second intent replaces an open one.
#[test]
fn only_the_intended_commit_lands() {
    let mut world = reach(APPLYING);
    walk(&mut world, &[Say::Intend]);
    let run = world.run();
    assert_eq!(world.give(Command::Intend(run.clone(), intent("other"))), Seen::IntentOpen);
    assert_eq!(world.give(Command::Land(run.clone(), landed("other"))), Seen::WrongStage);
    walk(&mut world, &[Say::Land]);
    assert_eq!((world.plan().landed_commit.as_deref(), &world.plan().intent), (Some("merged"), &None));
    assert_eq!(world.give(Command::Land(run, landed("other"))), Seen::WrongStage);
}

/// Fails if the end of a run drops the intent: the next run, which reads the target, must find it.
#[test]
fn an_intent_outlives_its_run() {
    for ends in [&[Say::TakeOver][..], &[Say::Fail, Say::Retry]] {
        let mut world = reach(APPLYING);
        walk(&mut world, &[Say::Intend]);
        walk(&mut world, ends);
        walk(&mut world, &[Say::Start]);
        assert_eq!(world.plan().intent, Some(intent("merged")), "{ends:?}");
        walk(&mut world, &[Say::Land]);
    }
}

/// Fails if the answer to a lost landing keeps the intent open, or is refused because of it.
#[test]
fn the_answer_to_a_lost_landing_ends_its_intent() {
    for (say, state) in [(Say::AnswerFirst, State::Queued), (Say::AnswerLast, State::Cancelled)] {
        let mut world = reach(APPLYING);
        walk(&mut world, &[Say::Intend, Say::FailAsking, say]);
        assert_eq!((&world.plan().intent, world.plan().stage.state()), (&None, state));
    }
}

/// Fails if an intent is recorded or ended without the project's lock (S1.2).
#[test]
fn what_touches_the_target_needs_the_lock_of_the_project() {
    let mut world = reach(APPLYING);
    for (say, needs) in [(Say::Constrain, false), (Say::Intend, true), (Say::Forgo, true), (Say::Land, true)]
    {
        let command = say.to(&world);
        let Ok(Decided::Change(transition)) = world.judge(command) else { panic!("{say:?}") };
        assert_eq!(transition.needs_project(), needs, "{say:?}");
        if say == Say::Intend {
            walk(&mut world, &[Say::Intend]);
        }
    }
}

/// Fails if a new run of Execute has the result of the previous one.
#[test]
fn a_new_run_of_execute_has_no_head_yet() {
    let mut world = reach(EXECUTING);
    walk(&mut world, &[Say::Executed, Say::Recover, Say::AnswerFirst, Say::Start]);
    assert_eq!(world.plan().head_commit, None);
    walk(&mut world, &[Say::Executed, Say::Apply, Say::Start]);
    assert_eq!(world.plan().head_commit.as_deref(), Some("head"), "Apply lands what Execute made");
}

/// Fails if cancelling a plan drops its work or the reason.
#[test]
fn a_cancelled_plan_keeps_its_work_and_its_reason() {
    let mut world = reach(&[Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed]);
    let command = Say::Cancel.to(&world);
    let Ok(Decided::Change(transition)) = world.judge(command) else { panic!("it can be cancelled") };
    assert_eq!(transition.plan().head_commit.as_deref(), Some("head"));
    assert_eq!(transition.events(), [Event::Cancelled("enough".into())]);
    assert_eq!(transition.effect(), None);
}
