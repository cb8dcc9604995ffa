//! Projects: a git repository with a target branch and what every plan there must pass.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// What a divergence that cannot be rebased does.
    OnDivergence {
        /// Pin the local commits, reset to the remote, ask.
        Recover = "recover",
        /// Leave everything as it is and ask.
        Pause = "pause",
    }
}

/// A git repository that plans work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Project {
    /// Its name.
    pub name: String,
    /// The absolute path of the repository.
    pub repo: String,
    /// The branch that plans land on.
    pub target: String,
    /// The remote that landed work is pushed to.
    pub remote: Option<String>,
    /// What a divergence here does, whatever the profile says: `recover` or `pause`.
    #[serde(default)]
    pub on_divergence: Option<OnDivergence>,
    /// What every plan here must pass.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// When it was added.
    pub created_at: String,
}

/// A command that judges a result; exit 0 passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Validation {
    /// Its name.
    pub name: String,
    /// The shell command.
    pub command: String,
    /// Whether a failure stops the plan.
    pub required: bool,
    /// How many seconds it may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

/// Adds a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// Its name.
    pub name: String,
    /// The path of the repository.
    pub repo: String,
    /// The branch that plans land on; without one, the branch that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The remote that landed work is pushed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// What a divergence here does; without it, the profile says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_divergence: Option<OnDivergence>,
    /// What every plan here must pass.
    #[serde(default)]
    pub validations: Vec<NewValidation>,
}

/// A validation of a project that is being added.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewValidation {
    /// Its name; without one, it is made from the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The shell command.
    pub command: String,
    /// Whether a failure stops the plan; it does unless this says no.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// All projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Projects {
    /// The projects.
    pub projects: Vec<Project>,
    /// Where the next page begins.
    #[serde(default)]
    pub next: Option<String>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneProject {
    /// The project.
    pub project: Project,
}
