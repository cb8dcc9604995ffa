//! Invariants: conditions that can block a phase.

use serde::{Deserialize, Serialize};

use crate::{Phase, PlanInvariant, Rule};

/// A condition that can block a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Invariant {
    /// The invariant's name.
    pub name: String,
    /// Where it applies: `global`, `project:NAME`, `action:NAME` or `plan:ID`.
    pub scope: String,
    /// The rule, under the key for its kind.
    #[serde(flatten)]
    pub rule: Rule,
    /// The phases before which it is enforced.
    pub at: Vec<Phase>,
    /// Whether narrower scopes cannot override it; for global ones.
    #[serde(default)]
    pub locked: bool,
}

/// Adds an invariant. Exactly one of `cel`, `command` and `text` is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewInvariant {
    /// The invariant's name.
    pub name: String,
    /// A CEL expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cel: Option<String>,
    /// A shell command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// An instruction for the agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Where it applies; default: `global`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// The phases before which it is enforced; default: all.
    #[serde(default)]
    pub at: Vec<Phase>,
    /// Whether narrower scopes cannot override it.
    #[serde(default)]
    pub locked: bool,
}

impl NewInvariant {
    /// Returns the rule, or none if none or more than one is given.
    pub fn rule(&self) -> Option<Rule> {
        only(&self.cel, &self.command, &self.text)
    }
}

impl PlanInvariant {
    /// Returns the rule, or none if none or more than one is given.
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

/// Filters the list of invariants.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InvariantQuery {
    /// Only invariants that apply to this plan, one per name.
    pub effective: Option<String>,
}

/// The scope of the named invariant.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScopeQuery {
    /// The scope; default: `global`.
    pub scope: Option<String>,
}

/// The requested invariants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Invariants {
    /// The invariants.
    pub invariants: Vec<Invariant>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// One invariant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneInvariant {
    /// The invariant.
    pub invariant: Invariant,
}
