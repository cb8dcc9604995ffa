//! Random graphs of subplans with random ends, and a scheduler that stops after any commit, against general
//! guarantees.

use proptest::prelude::*;

use super::world::{End, World, fanout, piece};
use crate::{
    ChildState, DecisionKind, Effect, OnFailure, Phase, State, Subplan, SubplanStatus, SubplanUpdate,
    next_effect,
};

const NAMES: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
const PATHS: [&str; 4] = ["src/one", "src/one/deep.rs", "docs/*.md", "src/two"];

#[derive(Debug, Clone)]
struct Drawn {
    pieces: Vec<Subplan>,
    on_failure: OnFailure,
    max_parallel: u32,
    steps: Vec<(u8, u8)>,
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let one = (prop::collection::vec(0_usize..7, 0..3), prop::option::of(0_usize..4), 1_u32..4);
    let pieces = prop::collection::vec(one, 1..7);
    let on_failure = prop_oneof![Just(OnFailure::Continue), Just(OnFailure::FailFast)];
    (pieces, on_failure, 1_u32..4, prop::collection::vec((any::<u8>(), any::<u8>()), 0..120)).prop_map(
        |(drawn, on_failure, max_parallel, steps)| {
            let pieces = drawn.into_iter().enumerate().map(|(at, (after, path, attempts))| {
                // Only earlier ones, so that the graph has no cycle.
                let after: Vec<_> =
                    after.into_iter().filter(|other| *other < at).map(|other| NAMES[other]).collect();
                let mut piece = piece(NAMES[at], &after);
                piece.paths = path.map(|path| PATHS[path].to_owned()).into_iter().collect();
                piece.max_attempts = attempts;
                piece
            });
            Drawn { pieces: pieces.collect(), on_failure, max_parallel, steps }
        },
    )
}

fn end(chance: u8) -> End {
    match chance % 10 {
        0 | 1 => End::Fails,
        2 => End::FailsForGood,
        3 => End::MeetsLimit,
        _ => End::Done,
    }
}

/// Checks the guarantees that hold after every commit.
fn check(world: &World) {
    let (fanout, seen) = (world.fanout(), world.seen());
    let busy: Vec<_> = (0..seen.len())
        .filter(|at| fanout.pieces[*at].fate == SubplanStatus::Open && seen[*at] == ChildState::Busy)
        .collect();
    assert!(busy.len() <= fanout.max_parallel as usize, "{busy:?} are at work at the same time");
    for at in &busy {
        for name in &fanout.pieces[*at].after {
            let before = fanout.position(name).unwrap();
            let done = matches!(fanout.pieces[before].fate, SubplanStatus::Joined { .. })
                || matches!(seen[before], ChildState::Finished { .. } | ChildState::Landed { .. });
            assert!(done, "{} works before {name} is done", fanout.pieces[*at].name);
        }
    }
    let src = |at: &&usize| fanout.pieces[**at].paths.iter().any(|path| path.starts_with("src/one"));
    assert!(busy.iter().filter(src).count() <= 1, "two that touch src/one work at the same time");
    for piece in &fanout.pieces {
        let Some(child) = &piece.child else { continue };
        let starts = world.starts.get(child).copied().unwrap_or(0);
        assert!(starts <= piece.max_attempts as usize, "{} was started {starts} times", piece.name);
        assert!(piece.failures.len() <= starts.max(1), "{} has failed more often than it ran", piece.name);
    }
    // The share of a child counts as used until the child ends; afterwards its actual usage counts.
    let counted = world.children.iter().map(|(id, child)| {
        let share = child.plan.spec.budget.tokens.expect("its parent's budget is limited");
        let open = world.parent.plan.handed.contains_key(id);
        if open { share } else { child.plan.used().tokens }
    });
    assert_eq!(world.parent.plan.used().tokens, counted.sum::<u64>());
    // The joined results are in the order of the subplans.
    let joined: Vec<_> =
        fanout.pieces.iter().filter(|piece| matches!(piece.fate, SubplanStatus::Joined { .. })).collect();
    let expected = joined.iter().fold("base".to_owned(), |head, piece| format!("{head}+{}", piece.name));
    assert_eq!(fanout.head.clone().unwrap_or_else(|| "base".to_owned()), expected);
}

proptest! {
    /// S1.4 and the guarantees of subplans: each child runs at most once per attempt, in order, within the
    /// limits, and the parent's end is a function of its children's ends.
    #[test]
    fn whatever_fails_and_wherever_it_stops_the_tree_comes_to_its_end(drawn in drawn()) {
        let mut world = World::of(fanout(drawn.pieces, drawn.on_failure, drawn.max_parallel));
        world.parent.plan.budget.tokens = Some(1_000_000);
        for (who, how) in drawn.steps {
            let children: Vec<_> = world.children.keys().cloned().collect();
            if who % 3 == 0 || children.is_empty() {
                world.tend();
            } else {
                let child = &children[who as usize % children.len()];
                world.work(child, end(how));
                world.spend(child, u64::from(how));
            }
            check(&world);
        }
        world.settle(|_| End::Done);
        check(&world);
        let lost = world.fanout().failed_subplans().count();
        prop_assert!(!world.fanout().is_open());
        let goes_on = |id| SubplanUpdate::of_end(&world.children[id].plan).is_none();
        prop_assert!(world.parent.plan.handed.keys().all(goes_on), "a share of one that is over is kept back");
        if lost == 0 {
            prop_assert_eq!(next_effect(&world.parent.plan), Some(Effect::DrivePhase(Phase::Execute)));
            prop_assert!(world.children.values().all(|child| child.plan.stage.state() == State::Applied));
        } else {
            prop_assert_eq!(world.parent.plan.stage.state(), State::Errored);
            prop_assert_eq!(world.parent.pending.as_ref().map(|open| open.question.kind), Some(DecisionKind::Subplans));
            let failed = world.fanout().pieces.iter().any(|piece| piece.fate == SubplanStatus::Failed);
            prop_assert!(failed, "nothing is cancelled without a failure behind it");
        }
    }
}
