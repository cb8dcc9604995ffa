//! Invariants: conditions that can block a transition, at four scopes. This file determines which of them
//! apply to a plan and whether the findings block. The engine evaluates expressions and runs commands.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Measure, Name, Phase, Plan, PlanId, RunId, State};

/// A condition that can block a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invariant {
    /// The name. Of several invariants with the same name, the one at the narrowest scope applies.
    pub name: Name,
    /// The plans that it applies to.
    pub scope: InvariantScope,
    /// The condition.
    pub rule: Rule,
    /// The phases before which it is enforced.
    pub at: Vec<Phase>,
    /// Whether narrower scopes cannot override it. Only meaningful at the global scope.
    pub locked: bool,
}

/// The rule of an invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A CEL expression over the plan's facts.
    Cel(String),
    /// A shell command; exit 0 passes.
    Command(String),
    /// An instruction for the agents; not checked automatically.
    Text(String),
}

impl Rule {
    /// Returns the kind of the rule.
    pub fn kind(&self) -> RuleKind {
        match self {
            Rule::Cel(_) => RuleKind::Cel,
            Rule::Command(_) => RuleKind::Command,
            Rule::Text(_) => RuleKind::Text,
        }
    }
}

/// The kind of a rule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// A CEL expression over the plan's facts. The same plan always gets the same result.
    #[default]
    Cel,
    /// A shell command. Its result may depend on anything.
    Command,
    /// Text for the agents.
    Text,
}

/// The plans that an invariant applies to, widest scope first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InvariantScope {
    /// Every plan.
    Global,
    /// The plans of one project.
    Project(Name),
    /// The plans of one action.
    Action(Name),
    /// One plan.
    Plan(PlanId),
}

/// Returned when a text is not a valid scope.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a scope: use global, project:NAME, action:NAME or plan:ID")]
pub struct ScopeError(String);

impl FromStr for InvariantScope {
    type Err = ScopeError;

    fn from_str(text: &str) -> Result<Self, ScopeError> {
        let refused = || ScopeError(text.to_owned());
        match text.split_once(':') {
            None if text == "global" => Ok(InvariantScope::Global),
            Some(("project", name)) => name.parse().map(InvariantScope::Project).map_err(|_| refused()),
            Some(("action", name)) => name.parse().map(InvariantScope::Action).map_err(|_| refused()),
            Some(("plan", id)) => id.parse().map(InvariantScope::Plan).map_err(|_| refused()),
            None | Some(_) => Err(refused()),
        }
    }
}

impl TryFrom<String> for InvariantScope {
    type Error = ScopeError;

    fn try_from(text: String) -> Result<Self, ScopeError> {
        text.parse()
    }
}

impl From<InvariantScope> for String {
    fn from(scope: InvariantScope) -> String {
        scope.to_string()
    }
}

impl fmt::Display for InvariantScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvariantScope::Global => f.write_str("global"),
            InvariantScope::Project(name) => write!(f, "project:{name}"),
            InvariantScope::Action(name) => write!(f, "action:{name}"),
            InvariantScope::Plan(id) => write!(f, "plan:{id}"),
        }
    }
}

/// Returns the invariants that apply where all scopes of `candidates` apply: one per name, sorted by name.
/// The narrowest scope wins, but a locked global invariant is never replaced.
pub fn effective(candidates: Vec<Invariant>) -> Vec<Invariant> {
    let mut by_name = std::collections::BTreeMap::<Name, Invariant>::new();
    for invariant in candidates {
        match by_name.get(&invariant.name) {
            Some(held) if rank(held) >= rank(&invariant) => {}
            Some(_) | None => {
                by_name.insert(invariant.name.clone(), invariant);
            }
        }
    }
    by_name.into_values().collect()
}

fn rank(invariant: &Invariant) -> u8 {
    match &invariant.scope {
        InvariantScope::Global if invariant.locked => 4,
        InvariantScope::Plan(_) => 3,
        InvariantScope::Action(_) => 2,
        InvariantScope::Project(_) => 1,
        InvariantScope::Global => 0,
    }
}

/// The result of checking one invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: Name,
    /// The invariant's scope.
    pub scope: InvariantScope,
    /// The kind of its rule.
    #[serde(default)]
    pub rule: RuleKind,
    /// The result.
    pub check: InvariantCheck,
    /// The measured value and the limit, if the rule compares a fact with a limit and does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InvariantCheck {
    /// The rule holds.
    Held,
    /// The rule does not hold, for this reason.
    Violated(String),
    /// The rule could not be checked, for this reason. Blocks as well.
    Unknown(String),
    /// The rule is text for agents, which is not checked.
    NotChecked,
}

/// The findings of one check of all invariants before one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforcement {
    /// The phase.
    pub at: Phase,
    /// One finding per effective invariant.
    pub findings: Vec<Finding>,
}

impl Enforcement {
    /// Returns an enforcement without findings.
    pub fn nothing(at: Phase) -> Self {
        Self { at, findings: Vec::new() }
    }

    /// Returns the blocking findings, including invariants that could not be checked.
    pub fn blocking(&self) -> Vec<&Finding> {
        self.findings.iter().filter(|finding| finding.blocks()).collect()
    }

