//! What can be done with a plan, and what blocks it.

use serde::{Deserialize, Serialize};

use crate::Phase;

/// Something that the caller can do with a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Offer {
    /// What: the verb of `drydock plan` and of the route below the plan, or `resolve` for an answer.
    pub command: String,
    /// The label of its button.
    pub label: String,
    /// Its effect.
    pub effect: String,
    /// What must be given with it: `checkpoint`, `draft`, `text`, `note`.
    #[serde(default)]
    pub needs: Vec<String>,
    /// What to type; null where something must be given that only the caller knows.
    #[serde(default)]
    pub line: Option<String>,
    /// The decision that is answered, for `resolve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// The option that is chosen, for `resolve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
    /// The reason to give, where the plan's own record has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The rules that keep a plan from its next phase.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Blocked {
    /// The phase that is blocked.
    pub phase: Phase,
    /// What each of them found.
    pub findings: Vec<BlockedBy>,
}

/// What one rule found that does not hold, or could not be checked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct BlockedBy {
    /// Its name.
    pub invariant: String,
    /// Its scope.
    pub scope: String,
    /// The finding, with value and limit: `8 lines changed, limit 3`.
    pub text: String,
    /// The fact that it compares; null where it is not a comparison of a fact with a literal.
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
    /// A whole number.
    Whole(i64),
    /// Another number.
    Real(f64),
    /// True or false.
    Flag(bool),
    /// A text.
    Text(String),
}

impl Blocked {
    /// Returns the value and the limit of every rule that blocks.
    pub fn text(&self) -> String {
        self.findings.iter().map(|one| one.text.as_str()).collect::<Vec<_>>().join("; ")
    }
}
