//! The rules of a subplan: those that it took from its parent, and those of its own project, action and plan. Both hold;
//! where they share a name and differ, neither takes the other's place.

use serde::{Deserialize, Serialize};

use crate::{Invariant, InvariantScope, Plan, PlanId, Spec, effective};

/// The rules that a subplan took from its parent; none for a plan at the top.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inheritance {
    /// What held for the parent when the subplan was born.
    pub rules: Vec<Invariant>,
    /// The scopes that the parent's rules were found at. What these say by the name of a rule was reconciled then.
    pub scopes: Vec<InvariantScope>,
}

/// What holds for a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    /// Taken from its parent.
    pub taken: Vec<Invariant>,
    /// Of its own scopes: one for each name.
    pub own: Vec<Invariant>,
}

impl Inheritance {
    /// Returns what the children of this plan take, given the rules that hold for it now.
    pub(crate) fn of(parent: &Plan, reconciled: Vec<Invariant>) -> Inheritance {
        let Spec { project, action, .. } = &parent.spec;
        let mut scopes = vec![
            InvariantScope::Global,
            InvariantScope::Project(project.clone()),
            InvariantScope::Action(action.clone()),
            InvariantScope::Plan(parent.id.clone()),
        ];
        scopes.extend(parent.place.iter().flat_map(|place| place.rules.scopes.clone()));
        Inheritance { rules: reconciled, scopes }
    }

    /// Returns it as rules of the child.
    pub(crate) fn handed_to(mut self, child: &PlanId) -> Inheritance {
        for rule in &mut self.rules {
            rule.scope = InvariantScope::Plan(child.clone());
        }
        self
    }

    /// Returns what holds where these and the candidates of a plan's own scopes apply.
    pub fn with(&self, candidates: Vec<Invariant>) -> Holding {
        let locked = |rule: &Invariant| rule.locked && rule.scope == InvariantScope::Global;
        let settled = |rule: &Invariant| {
            self.scopes.contains(&rule.scope) && self.rules.iter().any(|one| one.name == rule.name)
        };
        let candidates: Vec<_> =
            candidates.into_iter().filter(|rule| locked(rule) || !settled(rule)).collect();
        // A locked one is as it is now, whatever it was at birth.
        let replaced = |rule: &Invariant| candidates.iter().any(|one| locked(one) && one.name == rule.name);
        let taken: Vec<_> = self.rules.iter().filter(|rule| !replaced(rule)).cloned().collect();
        let mut own = effective(candidates);
        own.retain(|rule| !taken.iter().any(|one| says_no_less(one, rule)));
        Holding { taken, own }
    }

    /// Returns the rules that the parent's landing does not judge: those of scopes that it knows nothing of.
    pub fn unknown_to_parent(&self, holding: Holding) -> Vec<Invariant> {
        holding.own.into_iter().filter(|rule| !self.scopes.contains(&rule.scope)).collect()
    }
}

impl Holding {
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

    fn taken(rules: Vec<Invariant>) -> Inheritance {
        let scopes = ["global", "project:app", "action:fix"].map(|scope| scope.parse().unwrap());
        Inheritance { rules, scopes: scopes.to_vec() }
    }

    fn holds(inheritance: &Inheritance, candidates: Vec<Invariant>) -> Vec<String> {
        let texts = inheritance.with(candidates).all().into_iter();
        texts
            .map(|rule| format!("{:?}", rule.rule))
            .map(|text| text.replace("Cel(\"", "").replace("\")", ""))
            .collect()
    }

    const CHILD: &str = "plan:pln-0000000000000000";

    /// Breaks when a rule of the parent takes the place of one that its project or action has by the same name.
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

    /// Breaks when what the parent has overridden comes back for its pieces, or a locked rule is held as it was.
    #[test]
    fn what_was_reconciled_for_the_parent_stays_so() {
        let size = taken(vec![rule("size", CHILD, "of the parent")]);
        assert_eq!(holds(&size, vec![rule("size", "global", "of all")]), ["of the parent"]);
        assert_eq!(holds(&size, vec![rule("other", "global", "newer")]), ["newer", "of the parent"]);
        let locked = Invariant { locked: true, ..rule("size", "global", "locked") };
        assert_eq!(holds(&size, vec![locked]), ["locked"]);
    }

    /// Breaks when a piece answers for the whole, or for nothing of its own.
    #[test]
    fn a_piece_answers_for_the_rules_that_its_parent_knows_nothing_of() {
        let size = taken(vec![rule("size", CHILD, "of the parent")]);
        let candidates = vec![rule("size", "action:small", "of small"), rule("other", "global", "newer")];
        let own = size.unknown_to_parent(size.with(candidates));
        assert_eq!(own.iter().map(|rule| rule.scope.to_string()).collect::<Vec<_>>(), ["action:small"]);
    }
}
