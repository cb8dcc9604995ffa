//! Actions: reusable task templates, and the names people give to things.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AgentRoles, Budget, Invariant, Timestamp};

/// A name that a person gives to a project, action, invariant or validation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// Why a text is not a name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a name: use 1 to 100 letters, digits and . _ - / and begin with a letter or digit")]
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
    /// Its name.
    pub name: Name,
    /// The task, a template over the arguments.
    pub description: String,
    /// When the task counts as done, a template over the arguments.
    pub definition_of_done: Option<String>,
    /// The profile of plans that name none.
    pub profile: Option<String>,
    /// What a plan must or may supply.
    pub arguments: BTreeMap<Name, Argument>,
    /// Who does it.
    pub agents: AgentRoles,
    /// What the result must pass.
    pub validations: Vec<Validation>,
    /// The rules at the scope of this action.
    pub invariants: Vec<Invariant>,
    /// Whether a plan without any change may be applied.
    pub allow_empty: bool,
    /// What a plan may use.
    #[serde(default)]
    pub budget: Budget,
    /// When it was created.
    pub created_at: Timestamp,
}

/// One argument of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Argument {
    /// Whether a plan must supply it.
    #[serde(default)]
    pub required: bool,
    /// What it is when a plan does not.
    #[serde(default)]
    pub default: Option<String>,
    /// What it means.
    #[serde(default)]
    pub description: Option<String>,
}

/// An agent that judges results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reviewer {
    /// The agent's name.
    pub agent: String,
    /// Whether its acknowledgement is needed.
    #[serde(default)]
    pub critical: bool,
}

/// What one reviewer said of one proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRun {
    /// Which agent.
    pub agent: String,
    /// Whether its acknowledgement is needed.
    pub critical: bool,
    /// The commit that it judged.
    pub commit: String,
    /// What it said.
    pub opinion: ReviewOpinion,
}

/// What a reviewer says of a proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReviewOpinion {
    /// It may go on.
    Acknowledged,
    /// It must not go on as it is.
    Refused {
        /// Why.
        reason: String,
    },
    /// Nothing that counts.
    Silent {
        /// Why not.
        reason: String,
    },
}

/// A command that judges a result; exit 0 passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validation {
    /// Its name.
    pub name: Name,
    /// The shell command, run at the root of the result.
    pub command: String,
    /// Whether a failure stops the plan; an informational one is only recorded.
    #[serde(default = "required")]
    pub required: bool,
    /// How many seconds it may take.
    #[serde(default)]
    pub timeout_s: Option<u64>,
}

fn required() -> bool {
    true
}

/// What one validation said of one result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ValidationRun {
    /// Which one.
    pub name: Name,
    /// Whether it had to pass.
    pub required: bool,
    /// Whether it passed.
    pub passed: bool,
    /// How it ended, and the end of its output.
    pub text: String,
}
