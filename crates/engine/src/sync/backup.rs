//! Backups of all projects. Listing, showing and restoring change nothing that exists. A backup is removed
//! under its plan's lock, and only if it is not needed: its commits are kept elsewhere, and no open decision
//! names it (N4). A needed backup is removed only at a person's request.

use std::collections::{BTreeMap, BTreeSet};

use drydock_domain::{
    Authority, CommitLine, DecisionId, Event, PINS, PlanId, Project, Refusal, Timestamp, error_chain,
};
use drydock_store::DecisionFilter;
use drydock_worktree::{BackupDetails, PinDropped, Repository, RestoreOutcome as PinRestored};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::steer::Caller;
use crate::task;
use crate::upkeep::GcMode;

/// How many open decisions of a plan are read; a plan has only a few at a time.
const DECISIONS_MAX: i64 = 1_000;

/// A backup ref and the commits that it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectBackup {
    /// The project whose repository contains the backup.
    pub project: String,
    /// The ref.
    pub name: String,
    /// The commit that the ref points to.
    pub commit: String,
    /// The plan whose branch was backed up.
    pub plan: String,
    /// The run, if one had started.
    pub run: Option<String>,
    /// Why the backup was made.
    pub reason: String,
    /// The commits that only refs of plans contain, oldest first.
    pub commits: Vec<CommitLine>,
    /// Whether the backup contains uncommitted edits.
    pub uncommitted: bool,
    /// When the backup was made.
    pub created_at: Timestamp,
    /// Why the backup is needed; `None` if it can be deleted without loss.
    pub needed: Option<String>,
}

/// How to handle a needed backup that the caller named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBackupPolicy {
    /// Refuse, and name what would be lost.
    IfNeedless,
    /// Remove it, because a person confirmed the loss.
    Discard,
}

/// The backups that were found, and the projects that could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BackupScan {
    /// The backups.
    pub found: Vec<ProjectBackup>,
    /// The projects whose repositories could not be read, with the reason.
    pub unseen: Vec<String>,
}

/// The result of restoring a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RestoredBranch {
    /// The backup.
    pub backup: ProjectBackup,
    /// The branch that now has its commits.
    pub branch: String,
}

impl Engine {
    /// Returns the backups of all projects, or of one plan.
    pub async fn backups(&self, plan: Option<&PlanId>) -> Result<BackupScan, EngineError> {
        let (mut backups, mut seen) = (BackupScan::default(), BTreeSet::new());
        for project in self.backup_projects(plan).await? {
            let repository = match self.repository(&project).await {
                Ok(repository) => repository,
                // One missing repository must not hide the backups in the others.
                Err(error) => {
                    let reason = error_chain(&error);
                    backups.unseen.push(format!("cannot read project {}: {reason}", project.name));
                    continue;
                }
            };
            // Two projects may share a repository.
            if !seen.insert(repository.common_dir().to_owned()) {
                continue;
            }
            let wanted = plan.map(ToString::to_string);
            let pins = task::blocking(move || repository.backup_list(wanted.as_deref())).await?;
            backups.found.extend(pins.into_iter().map(|pin| backup(&project, pin)));
        }
        self.needed_by_decisions(&mut backups.found).await?;
        Ok(backups)
    }

    /// Returns one backup by its ref or by the end of it (`<plan>/<n>`).
    pub async fn backup(&self, given: &str) -> Result<ProjectBackup, EngineError> {
        let (backup, _) = self.backup_found(given).await?;
        let mut found = vec![backup];
        self.needed_by_decisions(&mut found).await?;
        found.pop().ok_or_else(|| EngineError::absent("backup", given))
    }

    /// Restores a backup as a new branch; nothing that exists is changed.
    pub async fn backup_restore(
        &self,
        given: &str,
        branch: Option<&str>,
    ) -> Result<RestoredBranch, EngineError> {
        let (backup, repository) = self.backup_found(given).await?;
        let suffix = backup.name.strip_prefix(PINS).unwrap_or(&backup.name).to_owned();
        let branch = branch.map_or_else(|| format!("drydock-restored/{suffix}"), str::to_owned);
        let (name, to) = (backup.name.clone(), branch.clone());
        match task::blocking(move || repository.backup_restore(&name, &to)).await? {
            PinRestored::Created { .. } => Ok(RestoredBranch { backup, branch }),
            PinRestored::NoSuchPin => Err(EngineError::absent("backup", given)),
            PinRestored::BranchExists { at } if at.as_str() == backup.commit => {
                Ok(RestoredBranch { backup, branch })
            }
            PinRestored::BranchExists { .. } => Err(EngineError::Exists { kind: "branch", name: branch }),
        }
    }

