//! The branch that a plan lands on.

use serde::{Deserialize, Serialize};

use crate::{Plan, Project};

/// The branch that a plan was made for. What lands, and where from, is asked of `Plan::target`, which needs the project:
/// plans of earlier versions have none of their own and land on their project's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Target(Option<String>);

impl Target {
    /// Returns the target that is this branch.
    pub fn branch(name: impl Into<String>) -> Target {
        Target(Some(name.into()))
    }

    /// Returns the branch's name, for display only; None for a plan of an earlier version.
    pub fn named(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Plan {
    /// Returns the branch of a project that work of this plan lands on: in its own project the one it was made for, in
    /// another that project's own.
    pub fn target<'a>(&'a self, project: &'a Project) -> &'a str {
        let own = if project.name == self.spec.project { self.spec.target.named() } else { None };
        own.unwrap_or(&project.target)
    }
}
