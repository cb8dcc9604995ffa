//! Projects: a git repository with a target branch, a remote and validations.

use serde::{Deserialize, Serialize};

use crate::{Name, OnDivergence, Timestamp, Validation};

/// A git repository that plans work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Unique name.
    pub name: Name,
    /// The absolute path of the repository.
    pub repo: String,
    /// The branch that plans land on.
    pub target: String,
    /// The remote that landed work is pushed to, and that plan branches are synced with.
    pub remote: Option<String>,
    /// The reaction to a divergence; overrides the profile.
    #[serde(default)]
    pub on_divergence: Option<OnDivergence>,
    /// The validations that every plan of this project must pass.
    pub validations: Vec<Validation>,
    /// When the project was added.
    pub created_at: Timestamp,
}
