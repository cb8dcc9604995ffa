//! Enforces invariants: selects the ones that apply to a plan, and checks each before a phase.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_agent::{Ending, RunDirs};
use drydock_domain::{
    EffectiveInvariants, Enforcement, Finding, InheritedInvariants, Invariant, InvariantCheck, Phase, Plan,
    Project, Rule, error_chain,
};
use drydock_worktree::{CommitId, Repository};
use tokio_util::sync::CancellationToken;

use super::expression;
use super::facts::{DiffFacts, Facts, gather, measure};
use crate::engine::Engine;
use crate::error::EngineError;
use crate::phase::{RunDirLock, commit_id, lock_run_dir};
use crate::task;

/// The timeout of an invariant's command.
const COMMAND_MAX: Duration = Duration::from_secs(300);

/// The change that is checked: the difference between two commits, which are equal before Execute has a
/// result.
#[derive(Debug, Clone)]
pub(crate) struct CommitRange {
    pub(crate) from: CommitId,
    pub(crate) to: CommitId,
}

impl CommitRange {
    /// Returns the change of Execute against the plan's base; empty before Execute has a result.
    pub(crate) fn of(plan: &Plan) -> Result<CommitRange, EngineError> {
        let from = commit_id(&plan.base_commit)?;
        let to = plan.head_commit.as_deref().map(commit_id).transpose()?.unwrap_or_else(|| from.clone());
        Ok(CommitRange { from, to })
    }
}

/// Returns the invariants that apply to a plan, as they are stored now.
pub(crate) async fn effective_for(engine: &Engine, plan: &Plan) -> Result<Vec<Invariant>, EngineError> {
    Ok(holding(engine, plan).await?.0.all())
}

async fn holding(
    engine: &Engine,
    plan: &Plan,
) -> Result<(EffectiveInvariants, InheritedInvariants), EngineError> {
    let spec = &plan.spec;
    // The plan's own copies come first: at the same scope, the first of a name is kept.
    let mut candidates = spec.invariants.clone();
    candidates
        .extend(engine.store().invariant_candidates(&spec.project, &spec.action, Some(&plan.id)).await?);
    let taken = plan.place.as_ref().map(|place| place.rules.clone()).unwrap_or_default();
    Ok((taken.with(candidates), taken))
}

impl Engine {
    /// Checks every invariant that is enforced before a phase. A check that cannot be completed is a finding
    /// that blocks. So the only errors are a failure to read the rules, and a request to stop before all
    /// checks have completed.
    pub(crate) async fn enforce(
        &self,
        plan: &Plan,
        project: &Project,
        at: Phase,
        subject: CommitRange,
        stop: &CancellationToken,
    ) -> Result<Enforcement, EngineError> {
        self.enforce_these(effective_for(self, plan).await?, plan, project, at, subject, stop).await
    }

    /// Checks the invariants of a subplan that its parent's landing does not check: those of its own action
    /// and of itself.
    pub(crate) async fn enforce_own(
        &self,
        plan: &Plan,
        project: &Project,
        stop: &CancellationToken,
    ) -> Result<Enforcement, EngineError> {
        let (holding, taken) = holding(self, plan).await?;
        let (rules, subject) = (taken.unknown_to_parent(holding), CommitRange::of(plan)?);
        self.enforce_these(rules, plan, project, Phase::Apply, subject, stop).await
    }

