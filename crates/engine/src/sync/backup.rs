//! Backups: the pins of all projects as a person sees them. Listing, looking and restoring touch nothing that exists;
//! pruning keeps whatever is not reachable elsewhere.

use std::collections::BTreeSet;

use drydock_domain::{CommitLine, PINS, PlanId, Project, Timestamp, told};
use drydock_worktree::{Pin, Repository, Restored as PinRestored};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::task;
use crate::upkeep::Sweep;

/// A backup ref and what it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// The project whose repository has it.
    pub project: String,
    /// The ref.
    pub name: String,
    /// The commit it keeps.
    pub commit: String,
    /// The plan whose branch it was made of.
    pub plan: String,
    /// The run, if one had started.
    pub run: Option<String>,
    /// Why it was made.
    pub reason: String,
    /// The commits that nothing but backups keeps, oldest first.
    pub commits: Vec<CommitLine>,
    /// Whether it keeps edits that were not committed.
    pub uncommitted: bool,
    /// When it was made.
    pub created_at: Timestamp,
}

/// The backups that were found, and where nobody could look.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Backups {
    /// The backups.
    pub found: Vec<Backup>,
    /// The projects whose repositories could not be looked at, with the reason.
    pub unseen: Vec<String>,
}

/// Where a backup was brought back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Restored {
    /// The backup.
    pub backup: Backup,
    /// The branch that has its commits now.
    pub branch: String,
}

impl Engine {
    /// Returns the backups of all projects, or of one plan.
    pub async fn backups(&self, plan: Option<&PlanId>) -> Result<Backups, EngineError> {
        let (mut backups, mut seen) = (Backups::default(), BTreeSet::new());
        for project in self.backup_projects(plan).await? {
            let repository = match self.repository(&project).await {
                Ok(repository) => repository,
                // One repository that is gone must not hide the backups in the others.
                Err(error) => {
                    let reason = told(&error);
                    backups.unseen.push(format!("cannot look into project {}: {reason}", project.name));
                    continue;
                }
            };
            // Two projects may share a repository.
            if !seen.insert(repository.common_dir().to_owned()) {
                continue;
            }
            let wanted = plan.map(ToString::to_string);
            let pins = task::blocking(move || repository.pin_list(wanted.as_deref())).await?;
            backups.found.extend(pins.into_iter().map(|pin| backup(&project, pin)));
        }
        Ok(backups)
    }

    /// Returns one backup by its ref, or by the end of it (`<plan>/<n>`).
    pub async fn backup(&self, given: &str) -> Result<Backup, EngineError> {
        self.backup_found(given).await.map(|(backup, _)| backup)
    }

    /// Brings a backup back as a new branch; nothing that exists is changed.
    pub async fn backup_restore(&self, given: &str, branch: Option<&str>) -> Result<Restored, EngineError> {
        let (backup, repository) = self.backup_found(given).await?;
        let suffix = backup.name.strip_prefix(PINS).unwrap_or(&backup.name).to_owned();
        let branch = branch.map_or_else(|| format!("drydock-restored/{suffix}"), str::to_owned);
        let (name, to) = (backup.name.clone(), branch.clone());
        match task::blocking(move || repository.pin_restore(&name, &to)).await? {
            PinRestored::Created { .. } => Ok(Restored { backup, branch }),
            PinRestored::NoSuchPin => Err(EngineError::absent("backup", given)),
            PinRestored::BranchExists { at } if at.as_str() == backup.commit => {
                Ok(Restored { backup, branch })
            }
            PinRestored::BranchExists { .. } => Err(EngineError::Exists { kind: "branch", name: branch }),
        }
    }

    /// Removes one backup by its name, whatever it keeps.
    pub async fn backup_delete(&self, name: &str) -> Result<Backup, EngineError> {
        let (backup, repository) = self.backup_found(name).await?;
        let exact = backup.name.clone();
        task::blocking(move || repository.pin_delete(&exact)).await?;
        Ok(backup)
    }

    /// Removes the backups whose commits are all reachable elsewhere, and returns them with those that stay.
    pub async fn backup_prune(
        &self,
        plan: Option<&PlanId>,
        sweep: Sweep,
    ) -> Result<(Vec<Backup>, Vec<Backup>), EngineError> {
        let backups = self.backups(plan).await?.found;
        let mut gone = BTreeSet::new();
        for project in self.backup_projects(plan).await? {
            let Ok(repository) = self.repository(&project).await else { continue };
            let wanted = plan.map(ToString::to_string);
            let pruned = task::blocking(move || match sweep {
                Sweep::Tell => repository.pin_judge(wanted.as_deref()),
                Sweep::Remove => repository.pin_prune(wanted.as_deref()),
            });
            gone.extend(pruned.await?.removed);
        }
        let is_gone = |backup: &Backup| gone.contains(&backup.name);
        Ok(backups.into_iter().partition(is_gone))
    }

    async fn backup_found(&self, given: &str) -> Result<(Backup, Repository), EngineError> {
        let name = if given.starts_with("refs/") { given.to_owned() } else { format!("{PINS}{given}") };
        let mut unseen = None;
        for project in self.store().project_list().await? {
            let repository = match self.repository(&project).await {
                Ok(repository) => repository,
                Err(error) => {
                    unseen = unseen.or(Some(error));
                    continue;
                }
            };
            let (wanted, looked) = (name.clone(), repository.clone());
            if let Some(pin) = task::blocking(move || looked.pin_find(&wanted)).await? {
                return Ok((backup(&project, pin), repository));
            }
        }
        // It may be where nobody could look.
        Err(unseen.unwrap_or_else(|| EngineError::absent("backup", given)))
    }

    async fn backup_projects(&self, plan: Option<&PlanId>) -> Result<Vec<Project>, EngineError> {
        let Some(plan) = plan else { return Ok(self.store().project_list().await?) };
        let plan = self.plan_stored(plan).await?;
        Ok(vec![self.project(plan.spec.project.as_str()).await?])
    }
}

fn backup(project: &Project, pin: Pin) -> Backup {
    Backup {
        project: project.name.to_string(),
        name: pin.name,
        commit: pin.commit.to_string(),
        plan: pin.plan,
        run: pin.run,
        reason: pin.reason,
        commits: pin.commits,
        uncommitted: pin.uncommitted == drydock_domain::Uncommitted::Kept,
        created_at: Timestamp::from_micros(pin.created_at_seconds.saturating_mul(1_000_000)),
    }
}
