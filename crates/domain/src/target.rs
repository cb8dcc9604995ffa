//! The branch that a plan lands on.

use serde::{Deserialize, Serialize};

use crate::{Plan, Project};

/// The target branch that a plan was created for. Use `Plan::target` to find the branch to land on: plans of
/// earlier versions have no target of their own and land on their project's.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Target(Option<String>);

impl Target {
    /// Returns the target with this branch name.
    pub fn branch(name: impl Into<String>) -> Target {
        Target(Some(name.into()))
    }

    /// Returns the branch name, for display only; `None` for a plan of an earlier version.
    pub fn named(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl Plan {
    /// Returns the branch of `project` that this plan's work lands on: the plan's own target in its own
    /// project, otherwise the target of `project`.
    pub fn target<'a>(&'a self, project: &'a Project) -> &'a str {
        let own = if project.name == self.spec.project { self.spec.target.named() } else { None };
        own.unwrap_or(&project.target)
    }
}
