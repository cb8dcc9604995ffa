//! Projects: a git repository with a target branch and the rules that hold there.

use serde::{Deserialize, Serialize};

use crate::{Name, Timestamp, Validation};

/// A git repository that plans work on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Project {
    /// Its name.
    pub name: Name,
    /// The absolute path of the repository.
    pub repo: String,
    /// The branch that plans land on.
    pub target: String,
    /// The remote that landed work is pushed to.
    pub remote: Option<String>,
    /// What every plan here must pass.
    pub validations: Vec<Validation>,
    /// When it was added.
    pub created_at: Timestamp,
}
