//! Adds, finds and removes projects, actions and invariants.

use std::path::PathBuf;

use drydock_domain::{
    Action, Invariant, InvariantScope, Name, NameError, OnDivergence, Plan, Project, Validation,
};
use drydock_store::{AddOutcome, RemoveOutcome};

use crate::action_file::parse;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::make::{InvariantInput, not_of_a_plan};
use crate::rule::effective_for;
use crate::{clock, task};

/// A project as a person adds it.
#[derive(Debug, Clone)]
pub struct ProjectInput {
    /// The name of the project.
    pub name: String,
    /// A path in the repository.
    pub repo: PathBuf,
    /// The branch to land on; default: the one that is checked out.
    pub target: Option<String>,
    /// The remote to push to.
    pub remote: Option<String>,
    /// How a divergence is handled; overrides the profile.
    pub on_divergence: Option<OnDivergence>,
    /// The validations that every plan must pass.
    pub validations: Vec<Validation>,
}

impl Engine {
    /// Adds a project after checking its repository.
    pub async fn project_add(&self, new: ProjectInput) -> Result<Project, EngineError> {
        let name = name(&new.name)?;
        let repository = self.repository_at(new.repo.clone()).await?;
        let (target, remote) = (new.target.clone(), new.remote.clone());
        let root = repository.root().to_string_lossy().into_owned();
        let (called, place) = (name.clone(), root.clone());
        let target = task::blocking(move || -> Result<String, EngineError> {
            repository.require_room()?;
            let target = match target {
                Some(target) => target,
                None => repository.head_branch()?.ok_or_else(|| no_branch(&called, &place))?,
            };
            not_of_a_plan(&target, &place)?;
            if repository.branch_tip(&target)?.is_none() {
                return Err(EngineError::absent_in("branch", target, repository.root()));
            }
            match remote {
                Some(remote) if !repository.remote_exists(&remote)? => {
                    Err(EngineError::absent_in("remote", remote, repository.root()))
                }
                Some(_) | None => Ok(target),
            }
        })
        .await?;
        let project = Project {
            name,
            repo: root,
            target,
            remote: new.remote,
            on_divergence: new.on_divergence,
            validations: new.validations,
            created_at: clock::now(),
        };
        match self.store().project_add(&project).await? {
            AddOutcome::Added => Ok(project),
            AddOutcome::Exists => Err(exists("project", &project.name)),
        }
    }

    /// Removes a project that no unfinished plan uses.
    pub async fn project_remove(&self, given: &str) -> Result<(), EngineError> {
        let project = self.project(given).await?;
        removed(self.store().project_remove(&project.name).await?, "project", given)
    }

    /// Creates an action from the text of its file.
    pub async fn action_create(&self, text: &str) -> Result<Action, EngineError> {
        let action = parse(text, clock::now()).map_err(|error| {
            EngineError::invalid(error.to_string(), "correct the file; docs/actions.md lists every key")
        })?;
        if let Some(profile) = &action.profile
            && self.settings().profiles.iter().all(|known| known.name != *profile)
        {
            return Err(EngineError::absent("profile", profile));
        }
        for rule in &action.invariants {
            self.refuse_locked(rule).await?;
        }
        match self.store().action_add(&action).await? {
            AddOutcome::Added => Ok(action),
            AddOutcome::Exists => Err(exists("action", &action.name)),
        }
    }

    /// Returns the action with this name.
    pub async fn action(&self, given: &str) -> Result<Action, EngineError> {
        let absent = || EngineError::absent("action", given);
        let name: Name = given.parse().map_err(|_| absent())?;
        self.store().action_fetch(&name).await?.ok_or_else(absent)
    }

    /// Removes an action; plans that were created from it keep their copy.
    pub async fn action_remove(&self, given: &str) -> Result<(), EngineError> {
        let action = self.action(given).await?;
        removed(self.store().action_remove(&action.name).await?, "action", given)
    }

