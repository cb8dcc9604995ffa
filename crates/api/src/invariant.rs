//! Invariants: rules that can block a transition.

use serde::{Deserialize, Serialize};

use crate::{Phase, PlanInvariant};

/// A rule that can block a transition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Invariant {
    /// Its name.
    pub name: String,
    /// Where it holds: `global`, `project:NAME`, `action:NAME` or `plan:ID`.
    pub scope: String,
    /// What must hold, under the key that says how it is checked.
    #[serde(flatten)]
    pub rule: Rule,
    /// Before which phases it is enforced.
    pub at: Vec<Phase>,
    /// A locked global one cannot be overridden by a narrower scope.
    #[serde(default)]
    pub locked: bool,
}

/// What must hold.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A CEL expression over the plan's facts.
    Cel(String),
    /// A shell command; exit 0 holds.
    Command(String),
    /// Words for the agents; nothing checks them.
    Text(String),
}

/// Adds an invariant. Exactly one of `cel`, `command` and `text` is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvariant {
    /// Its name.
    pub name: String,
    /// A CEL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Words for the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it holds; `global` unless said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Before which phases it is enforced; none named means all.
    #[serde(default)]
    pub at: Vec<Phase>,
    /// No narrower scope may override it.
    #[serde(default)]
    pub locked: bool,
}

impl NewInvariant {
    /// Returns the rule, unless none or more than one is given.
    pub fn rule(&self) -> Option<Rule> {
        only(&self.cel, &self.command, &self.text)
    }
}

impl PlanInvariant {
    /// Returns the rule, unless none or more than one is given.
    pub fn rule(&self) -> Option<Rule> {
        only(&self.cel, &self.command, &self.text)
    }
}

fn only(cel: &Option<String>, command: &Option<String>, text: &Option<String>) -> Option<Rule> {
    match (cel, command, text) {
        (Some(cel), None, None) => Some(Rule::Cel(cel.clone())),
        (None, Some(command), None) => Some(Rule::Command(command.clone())),
        (None, None, Some(text)) => Some(Rule::Text(text.clone())),
        (None, None, None) | (Some(_), Some(_), _) | (Some(_), _, Some(_)) | (_, Some(_), Some(_)) => None,
    }
}

/// Which invariants to list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvariantQuery {
    /// Only those that hold for this plan, one per name.
    pub effective: Option<String>,
}

/// At which scope to look for a name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeQuery {
    /// The scope; `global` unless said.
    pub scope: Option<String>,
}

/// All invariants asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Invariants {
    /// The invariants.
    pub invariants: Vec<Invariant>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneInvariant {
    /// The invariant.
    pub invariant: Invariant,
}
