//! Permissions as data: a person allowed or refused an agent's use of a tool. Only the answer to a question that
//! drydock itself made about a tool is a permission; no text is read as one.

use serde::{Deserialize, Serialize};

use crate::question::{cancels, option};
use crate::{DecisionKind, DecisionOption, OptionEffect, Question, RunId, Timestamp};

/// A person's answer about the use of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The request and the answer.
    #[serde(flatten)]
    pub terms: GrantTerms,
    /// Who answered.
    pub by: String,
    /// When.
    pub at: Timestamp,
    /// The run that a grant for once is for: the first that begins after the answer.
    #[serde(default)]
    pub run: Option<RunId>,
}

/// The permission that an answer would give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GrantTerms {
    /// The kind of tool, such as `execute`.
    pub tool: String,
    /// The complete request; all of it is compared.
    #[serde(rename = "match")]
    pub matches: String,
    /// Yes or no.
    pub answer: GrantAnswer,
    /// For how long.
    pub scope: GrantScope,
}

/// Yes or no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantAnswer {
    /// It may.
    Allow,
    /// It may not.
    Deny,
}

/// For how long a grant counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GrantScope {
    /// For one use in the run that follows the answer.
    Once,
    /// In all runs of the plan.
    Plan,
}

impl Question {
    /// Returns the question whether an agent may use a tool: the only one whose answers grant anything.
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
