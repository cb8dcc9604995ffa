//! The facts that rules can use. All facts exist before every phase: a plan without changes has an empty
//! diff, so that one rule can apply to all phases.
//!
//! The doc comments of the facts are the descriptions in `docs/actions.md`.

use std::collections::{BTreeMap, BTreeSet};

use drydock_domain::{Phase, Plan, Project, counted, error_chain};
use drydock_worktree::{CommitId, Repository};
use schemars::JsonSchema;
use serde::Serialize;

/// How many paths a rule can see. A larger change cannot be checked, so it blocks.
const PATHS_MAX: usize = 10_000;

/// The variables of a rule.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct Facts {
    /// The phase to start: `strategize`, `execute` or `apply`.
    pub(crate) phase: &'static str,
    pub(crate) plan: PlanFacts,
    pub(crate) project: ProjectFacts,
    /// The plan's arguments by name.
    pub(crate) args: BTreeMap<String, String>,
    /// The same as `args`.
    pub(crate) arguments: BTreeMap<String, String>,
    pub(crate) diff: DiffFacts,
    /// The same as `diff.paths`.
    pub(crate) changed_paths: Vec<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct PlanFacts {
    /// The plan's id.
    pub(crate) id: String,
    /// The name of its action; `run` for a plain task.
    pub(crate) action: String,
    /// The task in words.
    pub(crate) task: String,
    /// The name of its profile.
    pub(crate) profile: String,
    /// How often it went back to Strategize.
    pub(crate) reversions: i64,
    /// How many runs it has had.
    pub(crate) runs: i64,
    /// How many choices its strategy has.
    pub(crate) choices: i64,
    /// The branch that the plan lands on.
    pub(crate) target: String,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct ProjectFacts {
    /// The project's name.
    pub(crate) name: String,
    /// The branch that the project's plans land on by default.
    pub(crate) target: String,
}

#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub(crate) struct DiffFacts {
    /// How many files the plan changed.
    pub(crate) files: i64,
    /// The same as `diff.files`.
    pub(crate) files_changed: i64,
    /// How many lines it added.
    pub(crate) lines_added: i64,
    /// How many lines it deleted.
    pub(crate) lines_deleted: i64,
    /// Lines added and deleted together.
    pub(crate) lines_changed: i64,
    /// How many of the files are binary.
    pub(crate) binary_files: i64,
    /// The paths of the files; both of a renamed one.
    pub(crate) paths: Vec<String>,
}

/// Collects the facts of a plan before a phase.
pub(crate) fn gather(plan: &Plan, project: &Project, at: Phase, diff: DiffFacts) -> Facts {
    Facts {
        phase: at.name(),
        plan: PlanFacts {
            id: plan.id.to_string(),
            action: plan.spec.action.to_string(),
            task: plan.spec.task.clone(),
            profile: plan.spec.profile.name.clone(),
            reversions: i64::from(plan.reversions),
            runs: i64::from(plan.runs),
            choices: i64::try_from(plan.choices.len()).unwrap_or(i64::MAX),
            target: plan.target(project).to_owned(),
        },
        project: ProjectFacts { name: project.name.to_string(), target: project.target.clone() },
        args: plan.spec.arguments.clone(),
        arguments: plan.spec.arguments.clone(),
        changed_paths: diff.paths.clone(),
        diff,
    }
}

/// Measures the difference between two commits, or returns why rules cannot check it.
pub(crate) fn measure(repository: &Repository, from: &CommitId, to: &CommitId) -> Result<DiffFacts, String> {
    let stat = repository.stat(from, to).map_err(|error| error_chain(&error))?;
    let changes = repository.changes(from, to).map_err(|error| error_chain(&error))?;
    // Both paths of a rename: moving a file out of a protected directory changes that directory.
    let paths: BTreeSet<String> =
        changes.into_iter().flat_map(|change| [Some(change.path), change.from]).flatten().collect();
    if paths.len() > PATHS_MAX {
        return Err(format!("it changes {}, limit {PATHS_MAX} for rules", counted(paths.len(), "path")));
    }
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    Ok(DiffFacts {
        files: count(stat.files),
        files_changed: count(stat.files),
        lines_added: count(stat.lines_added),
        lines_deleted: count(stat.lines_deleted),
        lines_changed: count(stat.lines_added.saturating_add(stat.lines_deleted)),
        binary_files: count(stat.binary_files),
        paths: paths.into_iter().collect(),
    })
}

#[cfg(test)]
impl Facts {
    /// Returns empty facts.
    pub(super) fn sample() -> Self {
        let text = String::new;
        Facts {
            phase: "apply",
            plan: PlanFacts {
                id: text(),
                action: text(),
                task: text(),
                profile: text(),
                reversions: 0,
                runs: 0,
                choices: 0,
                target: text(),
            },
            project: ProjectFacts { name: text(), target: text() },
            args: BTreeMap::new(),
            arguments: BTreeMap::new(),
            diff: DiffFacts::default(),
            changed_paths: Vec::new(),
        }
    }
}
