//! How a subplan begins: from its parent's piece, with what it takes from its parent at birth.

use std::num::NonZeroU32;

use crate::decide::fresh;
use crate::event::Event;
use crate::outcome::Draft;
use crate::{
    Budget, Context, Inheritance, Invariant, Lands, NewPlan, Piece, Place, Plan, PlanId, Profile, Spec,
    Spent, Turn,
};

/// What a child takes from its parent: nothing can be born without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    rules: Inheritance,
    profile: Profile,
    share: Budget,
}

impl Inherited {
    /// Returns what each of so many children of this plan takes: an equal share of what is left of its budget; the rules that hold for the parent, as they are reconciled now, and a
    /// profile that lets no more pass than the parent's. The parent's approval of Execute is one for its pieces, and its
    /// own Apply lands them.
    pub fn of(parent: &Plan, reconciled: Vec<Invariant>, children: usize) -> Inherited {
        let profile = Profile { asks_before: Vec::new(), ..parent.spec.profile.clone() };
        // One part is the parent's own, to judge and mend the whole.
        let parts = u32::try_from(children).unwrap_or(u32::MAX - 1).saturating_add(1);
        let parts = NonZeroU32::new(parts).unwrap_or(NonZeroU32::MIN);
        Inherited { rules: Inheritance::of(parent, reconciled), profile, share: parent.left().share(parts) }
    }
}

/// What is needed to make a child; `spec` is what its task or action says by itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChild {
    /// Its id.
    pub id: PlanId,
    /// What is asked for.
    pub spec: Spec,
    /// What it takes from its parent.
    pub inherited: Inherited,
}

/// A child for a piece.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Birth {
    /// Which piece.
    pub piece: usize,
    /// The child.
    pub child: NewChild,
}

/// Returns what a parent hands on with a child: it counts as used until the child is over.
pub(crate) fn handed_on(parent: Budget, child: &Plan) -> Spent {
    let part = |limited: Option<u64>, handed: Option<u64>| limited.and(handed).unwrap_or(0);
    Spent {
        tokens: part(parent.tokens, child.budget.tokens),
        cost_micros: part(parent.cost_micros, child.budget.cost_micros),
        wall_ms: part(parent.wall_ms, child.budget.wall_ms),
        tool_calls: part(parent.tool_calls, child.budget.tool_calls),
    }
}

/// Returns a child as it is born: `strategize/queued`, in line.
pub(crate) fn born(parent: &Plan, piece: &Piece, new: NewChild, context: &Context) -> (Plan, Vec<Event>) {
    let NewChild { id, mut spec, inherited } = new;
    let Inherited { rules, profile, share } = inherited;
    spec.budget = spec.budget.smallest(share);
    // What its own action asks before is asked, and what its own profile is strict about stays so.
    spec.profile = profile.strictest(spec.profile);
    let depth = parent.place.as_ref().map_or(0, |place| place.depth) + 1;
    let lands = if piece.project.is_some() { Lands::ByItself } else { Lands::WithParent };
    let (name, timeout_s) = (piece.name.clone(), piece.timeout_s);
    let rules = rules.handed_to(&id);
    let place = Place { name, turn: Turn::InLine, lands, depth, timeout_s, rules };
    let task = spec.task.clone();
    let base_commit = parent.base_commit.clone();
    let mut plan = fresh(NewPlan { id, spec, base_commit }, context);
    plan.parent = Some(parent.id.clone());
    plan.root = parent.root.clone();
    plan.place = Some(place);
    Draft::of(plan, context).event(Event::Created { task }).into_child()
}
