//! Permissions as data: a person allowed or denied an agent's use of a tool. Only the answer to a permission
//! question that drydock built grants anything; text is never parsed for permissions.

use serde::{Deserialize, Serialize};

use crate::question::{cancels, option};
use crate::{DecisionKind, DecisionOption, OptionEffect, Question, RunId, Timestamp};

/// A person's answer to an agent's tool request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The request and the answer.
    #[serde(flatten)]
    pub terms: GrantTerms,
    /// The person's name.
    pub by: String,
    /// When the person answered.
    pub at: Timestamp,
    /// The run that a one-time grant applies to: the first run that starts after the answer.
    #[serde(default)]
    pub run: Option<RunId>,
}

/// The permission that an answer would give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantTerms {
    /// The kind of tool, such as `execute`.
    pub tool: String,
    /// The complete request; it is compared as a whole.
    #[serde(rename = "match")]
    pub matches: String,
    /// Allowed or denied.
    pub answer: GrantAnswer,
    /// How long the grant is valid.
    pub scope: GrantScope,
}

/// Whether the request is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantAnswer {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// How long a grant is valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// For one use in the run that follows the answer.
    Once,
    /// For all runs of the plan.
    Plan,
}

impl Question {
    /// Returns the question that asks whether an agent may use a tool. Only the answers to this question
    /// grant permissions.
    pub fn permission(text: String, tool: &str, matches: &str) -> Question {
        let grants = |id: &str, label: &str, answer, scope| -> DecisionOption {
            let terms = GrantTerms { tool: tool.to_owned(), matches: matches.to_owned(), answer, scope };
            option(id, label.to_owned(), OptionEffect::Grant { terms, work: None, replaces: None })
        };
        Question {
            kind: DecisionKind::Permission,
            text,
            options: vec![
                grants("allow", "For this plan", GrantAnswer::Allow, GrantScope::Plan),
                grants("once", "Allow once", GrantAnswer::Allow, GrantScope::Once),
                grants("reject", "Refuse", GrantAnswer::Deny, GrantScope::Plan),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "tool": tool, "match": matches }),
        }
    }
}
