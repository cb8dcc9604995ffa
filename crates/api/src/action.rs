//! Actions: reusable task templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Amounts, Invariant, Validation};

/// A reusable task template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Action {
    /// Its name.
    pub name: String,
    /// The task, a template over the arguments.
    pub description: String,
    /// When the task counts as done.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// The profile of plans that name none.
    #[serde(default)]
    pub profile: Option<String>,
    /// What a plan must or may supply.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
    /// Who does it.
    #[serde(default)]
    pub agents: Roles,
    /// What the result must pass.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// The rules at the scope of this action.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    /// Whether a plan without any change may be applied.
    #[serde(default)]
    pub allow_empty: bool,
    /// What its plans may use; null when it limits nothing.
    #[serde(default)]
    pub budget: Option<Amounts>,
    /// When it was created.
    pub created_at: String,
}

/// One argument of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
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

/// The agents of a plan, by role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Roles {
    /// Thinks the task through.
    #[serde(default)]
    pub strategize: Option<String>,
    /// Does the task.
    #[serde(default)]
    pub execute: Option<String>,
    /// Judge the result.
    #[serde(default)]
    pub reviewers: Vec<Reviewer>,
}

/// An agent that judges results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reviewer {
    /// The agent's name.
    pub agent: String,
    /// Whether its acknowledgement is needed.
    #[serde(default)]
    pub critical: bool,
}

/// Creates an action from the text of its file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAction {
    /// The text of the file.
    pub toml: String,
    /// What to call the file in messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// All actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Actions {
    /// The actions.
    pub actions: Vec<Action>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneAction {
    /// The action.
    pub action: Action,
}