    /// Removes one backup by name: one that is not needed or, at a person's request, a needed one.
    pub async fn backup_delete(
        &self,
        name: &str,
        named: NamedBackupPolicy,
        caller: &Caller,
    ) -> Result<ProjectBackup, EngineError> {
        if named == NamedBackupPolicy::Discard && caller.authority != Authority::Person {
            let command = "discard a backup of";
            return Err(Refusal::NotAllowed { command, authority: caller.authority }.into());
        }
        let (backup, repository) = self.backup_found(name).await?;
        let Some(plan) = self.plan_of(&backup).await? else {
            return self.backup_drop(backup, &repository, named, None).await;
        };
        let hold = self.lock_idle_plan(&plan, "remove a backup").await?;
        let done = self.backup_drop(backup, &repository, named, Some(&hold)).await;
        hold.release().await;
        done
    }

    /// Removes a backup, under the lock of its plan if the store has that plan.
    async fn backup_drop(
        &self,
        mut backup: ProjectBackup,
        repository: &Repository,
        named: NamedBackupPolicy,
        hold: Option<&PlanLockGuard>,
    ) -> Result<ProjectBackup, EngineError> {
        match hold {
            Some(_) => self.needed_by_decisions(std::slice::from_mut(&mut backup)).await?,
            None => {
                let unknown = "its plan is not in this store, so it is unknown whether a decision names it";
                backup.needed.get_or_insert_with(|| unknown.to_owned());
            }
        }
        if backup.needed.is_some() {
            match (named, hold) {
                (NamedBackupPolicy::IfNeedless, _) => {
                    return Err(EngineError::BackupNeeded { backup: Box::new(backup) });
                }
                // The event comes first: a crash after the removal could not be reported any more.
                (NamedBackupPolicy::Discard, Some(hold)) => self.emit(hold, vec![discarded(&backup)]).await?,
                (NamedBackupPolicy::Discard, None) => {}
            }
        }
        let (name, repository) = (backup.name.clone(), repository.clone());
        let anyway = named == NamedBackupPolicy::Discard;
        match task::blocking(move || repository.backup_drop(&name, anyway)).await? {
            PinDropped::Gone(_) => Ok(backup),
            PinDropped::Absent => Err(EngineError::absent("backup", &backup.name)),
            PinDropped::Needed(pin) => Err(EngineError::BackupNeeded {
                backup: Box::new(ProjectBackup { needed: pin.needed, ..backup }),
            }),
        }
    }

