//! What rules can speak of. Everything is there before every phase: a plan that changed nothing has an empty diff,
//! so that one rule can hold for all phases.

use std::collections::{BTreeMap, BTreeSet};

use drydock_domain::{Phase, Plan, Project, told};
use drydock_worktree::{CommitId, Repository};
use serde::Serialize;

/// How many paths a rule can see; a larger change cannot be judged, and what cannot be judged blocks.
const PATHS_MAX: usize = 10_000;

/// The variables of a rule.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Facts {
    pub(crate) phase: &'static str,
    pub(crate) plan: PlanFacts,
    pub(crate) project: ProjectFacts,
    pub(crate) args: BTreeMap<String, String>,
    pub(crate) arguments: BTreeMap<String, String>,
    pub(crate) diff: DiffFacts,
    pub(crate) changed_paths: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct PlanFacts {
    pub(crate) id: String,
    pub(crate) action: String,
    pub(crate) task: String,
    pub(crate) profile: String,
    pub(crate) reversions: i64,
    pub(crate) runs: i64,
    pub(crate) choices: i64,
    pub(crate) target: String,
}

#[derive(Debug, Clone, Serialize)]
pub(crate) struct ProjectFacts {
    pub(crate) name: String,
    pub(crate) target: String,
}

#[derive(Debug, Clone, Default, Serialize)]
pub(crate) struct DiffFacts {
    pub(crate) files: i64,
    pub(crate) files_changed: i64,
    pub(crate) lines_added: i64,
    pub(crate) lines_deleted: i64,
    pub(crate) lines_changed: i64,
    pub(crate) binary_files: i64,
    pub(crate) paths: Vec<String>,
}

/// Gathers the facts of a plan before a phase.
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

/// Measures the difference between two commits, or says why a rule could not judge it.
pub(crate) fn measure(repository: &Repository, from: &CommitId, to: &CommitId) -> Result<DiffFacts, String> {
    let stat = repository.stat(from, to).map_err(|error| told(&error))?;
    let changes = repository.changes(from, to).map_err(|error| told(&error))?;
    // Both names of a rename: a file that left a protected place was changed there.
    let paths: BTreeSet<String> =
        changes.into_iter().flat_map(|change| [Some(change.path), change.from]).flatten().collect();
    if paths.len() > PATHS_MAX {
        return Err(format!("it changes {} paths, and rules can see {PATHS_MAX}", paths.len()));
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
