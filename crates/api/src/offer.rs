//! The actions available on a plan, and the invariants that block it.

use serde::{Deserialize, Serialize};

use crate::Phase;

/// An action that the caller can take on a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Offer {
    /// The verb of `drydock plan` and of the route below the plan, or `resolve` for an answer.
    pub command: String,
    /// The label of its button.
    pub label: String,
    /// Its effect.
    pub effect: String,
    /// Inputs that the caller must supply: `checkpoint`, `draft`, `text`, `note`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The command to type; null if the caller must supply something first.
    #[serde(default)]
    pub line: Option<String>,
    /// The decision to answer, for `resolve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The option to choose, for `resolve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// A suggested reason from the plan's record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The invariants that block the next phase of a plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Blocked {
    /// The blocked phase.
    pub phase: Phase,
    /// The finding of each invariant.
    pub findings: Vec<BlockedBy>,
}

/// The finding of one invariant that is violated or could not be checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockedBy {
    /// The invariant's name.
    pub invariant: String,
    /// The invariant's scope.
    pub scope: String,
    /// The finding, with value and limit: `8 lines changed, limit 3`.
    pub text: String,
    /// The compared fact; null if the rule is not a comparison of a fact with a literal.
    pub fact: Option<String>,
    /// The measured value.
    pub value: Option<Quantity>,
    /// The limit of the comparison.
    pub limit: Option<Quantity>,
}

/// A measured value or a limit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Quantity {
    /// An integer.
    Whole(i64),
    /// A number that is not an integer.
    Real(f64),
    /// A boolean.
    Flag(bool),
    /// A text.
    Text(String),
}

impl Blocked {
    /// Returns the findings of all blocking invariants as one text.
    pub fn text(&self) -> String {
        self.findings.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join("; ")
    }
}
