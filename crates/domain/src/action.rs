//! Actions: reusable task templates. Also defines [`Name`], the user-chosen name of a project, action,
//! invariant or validation.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Budget, Invariant, PlanAgents, Timestamp};

/// A user-chosen name of a project, action, invariant or validation: 1 to 100 letters, digits and `. _ - /`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Returned when a text is not a valid [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a name: use 1 to 100 letters, digits and . _ - / and start with a letter or \
         digit"
)]
pub struct NameError(String);

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        let begins_well = text.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
        let fits = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
        if begins_well && fits && text.len() <= 100 {
            Ok(Self(text.to_owned()))
        } else {
            Err(NameError(text.to_owned()))
        }
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;

    fn try_from(text: String) -> Result<Self, NameError> {
        text.parse()
    }
}

impl From<Name> for String {
    fn from(name: Name) -> String {
        name.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A reusable task template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Action {
    /// Unique name of the action.
    pub name: Name,
    /// The task, as a template over the arguments.
    pub description: String,
    /// The condition under which the task is done, as a template over the arguments.
    pub definition_of_done: Option<String>,
    /// Default automation profile for plans that do not name one.
    pub profile: Option<String>,
    /// The arguments that a plan must or may supply.
    pub arguments: BTreeMap<Name, ActionArgument>,
    /// The agents that do the work.
    pub agents: PlanAgents,
    /// Validations that the result must pass.
    pub validations: Vec<Validation>,
    /// Invariants at the scope of this action.
    pub invariants: Vec<Invariant>,
    /// Whether a plan that changed nothing may be applied.
    pub allow_empty: bool,
    /// Default budget of a plan.
    #[serde(default)]
    pub budget: Budget,
    /// When the action was created.
    pub created_at: Timestamp,
}

/// One argument of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ActionArgument {
    /// Whether a plan must supply this argument.
    #[serde(default)]
    pub required: bool,
    /// Value used when a plan does not supply the argument.
    #[serde(default)]
    pub default: Option<String>,
    /// Explanation shown to users.
    #[serde(default)]
    pub description: Option<String>,
}

/// An agent that reviews results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReviewerSpec {
    /// The agent's name in the configuration.
    pub agent: String,
    /// Whether the plan cannot continue without this reviewer's acknowledgement.
    #[serde(default)]
    pub critical: bool,
}

/// The verdict of one reviewer on one proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewResult {
    /// The reviewer's agent name.
    pub agent: String,
    /// Whether this reviewer's acknowledgement is required.
    pub critical: bool,
    /// The reviewed commit.
    pub commit: String,
    /// The reviewer's verdict.
    pub opinion: ReviewOpinion,
}

/// A reviewer's verdict on a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewOpinion {
    /// The proposal is acceptable.
    Acknowledged,
    /// The proposal must be changed.
    Refused {
        /// The reviewer's reason.
        reason: String,
    },
    /// The reviewer gave no valid verdict.
    Silent {
        /// Why the verdict is missing or invalid.
        reason: String,
    },
}

/// A shell command that checks a result; exit code 0 passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Unique name within the project or action.
    pub name: Name,
    /// The shell command, run at the root of the result's worktree.
    pub command: String,
    /// Whether a failure stops the plan. A failure of an optional validation is only recorded.
    #[serde(default = "required")]
    pub required: bool,
    /// Time limit in seconds.
    #[serde(default)]
    pub timeout_s: Option<u64>,
}

fn required() -> bool {
    true
}

/// The outcome of one validation on one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// The validation's name.
    pub name: Name,
    /// Whether the validation had to pass.
    pub required: bool,
    /// Whether the validation passed.
    pub passed: bool,
    /// How the command ended, and the last part of its output.
    pub text: String,
}