    /// Removes the backups that are not needed. Returns the removed and the kept ones.
    pub async fn backup_prune(
        &self,
        plan: Option<&PlanId>,
        sweep: GcMode,
    ) -> Result<(Vec<ProjectBackup>, Vec<ProjectBackup>), EngineError> {
        let (needless, mut kept): (Vec<_>, Vec<_>) =
            self.backups(plan).await?.found.into_iter().partition(|backup| backup.needed.is_none());
        if sweep == GcMode::Tell {
            return Ok((needless, kept));
        }
        let mut removed = Vec::new();
        for backup in needless {
            match self.backup_swept(&backup).await {
                Ok(backup) => removed.push(backup),
                Err(EngineError::BackupNeeded { backup }) => kept.push(*backup),
                Err(error @ EngineError::LockHeld { .. }) => {
                    kept.push(ProjectBackup { needed: Some(error_chain(&error)), ..backup });
                }
                Err(EngineError::Absent(_)) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((removed, kept))
    }

    async fn backup_swept(&self, backup: &ProjectBackup) -> Result<ProjectBackup, EngineError> {
        let (found, repository) = self.backup_found(&backup.name).await?;
        let Some(plan) = self.plan_of(&found).await? else {
            return self.backup_drop(found, &repository, NamedBackupPolicy::IfNeedless, None).await;
        };
        let hold = self.lock_plan(&plan, "remove a backup").await?;
        let done = self.backup_drop(found, &repository, NamedBackupPolicy::IfNeedless, Some(&hold)).await;
        hold.release().await;
        done
    }

    /// Returns the plan of a backup, if this store has it.
    async fn plan_of(&self, backup: &ProjectBackup) -> Result<Option<PlanId>, EngineError> {
        let Ok(plan) = backup.plan.parse::<PlanId>() else { return Ok(None) };
        Ok(self.store().plan_fetch(&plan).await?.map(|plan| plan.id))
    }

    /// Marks each backup that an open decision names as needed.
    async fn needed_by_decisions(&self, backups: &mut [ProjectBackup]) -> Result<(), EngineError> {
        let mut named: BTreeMap<String, BTreeMap<String, DecisionId>> = BTreeMap::new();
        for backup in backups {
            if !named.contains_key(&backup.plan) {
                named.insert(backup.plan.clone(), self.named_backups(&backup.plan).await?);
            }
            let Some(decision) = named.get(&backup.plan).and_then(|of| of.get(&backup.name)) else {
                continue;
            };
            let text = format!("decision {decision} is open and names it");
            backup.needed = Some(match backup.needed.take() {
                Some(reason) => format!("{reason}; {text}"),
                None => text,
            });
        }
        Ok(())
    }

    /// Returns the backups that open decisions of a plan name.
    async fn named_backups(&self, plan: &str) -> Result<BTreeMap<String, DecisionId>, EngineError> {
        let Ok(plan) = plan.parse::<PlanId>() else { return Ok(BTreeMap::new()) };
        let stored = self.store().plan_fetch(&plan).await?;
        let filter = DecisionFilter {
            open_only: true,
            plan: Some(plan),
            limit: DECISIONS_MAX,
            ..DecisionFilter::default()
        };
        let open = self.store().decision_list(&filter).await?.items;
        let name = |details: &serde_json::Value| details["backup_ref"].as_str().map(str::to_owned);
        let asked = open.into_iter().filter_map(|one| Some((name(&one.question.details)?, one.id)));
        // A queued divergence, which is asked about after the open decision, needs its backup as well.
        let pending = stored.as_ref().and_then(|plan| plan.pending_decision());
        let queued = stored.iter().flat_map(|plan| &plan.queued_divergences);
        let queued = queued.filter_map(|outcome| name(&outcome.divergence()?.details()));
        let queued = queued.filter_map(|name| Some((name, pending?.clone())));
        Ok(queued.chain(asked).collect())
    }

    async fn backup_found(&self, given: &str) -> Result<(ProjectBackup, Repository), EngineError> {
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
            if let Some(pin) = task::blocking(move || looked.backup_find(&wanted)).await? {
                return Ok((backup(&project, pin), repository));
            }
        }
        // The backup may be in a repository that could not be read.
        Err(unseen.unwrap_or_else(|| EngineError::absent("backup", given)))
    }

    async fn backup_projects(&self, plan: Option<&PlanId>) -> Result<Vec<Project>, EngineError> {
        let Some(plan) = plan else { return Ok(self.store().project_list().await?) };
        let plan = self.load_plan(plan).await?;
        Ok(vec![self.project(plan.spec.project.as_str()).await?])
    }
}

fn backup(project: &Project, pin: BackupDetails) -> ProjectBackup {
    ProjectBackup {
        project: project.name.to_string(),
        name: pin.name,
        commit: pin.commit.to_string(),
        plan: pin.plan,
        run: pin.run,
        reason: pin.reason,
        commits: pin.commits,
        uncommitted: pin.uncommitted == drydock_domain::Uncommitted::Kept,
        created_at: Timestamp::from_micros(pin.created_at_seconds.saturating_mul(1_000_000)),
        needed: pin.needed,
    }
}

fn discarded(backup: &ProjectBackup) -> Event {
    Event::BackupDiscarded {
        backup_ref: backup.name.clone(),
        commit: backup.commit.clone(),
        commits: backup.commits.clone(),
        uncommitted: backup.uncommitted,
    }
}
