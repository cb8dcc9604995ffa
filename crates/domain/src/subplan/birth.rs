//! Creates child plans: from the parent's subplan entry and from the properties that a child inherits.

use std::num::NonZeroU32;

use crate::decide::new_plan;
use crate::event::Event;
use crate::outcome::TransitionBuilder;
use crate::{
    Budget, Context, CreatePlan, InheritedInvariants, Invariant, LandsOn, ParentLink, Plan, PlanId, PlanSpec,
    Profile, ResourceUsage, Subplan, Turn,
};

/// Everything that a child inherits from its parent. A child cannot be created without it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inherited {
    rules: InheritedInvariants,
    profile: Profile,
    share: Budget,
}

impl Inherited {
    /// Returns what each of `children` child plans inherits: an equal share of the parent's remaining budget,
    /// the invariants in `reconciled` that currently apply to the parent, and a profile at least as strict as
    /// the parent's. The profile has no gates: the parent's approval of Execute covers its subplans, and the
    /// parent's Apply lands them.
    pub fn of(parent: &Plan, reconciled: Vec<Invariant>, children: usize) -> Inherited {
        let profile = Profile { asks_before: Vec::new(), ..parent.spec.profile.clone() };
        // One share is the parent's own, to check and fix the joined result.
        let parts = u32::try_from(children).unwrap_or(u32::MAX - 1).saturating_add(1);
        let parts = NonZeroU32::new(parts).unwrap_or(NonZeroU32::MIN);
        Inherited {
            rules: InheritedInvariants::of(parent, reconciled),
            profile,
            share: parent.left().share(parts),
        }
    }
}

/// Everything needed to create a child; `spec` is the request before inheritance is applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChild {
    /// The id of the child plan.
    pub id: PlanId,
    /// The request.
    pub spec: PlanSpec,
    /// Everything inherited from the parent.
    pub inherited: Inherited,
}

/// A child plan to create for a subplan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpawnChild {
    /// Index of the subplan.
    pub piece: usize,
    /// The child.
    pub child: NewChild,
}

/// Returns the budget share given to a child. It counts as used by the parent until the child ends.
pub(crate) fn handed_on(parent: Budget, child: &Plan) -> ResourceUsage {
    let part = |limited: Option<u64>, handed: Option<u64>| limited.and(handed).unwrap_or(0);
    ResourceUsage {
        tokens: part(parent.tokens, child.budget.tokens),
        cost_micros: part(parent.cost_micros, child.budget.cost_micros),
        wall_ms: part(parent.wall_ms, child.budget.wall_ms),
        tool_calls: part(parent.tool_calls, child.budget.tool_calls),
    }
}

/// Returns a new child plan: `strategize/queued`, waiting for its turn.
pub(crate) fn new_child(
    parent: &Plan,
    piece: &Subplan,
    new: NewChild,
    context: &Context,
) -> (Plan, Vec<Event>) {
    let NewChild { id, mut spec, inherited } = new;
    let Inherited { rules, profile, share } = inherited;
    spec.budget = spec.budget.smallest(share);
    // The gates and restrictions of the child's own action and profile stay in force.
    spec.profile = profile.strictest(spec.profile);
    let depth = parent.place.as_ref().map_or(0, |place| place.depth) + 1;
    let lands = if piece.project.is_some() { LandsOn::ByItself } else { LandsOn::WithParent };
    let (name, timeout_s) = (piece.name.clone(), piece.timeout_s);
    let rules = rules.handed_to(&id);
    let place = ParentLink { name, turn: Turn::InLine, lands, depth, timeout_s, rules };
    let task = spec.task.clone();
    let base_commit = parent.base_commit.clone();
    let mut plan = new_plan(CreatePlan { id, spec, base_commit }, context);
    plan.parent = Some(parent.id.clone());
    plan.root = parent.root.clone();
    plan.place = Some(place);
    TransitionBuilder::of(plan, context).event(Event::Created { task }).into_child()
}
