//! Actions: reusable task templates.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Amounts, Invariant, Validation};

/// A reusable task template.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Action {
    /// The action's name.
    pub name: String,
    /// The task, as a template with the arguments as variables.
    pub description: String,
    /// The condition under which the task is done.
    #[serde(default)]
    pub definition_of_done: Option<String>,
    /// The profile of plans that name none.
    #[serde(default)]
    pub profile: Option<String>,
    /// The arguments of the template, by name.
    #[serde(default)]
    pub arguments: BTreeMap<String, Argument>,
    /// The agents of its plans.
    #[serde(default)]
    pub agents: Roles,
    /// The validations that the result must pass.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// The invariants at the scope of this action.
    #[serde(default)]
    pub invariants: Vec<Invariant>,
    /// Whether a plan without any change may be applied.
    #[serde(default)]
    pub allow_empty: bool,
    /// The budget of its plans; null if there is none.
    #[serde(default)]
    pub budget: Option<Amounts>,
    /// When it was created.
    pub created_at: String,
}

/// One argument of an action.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Argument {
    /// Whether a plan must supply the argument.
    #[serde(default)]
    pub required: bool,
    /// The value if a plan supplies none.
    #[serde(default)]
    pub default: Option<String>,
    /// The meaning of the argument.
    #[serde(default)]
    pub description: Option<String>,
}

/// The agents of a plan, by role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Roles {
    /// The agent that plans the task.
    #[serde(default)]
    pub strategize: Option<String>,
    /// The agent that does the task.
    #[serde(default)]
    pub execute: Option<String>,
    /// The agents that review the result.
    #[serde(default)]
    pub reviewers: Vec<Reviewer>,
}

/// An agent that reviews results.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Reviewer {
    /// The agent's name.
    pub agent: String,
    /// Whether its approval is required.
    #[serde(default)]
    pub critical: bool,
}

/// Creates an action from the text of a TOML file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAction {
    /// The text of the file.
    pub toml: String,
    /// The name of the file for error messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

/// All actions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Actions {
    /// The actions.
    pub actions: Vec<Action>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// One action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneAction {
    /// The action.
    pub action: Action,
}