    /// Returns advice for a person whose plan is blocked.
    pub fn advice(&self) -> &'static str {
        match (self.at, self.is_lasting()) {
            (Phase::Apply, true) => "ask the agent to reduce the change, or edit the rule",
            (Phase::Strategize | Phase::Execute, true) => "change what the rule measures, or edit the rule",
            (_, false) => "remove the cause and check again, or edit the rule",
        }
    }

    /// Returns true if checking again gives the same result until a rule or the plan's result changes.
    pub fn is_lasting(&self) -> bool {
        self.blocking().iter().any(|finding| !finding.may_pass())
    }
}

impl Finding {
    fn blocks(&self) -> bool {
        match self.check {
            InvariantCheck::Violated(_) | InvariantCheck::Unknown(_) => true,
            InvariantCheck::Held | InvariantCheck::NotChecked => false,
        }
    }

    /// Returns true if a later check of the same plan and the same rule may give another result.
    fn may_pass(&self) -> bool {
        match (&self.check, self.rule) {
            (InvariantCheck::Violated(_), RuleKind::Cel) => false,
            (InvariantCheck::Violated(_), RuleKind::Command | RuleKind::Text)
            | (InvariantCheck::Held | InvariantCheck::Unknown(_) | InvariantCheck::NotChecked, _) => true,
        }
    }

    /// Returns the reason as text, with the measured value and the limit if there are any.
    pub fn reason(&self) -> String {
        match (&self.check, &self.measure) {
            (InvariantCheck::Violated(_), Some(measure)) => measure.describe(),
            (InvariantCheck::Violated(text) | InvariantCheck::Unknown(text), _) => text.clone(),
            (InvariantCheck::Held, _) => "it holds".to_owned(),
            (InvariantCheck::NotChecked, _) => "it is text, not machine-checked".to_owned(),
        }
    }

    /// Returns the finding as one line of text.
    pub fn describe(&self) -> String {
        let (Finding { invariant, scope, check, .. }, reason) = (self, self.reason());
        match check {
            InvariantCheck::Held => format!("invariant {invariant} ({scope}) holds"),
            InvariantCheck::Violated(_) => format!("invariant {invariant} ({scope}) does not hold: {reason}"),
            InvariantCheck::Unknown(_) => {
                format!("invariant {invariant} ({scope}) could not be checked: {reason}")
            }
            InvariantCheck::NotChecked => {
                format!("invariant {invariant} ({scope}) is text, not machine-checked")
            }
        }
    }
}

/// An enforcement and the state of the plan that it checked. It is invalid for a plan that has changed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// The findings.
    pub enforcement: Enforcement,
    /// The plan's phase when it was checked.
    pub phase: Phase,
    /// The plan's state when it was checked.
    pub state: State,
    /// The plan's latest run when it was checked.
    pub run: Option<RunId>,
    /// The checked result.
    pub head: Option<String>,
    /// The number of choices in the strategy, because a rule can count them.
    pub choices: usize,
}

impl Enforced {
    /// Returns an enforcement that is valid for the plan in its current state.
    pub fn of(plan: &Plan, enforcement: Enforcement) -> Self {
        Self {
            enforcement,
            phase: plan.stage.phase(),
            state: plan.stage.state(),
            run: plan.run.clone(),
            head: plan.head_commit.clone(),
            choices: plan.choices.len(),
        }
    }

    /// Returns the enforcement if it is still valid for the plan. Added guidance and an opened gate do not
    /// invalidate it, because no rule can see them.
    pub fn current(&self, plan: &Plan) -> Option<&Enforcement> {
        (*self == Self::of(plan, self.enforcement.clone())).then_some(&self.enforcement)
    }

    /// Returns the enforcement if it is still valid for the plan and blocks it.
    pub fn blocking(&self, plan: &Plan) -> Option<&Enforcement> {
        self.current(plan).filter(|enforcement| !enforcement.blocking().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(name: &str, scope: &str, locked: bool) -> Invariant {
        Invariant {
            name: name.parse().unwrap(),
            scope: scope.parse().unwrap(),
            rule: Rule::Cel(scope.to_owned()),
            at: Phase::ALL.to_vec(),
            locked,
        }
    }

    fn winner(candidates: Vec<Invariant>) -> String {
        effective(candidates).remove(0).scope.to_string()
    }

    #[test]
    fn the_narrowest_scope_decides_in_any_order() {
        let plan = "plan:pln-0000000000000000";
        let scopes = ["global", "project:p", "action:a", plan];
        for (narrowest, scope) in scopes.iter().enumerate() {
            let mut rules: Vec<_> =
                scopes[..=narrowest].iter().map(|scope| rule("r", scope, false)).collect();
            assert_eq!(winner(rules.clone()), *scope);
            rules.reverse();
            assert_eq!(winner(rules), *scope);
        }
    }

    #[test]
    fn a_locked_global_rule_is_never_replaced() {
        let plan = "plan:pln-0000000000000000";
        assert_eq!(winner(vec![rule("r", "global", true), rule("r", plan, false)]), "global");
        assert_eq!(winner(vec![rule("r", plan, false), rule("r", "global", true)]), "global");
    }

    #[test]
    fn what_could_not_be_found_out_blocks() {
        let finding = |check| Finding {
            invariant: "r".parse().unwrap(),
            scope: InvariantScope::Global,
            rule: RuleKind::Cel,
            check,
            measure: None,
        };
        let checks = [
            InvariantCheck::Held,
            InvariantCheck::NotChecked,
            InvariantCheck::Violated("x".into()),
            InvariantCheck::Unknown("y".into()),
        ];
        let seen = Enforcement { at: Phase::Apply, findings: checks.map(finding).to_vec() };
        assert_eq!(seen.blocking().len(), 2);
    }
}
