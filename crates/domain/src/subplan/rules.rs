//! The invariants of a subplan: those inherited from its parent, and those of its own project, action and
//! plan. Both apply. If two have the same name but differ, neither replaces the other.

use serde::{Deserialize, Serialize};

use crate::{Invariant, InvariantScope, Plan, PlanId, PlanSpec, effective};

/// The invariants that a subplan inherited from its parent; empty for a plan without parent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InheritedInvariants {
    /// The invariants that applied to the parent when the subplan was spawned.
    pub rules: Vec<Invariant>,
    /// The scopes at which the parent's invariants were defined. Invariants of the same name at these scopes
    /// were resolved for the parent at that time.
    pub scopes: Vec<InvariantScope>,
}

/// The invariants that apply to a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveInvariants {
    /// Inherited from the parent.
    pub taken: Vec<Invariant>,
    /// Defined at the plan's own scopes; one per name.
    pub own: Vec<Invariant>,
}

impl InheritedInvariants {
    /// Returns the invariants that children of this plan inherit, given those that currently apply to it.
    pub(crate) fn of(parent: &Plan, reconciled: Vec<Invariant>) -> InheritedInvariants {
        let PlanSpec { project, action, .. } = &parent.spec;
        let mut scopes = vec![
            InvariantScope::Global,
            InvariantScope::Project(project.clone()),
            InvariantScope::Action(action.clone()),
            InvariantScope::Plan(parent.id.clone()),
        ];
        scopes.extend(parent.place.iter().flat_map(|place| place.rules.scopes.clone()));
        InheritedInvariants { rules: reconciled, scopes }
    }

    /// Changes the scope of the invariants to the child plan.
    pub(crate) fn handed_to(mut self, child: &PlanId) -> InheritedInvariants {
        for rule in &mut self.rules {
            rule.scope = InvariantScope::Plan(child.clone());
        }
        self
    }

    /// Returns the invariants that apply, given the inherited ones and the candidates of the plan's own
    /// scopes.
    pub fn with(&self, candidates: Vec<Invariant>) -> EffectiveInvariants {
        let locked = |rule: &Invariant| rule.locked && rule.scope == InvariantScope::Global;
        let settled = |rule: &Invariant| {
            self.scopes.contains(&rule.scope) && self.rules.iter().any(|one| one.name == rule.name)
        };
        let candidates: Vec<_> =
            candidates.into_iter().filter(|rule| locked(rule) || !settled(rule)).collect();
        // A locked invariant applies in its current version, even if it changed after the subplan was
        // spawned.
        let replaced = |rule: &Invariant| candidates.iter().any(|one| locked(one) && one.name == rule.name);
        let taken: Vec<_> = self.rules.iter().filter(|rule| !replaced(rule)).cloned().collect();
        let mut own = effective(candidates);
        own.retain(|rule| !taken.iter().any(|one| says_no_less(one, rule)));
        EffectiveInvariants { taken, own }
    }

    /// Returns the invariants that the parent's landing does not check, because the parent does not have
    /// their scopes.
    pub fn unknown_to_parent(&self, holding: EffectiveInvariants) -> Vec<Invariant> {
        holding.own.into_iter().filter(|rule| !self.scopes.contains(&rule.scope)).collect()
    }
}

impl EffectiveInvariants {
    /// Returns all of them, sorted by name.
    pub fn all(self) -> Vec<Invariant> {
        let mut all = self.taken;
        all.extend(self.own);
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

fn says_no_less(one: &Invariant, other: &Invariant) -> bool {
    one.name == other.name && one.rule == other.rule && other.at.iter().all(|phase| one.at.contains(phase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Phase, Rule};

    fn rule(name: &str, scope: &str, text: &str) -> Invariant {
        Invariant {
            name: name.parse().unwrap(),
            scope: scope.parse().unwrap(),
            rule: Rule::Cel(text.to_owned()),
            at: Phase::ALL.to_vec(),
            locked: false,
        }
    }

    fn taken(rules: Vec<Invariant>) -> InheritedInvariants {
        let scopes = ["global", "project:app", "action:fix"].map(|scope| scope.parse().unwrap());
        InheritedInvariants { rules, scopes: scopes.to_vec() }
    }

    fn holds(inheritance: &InheritedInvariants, candidates: Vec<Invariant>) -> Vec<String> {
        let texts = inheritance.with(candidates).all().into_iter();
        texts
            .map(|rule| format!("{:?}", rule.rule))
            .map(|text| text.replace("Cel(\"", "").replace("\")", ""))
            .collect()
    }

    const CHILD: &str = "plan:pln-0000000000000000";

    /// Fails if an inherited invariant replaces one of the same name from the project or action.
    #[test]
    fn rules_of_one_name_that_differ_all_hold() {
        let size = taken(vec![rule("size", CHILD, "of the parent")]);
        assert_eq!(holds(&size, vec![rule("size", "project:lib", "of lib")]), ["of the parent", "of lib"]);
        assert_eq!(
            holds(&size, vec![rule("size", "action:small", "of small")]),
            ["of the parent", "of small"]
        );
        assert_eq!(holds(&size, vec![rule("size", "project:lib", "of the parent")]), ["of the parent"]);
    }

    /// Fails if an invariant that the parent overrides applies to its subplans, or if a locked one applies in
    /// an old version.
    #[test]
    fn what_was_reconciled_for_the_parent_stays_so() {
        let size = taken(vec![rule("size", CHILD, "of the parent")]);
        assert_eq!(holds(&size, vec![rule("size", "global", "of all")]), ["of the parent"]);
        assert_eq!(holds(&size, vec![rule("other", "global", "newer")]), ["newer", "of the parent"]);
        let locked = Invariant { locked: true, ..rule("size", "global", "locked") };
        assert_eq!(holds(&size, vec![locked]), ["locked"]);
    }

    /// Fails if a subplan is checked against the parent's invariants when it lands, or is not checked against
    /// its own.
    #[test]
    fn a_piece_answers_for_the_rules_that_its_parent_knows_nothing_of() {
        let size = taken(vec![rule("size", CHILD, "of the parent")]);
        let candidates = vec![rule("size", "action:small", "of small"), rule("other", "global", "newer")];
        let own = size.unknown_to_parent(size.with(candidates));
        assert_eq!(own.iter().map(|rule| rule.scope.to_string()).collect::<Vec<_>>(), ["action:small"]);
    }
}