    /// Adds an invariant at an existing scope.
    pub async fn invariant_add(
        &self,
        new: InvariantInput,
        scope: InvariantScope,
        lock: OverridePolicy,
    ) -> Result<Invariant, EngineError> {
        match &scope {
            InvariantScope::Global => {}
            InvariantScope::Project(name) => drop(self.project(name.as_str()).await?),
            InvariantScope::Plan(id) => {
                let plan = self.load_plan(id).await?;
                if plan
                    .spec
                    .invariants
                    .iter()
                    .any(|rule| rule.name.as_str() == new.name && rule.scope == scope)
                {
                    return Err(EngineError::Exists { kind: "invariant", name: new.name });
                }
            }
            InvariantScope::Action(name) => {
                let action = self.action(name.as_str()).await?;
                if action.invariants.iter().any(|rule| rule.name.as_str() == new.name) {
                    return Err(EngineError::Exists { kind: "invariant", name: new.name });
                }
            }
        }
        let mut rule = new.at_scope(scope)?;
        match (lock, &rule.scope) {
            (OverridePolicy::Open, _) => {}
            (OverridePolicy::Locked, InvariantScope::Global) => rule.locked = true,
            (OverridePolicy::Locked, _) => {
                let text = "only a global invariant can be locked";
                return Err(EngineError::invalid(text, "leave out --locked, or use --scope global"));
            }
        }
        self.refuse_locked(&rule).await?;
        match self.store().invariant_add(&rule).await? {
            AddOutcome::Added => Ok(rule),
            AddOutcome::Exists => Err(exists("invariant", &rule.name)),
        }
    }

    /// Refuses a narrower rule with the name of a locked global one.
    pub(crate) async fn refuse_locked(&self, rule: &Invariant) -> Result<(), EngineError> {
        if rule.scope == InvariantScope::Global {
            return Ok(());
        }
        let global = self.store().invariant_list(Some(&InvariantScope::Global)).await?;
        if global.iter().any(|known| known.locked && known.name == rule.name) {
            return Err(EngineError::Exists { kind: "locked global invariant", name: rule.name.to_string() });
        }
        Ok(())
    }

    /// Returns the invariants that apply to a plan.
    pub async fn invariants_effective(&self, plan: &Plan) -> Result<Vec<Invariant>, EngineError> {
        effective_for(self, plan).await
    }

    /// Removes an invariant.
    pub async fn invariant_remove(&self, given: &str, scope: &InvariantScope) -> Result<(), EngineError> {
        let absent = || EngineError::absent("invariant", format!("{given} ({scope})"));
        let name: Name = given.parse().map_err(|_| absent())?;
        match self.store().invariant_remove(&name, scope).await? {
            RemoveOutcome::Removed => Ok(()),
            RemoveOutcome::Missing | RemoveOutcome::InUse(_) => Err(absent()),
        }
    }
}

/// Returns the error for a repository without a checked out branch, if the caller named none.
fn no_branch(name: &Name, root: &str) -> EngineError {
    let hint = format!(
        "check out a branch, or name one: `drydock project add {name} --repo {root} --target \
                 BRANCH`"
    );
    EngineError::invalid(format!("no branch is checked out in {root}"), hint)
}

/// Whether narrower scopes may replace a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverridePolicy {
    /// Narrower scopes may replace it.
    Open,
    /// Narrower scopes may not replace it.
    Locked,
}

fn name(given: &str) -> Result<Name, EngineError> {
    given.parse().map_err(|error: NameError| EngineError::invalid(error.to_string(), "choose another name"))
}

fn exists(kind: &'static str, name: &Name) -> EngineError {
    EngineError::Exists { kind, name: name.to_string() }
}

fn removed(removed: RemoveOutcome, kind: &'static str, given: &str) -> Result<(), EngineError> {
    match removed {
        RemoveOutcome::Removed => Ok(()),
        RemoveOutcome::Missing => Err(EngineError::absent(kind, given)),
        RemoveOutcome::InUse(plans) => Err(EngineError::InUse {
            kind,
            name: given.to_owned(),
            by: plans.iter().map(ToString::to_string).collect(),
        }),
    }
}
