//! Offers match accepted commands: over random histories, and where invariants block.

use proptest::{prop_assert, proptest};

use super::random::{command, onward, profiles, settings, steps};
use super::say::{Say, advance, approve, violated};
use super::world::World;
use crate::{
    Act, Answer, Authority, Choice, Command, Enforcement, Finding, InvariantCheck, Need, NextPhase, Offer,
    OptionEffect, Phase, Plan, Remains, RuleKind, State, TakeOverCause, offers, offers_unheld,
};

/// Returns the command that the engine sends for an offer.
fn issued(world: &World, act: &Act) -> Command {
    let plan = world.plan();
    let text = "because".to_owned();
    match act {
        Act::Move(phase) => asked(plan, *phase),
        Act::Answer { decision, option } => {
            let options = &world.pending().question.options;
            let chosen = options.iter().find(|one| one.id == *option).expect("it is offered");
            match (&chosen.effect, plan.stage.phase(), plan.stage.state()) {
                (OptionEffect::Approve, Phase::Strategize, State::Complete) => asked(plan, Phase::Execute),
                (OptionEffect::Approve, Phase::Execute, State::Complete) => asked(plan, Phase::Apply),
                (OptionEffect::Approve, _, _) => approve(Enforcement::nothing(plan.stage.phase())),
                _ => Command::Resolve(Answer {
                    decision: decision.clone(),
                    option: option.clone(),
                    note: Some(text),
                }),
            }
        }
        Act::Retry => Command::Retry,
        Act::Accept => Command::Accept,
        Act::Revert => Command::Revert { reason: text },
        Act::RollBack => Command::RollBack { commit: "a checkpoint".to_owned() },
        Act::Adopt => {
            let choices = vec![Choice { question: text.clone(), chosen: text, ..Choice::default() }];
            Command::Adopt { choices, fanout: None }
        }
        Act::Prompt => Command::Prompt { text },
        Act::Sync => Command::Sync,
        Act::TakeOver => Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None)),
        Act::Cancel => Command::Cancel { reason: text },
    }
}

fn asked(plan: &Plan, phase: Phase) -> Command {
    match phase {
        _ if plan.stage.state() == State::Processing => {
            Command::TakeOver(TakeOverCause::OwnerGone, Remains::Work(None))
        }
        _ if plan.stage == phase.queued() => approve(Enforcement::nothing(plan.stage.phase())),
        Phase::Strategize => approve(Enforcement::nothing(plan.stage.phase())),
        Phase::Execute => advance(NextPhase::Execute, None),
        Phase::Apply => advance(NextPhase::Apply, None),
    }
}

fn all(world: &World, authority: Authority) -> Vec<Offer> {
    let mut all = offers(&world.snapshot, None, authority);
    if world.plan().stage.state() == State::Processing {
        all.extend(offers_unheld(&world.snapshot, authority));
    }
    all
}

proptest! {
    #![proptest_config(settings())]

    /// Page B6: fails if an offered action is refused for the same authority, or if an agent or an ended plan
    /// gets an offer.
    #[test]
    fn every_offer_of_any_history_is_accepted(profile in profiles(), steps in steps()) {
        let mut world = World::under(&profile.name);
        for (say, twist) in steps {
            let say = say.unwrap_or_else(|| onward(world.plan()));
            let given = command(say, twist, &world);
            world.give_as(say.authority(), given);
            for authority in Authority::ALL {
                let offered = all(&world, authority);
                prop_assert!(authority != Authority::Agent || offered.is_empty());
                prop_assert!(!world.plan().stage.is_terminal() || offered.is_empty());
                for offer in offered {
                    world.authority = authority;
                    let answer = world.judge(issued(&world, &offer.act));
                    world.authority = Authority::Person;
                    prop_assert!(answer.is_ok(), "{:?} of {:?}: {:?}", authority, offer.act, answer);
                }
            }
        }
    }
}

/// Returns a world with a complete Execute and an open gate before Apply.
fn gated() -> World {
    let mut world = World::under("supervised");
    for say in [Say::Start, Say::Strategized, Say::Execute, Say::Start, Say::Executed] {
        let given = say.to(&world);
        world.give_as(say.authority(), given);
    }
    world
}

fn acts(world: &World, enforcement: Option<&Enforcement>, authority: Authority) -> Vec<String> {
    let named = |offer: Offer| match offer.act {
        Act::Answer { option, .. } => option,
        act => act.name().to_owned(),
    };
    offers(&world.snapshot, enforcement, authority).into_iter().map(named).collect()
}

/// Page B6: fails if a blocked plan is offered the blocked action, or is not offered a helpful one.
#[test]
fn a_blocked_plan_is_not_offered_what_is_blocked() {
    let world = gated();
    let free = acts(&world, None, Authority::Person);
    assert_eq!(free, ["apply", "approve", "reject", "revert", "rollback", "prompt", "sync", "cancel"]);
    let block = violated(Phase::Apply);
    let blocked = offers(&world.snapshot, Some(&block), Authority::Person);
    assert_eq!(
        acts(&world, Some(&block), Authority::Person),
        ["revert", "reject", "rollback", "prompt", "sync", "cancel"]
    );
    let line = blocked[0].line(&world.plan().id).unwrap();
    assert_eq!(line, format!("drydock plan revert {} --reason 'small: too long'", world.plan().id));
}

/// Fails if an invariant that may hold at the next check cannot be checked again.
#[test]
fn what_could_not_be_checked_is_checked_again() {
    let world = gated();
    let Finding { invariant, scope, .. } = violated(Phase::Apply).findings.remove(0);
    for (rule, check) in [
        (RuleKind::Command, InvariantCheck::Violated("`make lint` ended with 1".into())),
        (RuleKind::Cel, InvariantCheck::Unknown("it took longer than 3 s".into())),
    ] {
        let finding =
            Finding { invariant: invariant.clone(), scope: scope.clone(), rule, check, measure: None };
        let block = Enforcement { at: Phase::Apply, findings: vec![finding] };
        let first = offers(&world.snapshot, Some(&block), Authority::Person).remove(0);
        assert_eq!((first.act, first.label.as_str()), (Act::Move(Phase::Apply), "Check again"));
    }
}

/// INV-PERSON: fails if an operator is offered an action that closes a person's decision.
#[test]
fn an_operator_is_offered_no_answer() {
    let world = gated();
    let offered = acts(&world, None, Authority::Operator);
    assert!(!offered.iter().any(|act| ["apply", "approve", "reject"].contains(&act.as_str())), "{offered:?}");
}

/// Code 8.8: fails if a command line that is printed for pasting contains a placeholder.
#[test]
fn what_only_a_person_knows_has_no_line() {
    let world = gated();
    for offer in offers(&world.snapshot, None, Authority::Person) {
        let complete = offer.needs.iter().all(|need| *need == Need::Draft);
        assert_eq!(offer.line(&world.plan().id).is_some(), complete, "{offer:?}");
    }
}