    async fn enforce_these(
        &self,
        rules: Vec<Invariant>,
        plan: &Plan,
        project: &Project,
        at: Phase,
        subject: CommitRange,
        stop: &CancellationToken,
    ) -> Result<Enforcement, EngineError> {
        let rules: Vec<_> = rules.into_iter().filter(|rule| rule.at.contains(&at)).collect();
        if rules.is_empty() {
            return Ok(Enforcement::nothing(at));
        }
        let repository = self.repository(project).await?;
        let diff = self.measured(&rules, &repository, &subject).await;
        let place = self.command_place(&rules, plan, &repository, &subject).await;
        let mut findings = Vec::with_capacity(rules.len());
        for rule in rules {
            let (check, measure) = match (&rule.rule, &diff, &place) {
                (Rule::Text(_), _, _) => (InvariantCheck::NotChecked, None),
                (Rule::Cel(source), Ok(diff), _) => {
                    expression::check(source.clone(), gather(plan, project, at, diff.clone())).await
                }
                (Rule::Cel(_), Err(reason), _) | (Rule::Command(_), _, Err(reason)) => {
                    (InvariantCheck::Unknown(reason.clone()), None)
                }
                (Rule::Command(command), _, Ok(place)) => {
                    let facts = gather(plan, project, at, DiffFacts::default());
                    (self.command_check(command, place, plan, &facts, &subject, stop).await, None)
                }
            };
            let kind = rule.rule.kind();
            findings.push(Finding { invariant: rule.name, scope: rule.scope, rule: kind, check, measure });
        }
        if let Ok(place) = place {
            self.command_place_remove(repository, place).await;
        }
        // A command that we stopped gives no information about its rule.
        if stop.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(Enforcement { at, findings }) }
    }

    async fn measured(
        &self,
        rules: &[Invariant],
        repository: &Repository,
        subject: &CommitRange,
    ) -> Result<DiffFacts, String> {
        let wanted = rules.iter().any(|rule| matches!(rule.rule, Rule::Cel(_)));
        if !wanted || subject.from == subject.to {
            return Ok(DiffFacts::default());
        }
        let (repository, subject) = (repository.clone(), subject.clone());
        task::blocking(move || measure(&repository, &subject.from, &subject.to))
            .await
            .map_err(|error| format!("the change could not be measured: {error}"))
    }

    /// Makes a separate checkout for commands, so that a rule sees the result and cannot damage it.
    async fn command_place(
        &self,
        rules: &[Invariant],
        plan: &Plan,
        repository: &Repository,
        subject: &CommitRange,
    ) -> Result<CommandCheckout, String> {
        if !rules.iter().any(|rule| matches!(rule.rule, Rule::Command(_))) {
            return Ok(CommandCheckout { root: None, alive: None, reads: Vec::new() });
        }
        let reads = vec![repository.common_dir().to_owned()];
        let name = format!("rules-{}", self.fresh_run());
        let root = self.settings().worktrees.join(plan.id.as_str()).join(name);
        let (repository, commit, path) = (repository.clone(), subject.to.clone(), root.join("tree"));
        let directory = root.clone();
        let made = task::blocking(move || {
            let alive = lock_run_dir(&directory).map_err(|error| error_chain(&error))?;
            repository.checkout_detached(&path, &commit).map(|_| alive).map_err(|error| error_chain(&error))
        });
        let alive = made.await.map_err(|error| format!("no checkout could be created for it: {error}"))?;
        Ok(CommandCheckout { root: Some(root), alive: Some(alive), reads })
    }

    async fn command_check(
        &self,
        command: &str,
        place: &CommandCheckout,
        plan: &Plan,
        facts: &Facts,
        subject: &CommitRange,
        stop: &CancellationToken,
    ) -> InvariantCheck {
        let Some(root) = &place.root else {
            return InvariantCheck::Unknown("it had no directory to run in".to_owned());
        };
        let environment = BTreeMap::from([
            ("DRYDOCK_PLAN".to_owned(), facts.plan.id.clone()),
            ("DRYDOCK_PROJECT".to_owned(), facts.project.name.clone()),
            ("DRYDOCK_PHASE".to_owned(), facts.phase.to_owned()),
            ("DRYDOCK_BASE".to_owned(), subject.from.to_string()),
            ("DRYDOCK_HEAD".to_owned(), subject.to.to_string()),
        ]);
        let dirs =
            RunDirs { worktree: root.join("tree"), temp: root.join("temp"), reads: place.reads.clone() };
        let runner = self.runner_for(plan);
        let answer = runner.shell(command, &dirs, &environment, COMMAND_MAX, stop.clone()).await;
        match answer {
            Err(error) => InvariantCheck::Unknown(error_chain(&error)),
            Ok(result) => judge(command, result.ending, result.output.trim_end()),
        }
    }

    async fn command_place_remove(&self, repository: Repository, place: CommandCheckout) {
        let CommandCheckout { root: Some(root), alive, .. } = place else { return };
        drop(alive);
        let removed = task::blocking(move || remove(&repository, &root)).await;
        if let Err(error) = removed {
            tracing::warn!(error, "a checkout for rules could not be removed; `drydock gc` removes it");
        }
    }
}

/// The checkout in which commands of rules run; `None` if no rule is a command.
struct CommandCheckout {
    root: Option<PathBuf>,
    /// The lock of the directory, so that no other process treats it as orphaned.
    alive: Option<RunDirLock>,
    /// The directories that commands may read besides the checkout: the repository, for git.
    reads: Vec<PathBuf>,
}

fn remove(repository: &Repository, root: &Path) -> Result<(), String> {
    repository.checkout_remove(&root.join("tree")).map_err(|error| error_chain(&error))?;
    std::fs::remove_dir_all(root).map_err(|error| error_chain(&error))
}

fn judge(command: &str, ending: Ending, output: &str) -> InvariantCheck {
    let said = if output.is_empty() { String::new() } else { format!(": {output}") };
    match ending {
        Ending::Finished => InvariantCheck::Held,
        // The shell's exit codes for "cannot be run" and "not found".
        Ending::Failed { code: code @ (126 | 127), .. } => {
            InvariantCheck::Unknown(format!("`{command}` could not run (exit {code}){said}"))
        }
        Ending::Failed { code, .. } => {
            InvariantCheck::Violated(format!("`{command}` ended with {code}{said}"))
        }
        Ending::Killed { signal, .. } => {
            InvariantCheck::Unknown(format!("`{command}` was killed by signal {signal}"))
        }
        Ending::TimedOut { after, .. } => {
            InvariantCheck::Unknown(format!("`{command}` took longer than {} s", after.as_secs()))
        }
        Ending::LimitExceeded { what, max, .. } => {
            InvariantCheck::Unknown(format!("`{command}` used more than {max} {what}"))
        }
        Ending::Unfinished { reason, .. } | Ending::ModelFailed { reason, .. } => {
            InvariantCheck::Unknown(format!("`{command}` {reason}"))
        }
        Ending::RateLimited { .. } | Ending::Stalled { .. } | Ending::Stopped => {
            InvariantCheck::Unknown(format!("`{command}` was stopped"))
        }
        Ending::OutputExceeded { .. } => {
            InvariantCheck::Unknown(format!("`{command}` wrote too much output"))
        }
    }
}
