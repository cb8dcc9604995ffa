//! Projects: a git repository with a target branch and the validations of every plan.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// The policy for a divergence that cannot be rebased.
    OnDivergence {
        /// Back up the local commits, reset to the remote, ask.
        Recover = "recover",
        /// Leave both branches as they are and ask.
        Pause = "pause",
    }
}

/// A git repository that plans work in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Project {
    /// The project's name.
    pub name: String,
    /// The absolute path of the repository.
    pub repo: String,
    /// The branch that plans land on.
    pub target: String,
    /// The remote that landed work is pushed to.
    pub remote: Option<String>,
    /// The policy for a divergence, overriding the profile: `recover` or `pause`.
    #[serde(default)]
    pub on_divergence: Option<OnDivergence>,
    /// The validations that every plan must pass.
    #[serde(default)]
    pub validations: Vec<Validation>,
    /// When it was added.
    pub created_at: String,
}

/// A command that checks a result; exit 0 passes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Validation {
    /// The validation's name.
    pub name: String,
    /// The shell command.
    pub command: String,
    /// Whether a failure stops the plan.
    pub required: bool,
    /// The timeout in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_s: Option<u64>,
}

/// Adds a project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewProject {
    /// The project's name.
    pub name: String,
    /// The path of the repository.
    pub repo: String,
    /// The branch that plans land on; default: the branch that is checked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The remote that landed work is pushed to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The policy for a divergence; default: the profile's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_divergence: Option<OnDivergence>,
    /// The validations that every plan must pass.
    #[serde(default)]
    pub validations: Vec<NewValidation>,
}

/// A validation of a new project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NewValidation {
    /// The validation's name; default: derived from the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The shell command.
    pub command: String,
    /// Whether a failure stops the plan; default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
}

/// All projects.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Projects {
    /// The projects.
    pub projects: Vec<Project>,
    /// The cursor of the next page; null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// One project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneProject {
    /// The project.
    pub project: Project,
}
