//! Invariants: rules that can block a transition, at four scopes. This file says which of them hold for a
//! plan and what a set of findings means; looking outside (running an expression or a command) is the engine's.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Measure, Name, Phase, Plan, PlanId, RunId, State};

/// A rule that can block a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invariant {
    /// Its name; the narrowest scope that has the name decides.
    pub name: Name,
    /// Where it holds.
    pub scope: InvariantScope,
    /// What must hold.
    pub rule: Rule,
    /// Before which phases it is enforced.
    pub at: Vec<Phase>,
    /// A locked global one cannot be overridden by a narrower scope.
    pub locked: bool,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A CEL expression over the plan's facts.
    Cel(String),
    /// A shell command; exit 0 holds.
    Command(String),
    /// Words for the agents; nothing checks them.
    Text(String),
}

impl Rule {
    /// Returns what kind of rule it is.
    pub fn kind(&self) -> RuleKind {
        match self {
            Rule::Cel(_) => RuleKind::Cel,
            Rule::Command(_) => RuleKind::Command,
            Rule::Text(_) => RuleKind::Text,
        }
    }
}

/// What kind of rule was enforced.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleKind {
    /// An expression over the plan's facts: the same plan is judged the same again.
    #[default]
    Cel,
    /// A command, which may look at anything.
    Command,
    /// Words for the agents.
    Text,
}

/// Where an invariant holds, widest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum InvariantScope {
    /// For every plan.
    Global,
    /// For the plans of one project.
    Project(Name),
    /// For the plans of one action.
    Action(Name),
    /// For one plan.
    Plan(PlanId),
}

/// Why a text is not a scope.
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

/// Returns the invariants that hold where all of `candidates` apply: one per name, the narrowest scope
/// first, except that a locked global one is never replaced. Sorted by name.
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

/// What enforcing one invariant found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The invariant's name.
    pub invariant: Name,
    /// Its scope.
    pub scope: InvariantScope,
    /// What kind of rule it is.
    #[serde(default)]
    pub rule: RuleKind,
    /// What was found.
    pub check: Check,
    /// The measured value and the limit, where the rule compares a fact with a limit and does not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measure: Option<Measure>,
}

/// The answer of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// The rule holds.
    Held,
    /// It does not.
    Violated(String),
    /// It could not be found out, which blocks as well.
    Unknown(String),
    /// It is words for agents; no machine checks it.
    NotChecked,
}

/// All findings of one look at the invariants, before one phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforcement {
    /// Before which phase.
    pub at: Phase,
    /// What was found, one entry per effective invariant.
    pub findings: Vec<Finding>,
}

impl Enforcement {
    /// Returns an enforcement with nothing to enforce.
    pub fn nothing(at: Phase) -> Self {
        Self { at, findings: Vec::new() }
    }

    /// Returns the findings that block; "could not find out" is one of them.
    pub fn blocking(&self) -> Vec<&Finding> {
        self.findings.iter().filter(|finding| finding.blocks()).collect()
    }

    /// Returns what can be done about rules that block.
    pub fn advice(&self) -> &'static str {
        match (self.at, self.is_lasting()) {
            (Phase::Apply, true) => "ask the agent to reduce the change, or edit the rule",
            (Phase::Strategize | Phase::Execute, true) => "change what the rule measures, or edit the rule",
            (_, false) => "remove the cause and check again, or edit the rule",
        }
    }

    /// Returns whether the rules block now and will whenever they are checked again, until a rule or the result changes.
    pub fn is_lasting(&self) -> bool {
        self.blocking().iter().any(|finding| !finding.may_pass())
    }
}

impl Finding {
    fn blocks(&self) -> bool {
        match self.check {
            Check::Violated(_) | Check::Unknown(_) => true,
            Check::Held | Check::NotChecked => false,
        }
    }

    /// Returns whether the same plan could be judged otherwise later, with no rule changed.
    fn may_pass(&self) -> bool {
        match (&self.check, self.rule) {
            (Check::Violated(_), RuleKind::Cel) => false,
            (Check::Violated(_), RuleKind::Command | RuleKind::Text)
            | (Check::Held | Check::Unknown(_) | Check::NotChecked, _) => true,
        }
    }

    /// Returns the finding, with the value and the limit where there is a measure.
    pub fn reason(&self) -> String {
        match (&self.check, &self.measure) {
            (Check::Violated(_), Some(measure)) => measure.describe(),
            (Check::Violated(text) | Check::Unknown(text), _) => text.clone(),
            (Check::Held, _) => "it holds".to_owned(),
            (Check::NotChecked, _) => "it is text, not machine-checked".to_owned(),
        }
    }

    /// Returns one line for a person.
    pub fn describe(&self) -> String {
        let (Finding { invariant, scope, check, .. }, reason) = (self, self.reason());
        match check {
            Check::Held => format!("invariant {invariant} ({scope}) holds"),
            Check::Violated(_) => format!("invariant {invariant} ({scope}) does not hold: {reason}"),
            Check::Unknown(_) => format!("invariant {invariant} ({scope}) could not be checked: {reason}"),
            Check::NotChecked => format!("invariant {invariant} ({scope}) is text, not machine-checked"),
        }
    }
}

/// An enforcement and the state of the plan that it judged. It does not count for a plan that has moved since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Enforced {
    /// The findings.
    pub enforcement: Enforcement,
    /// The phase that the plan was in.
    pub phase: Phase,
    /// The state that it was in.
    pub state: State,
    /// Its run.
    pub run: Option<RunId>,
    /// The result that was judged.
    pub head: Option<String>,
    /// How many choices its strategy had, which a rule can count.
    pub choices: usize,
}

impl Enforced {
    /// Returns an enforcement of the rules for a plan as it stands.
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

    /// Returns the enforcement, if it is about the plan as it stands. Guidance and an opened gate change nothing that a
    /// rule can see.
    pub fn current(&self, plan: &Plan) -> Option<&Enforcement> {
        (*self == Self::of(plan, self.enforcement.clone())).then_some(&self.enforcement)
    }

    /// Returns the enforcement, if it blocks the plan as it stands.
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
        let checks =
            [Check::Held, Check::NotChecked, Check::Violated("x".into()), Check::Unknown("y".into())];
        let seen = Enforcement { at: Phase::Apply, findings: checks.map(finding).to_vec() };
        assert_eq!(seen.blocking().len(), 2);
    }
}
