//! Projects: a git repository with a target branch and the rules that hold there.

use serde::{Deserialize, Serialize};

use crate::{Name, OnDivergence, Timestamp, Validation};

/// A git repository that plans work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its name.
    pub name: Name,
    /// The absolute path of the repository.
    pub repo: String,
    /// The branch that plans land on.
    pub target: String,
    /// The remote that landed work is pushed to, and that the branches of plans are kept together with.
    pub remote: Option<String>,
    /// What a divergence here does, whatever the profile says.
    #[serde(default)]
    pub on_divergence: Option<OnDivergence>,
    /// What every plan here must pass.
    pub validations: Vec<Validation>,
    /// When it was added.
    pub created_at: Timestamp,
}
