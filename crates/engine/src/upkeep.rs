//! Maintenance of a store and its worktrees: the health check, and garbage collection of everything that is
//! proven safe to delete.

use std::path::{Path, PathBuf};

use drydock_agent::{Landlock, SandboxMode, landlock};
use drydock_domain::{Lock, LockScope, Plan, PlanId, State, error_chain};
use drydock_worktree::{Git, GitVersion, is_gone, make_folder};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::hold::PlanLockGuard;
use crate::look::{AgentSource, CHECKS, ConfiguredAgent};
use crate::phase::{
    KeptWork, OldRunDir, Rest, is_occupied, leftovers, lock_run_dir, remove_empty, remove_leftover,
};
use crate::sync::ProjectBackup;
use crate::task;

/// The result of one health check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HealthCheck {
    /// The name of the check.
    pub name: &'static str,
    /// The grade of the result.
    pub grade: CheckGrade,
    /// The finding of the check.
    pub text: String,
    /// A hint for the user.
    pub hint: Option<String>,
}

/// The grade of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckGrade {
    /// No problem was found.
    Good,
    /// Worth a person's attention.
    Doubtful,
    /// Broken.
    Bad,
}

/// Whether a collection removes or only lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GcMode {
    /// Removes.
    Remove,
    /// Lists what would be removed.
    Tell,
}

/// The holder of a plan whose files are collected.
pub(crate) enum Held {
    Here(PlanLockGuard),
    /// No lock is needed, because nothing will be written.
    NotNeeded,
    Elsewhere {
        /// The process, as text for the user.
        reason: String,
    },
}

/// The result of a collection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GcResult {
    /// The objects that were removed, or would be.
    pub removed: Vec<GcRemoved>,
    /// The objects that were kept.
    pub kept: Vec<GcKept>,
}

/// A removed object, with the proof that nothing is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcRemoved {
    /// The object.
    pub what: String,
    /// Why nothing is lost.
    pub proof: String,
}

/// A kept object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GcKept {
    /// The object.
    pub what: String,
    /// Why it was kept.
    pub reason: String,
}

impl Engine {
    /// Checks everything that a plan needs. Also returns the number of stale locks (S1.7).
    pub async fn doctor(&self) -> Result<(Vec<HealthCheck>, i64), EngineError> {
        let git = match task::blocking(Git::find).await {
            Ok(git) => good("git", format!("git {}", git.version())),
            Err(error) => {
                bad("git", error_chain(&error), &format!("install git {} or newer", GitVersion::MIN))
            }
        };
        let version = self.store().engine_version().await?;
        let store = good("store", format!("{version}, schema {}", self.store().schema_version()));
        let stale: Vec<_> = self.locks().await?.into_iter().filter(|lock| lock.stale).collect();
        let gone = stale.iter().filter(|lock| is_gone(&lock.holder.process)).count();
        let stale_locks = i64::try_from(stale.len()).unwrap_or(i64::MAX);
        let locks = match stale.len() {
            0 => good("locks", "no lock is stale".to_owned()),
            count => HealthCheck {
                name: "locks",
                grade: CheckGrade::Doubtful,
                text: format!(
                    "{count} stale: {gone} of processes that no longer exist, {} expired",
                    count - gone
                ),
                hint: Some(
                    "see `drydock lock list`; the next command on each plan takes its lock over, and \
                     `drydock gc` releases the locks of finished plans"
                        .to_owned(),
                ),
            },
        };
        let worktrees = self.settings().worktrees.clone();
        let writable = task::blocking(move || make_folder(&worktrees)).await;
        let worktrees = match writable {
            Ok(()) => good("worktrees", self.settings().worktrees.display().to_string()),
            Err(error) => {
                bad("worktrees", format!("cannot be created: {error}"), "check the directory's permissions")
            }
        };
        let projects = self.projects_checkup().await?;
        let agents = agents(&self.agents());
        let hooks = self.hooks_checkup().await?;
        let sandbox = sandbox(self.settings().sandbox.mode(), landlock());
        Ok((vec![git, store, locks, worktrees, projects, agents, hooks, sandbox], stale_locks))
    }

    /// Checks that every project's repository can be opened.
    async fn projects_checkup(&self) -> Result<HealthCheck, EngineError> {
        let projects = self.store().project_list().await?;
        let mut missing = Vec::new();
        for project in &projects {
            if let Err(error) = self.repository(project).await {
                missing.push(format!("{}: {}", project.name, error_chain(&error)));
            }
        }
        Ok(match (projects.len(), missing.is_empty()) {
            (0, _) => good("projects", "none yet".to_owned()),
            (count, true) => good("projects", format!("{count}, all repositories found")),
            (_, false) => HealthCheck {
                name: "projects",
                grade: CheckGrade::Doubtful,
                text: missing.join("; "),
                hint: Some("restore the repository at its path; its plans and backups need it".to_owned()),
            },
        })
    }

    /// Removes run directories of plans that are over, after a checkpoint of their work, and the refs that
    /// were kept for joining their subplans.
    pub async fn gc(&self, sweep: GcMode) -> Result<GcResult, EngineError> {
        let worktrees = self.settings().worktrees.clone();
        let plans = task::blocking(move || plan_directories(worktrees))
            .await
            .map_err(|source| EngineError::File { attempt: "list the worktrees".to_owned(), source })?;
        let mut collected = GcResult::default();
        if sweep == GcMode::Remove {
            // Old idempotency keys expire by the clock alone, so there is nothing to prove.
            let forgotten = self.store().answers_expire().await?;
            tracing::debug!(forgotten, "deleted expired idempotency keys");
        }
        let checks = self.settings().worktrees.join(CHECKS);
        let swept = task::blocking(move || abandoned(&checks, sweep)).await;
        collected.removed = swept.map_err(|source| EngineError::File {
            attempt: "remove the directories of agent checks".to_owned(),
            source,
        })?;
        for id in plans {
            self.collect_plan(&id, sweep, &mut collected).await?;
        }
        self.collect_records(sweep, &mut collected).await?;
        self.collect_joins(sweep, &mut collected).await?;
        self.collect_refs(sweep, &mut collected).await?;
        let (backups, _) = self.backup_prune(None, sweep).await?;
        let proof = "every commit in it is reachable from a ref that does not belong to a plan, and no \
                     open decision names it";
        let gone = |backup: ProjectBackup| GcRemoved { what: backup.name, proof: proof.to_owned() };
        collected.removed.extend(backups.into_iter().map(gone));
        self.collect_logs(sweep, &mut collected).await?;
        self.collect_locks(sweep, &mut collected).await?;
        Ok(collected)
    }

    /// Releases expired locks of plans that are over. No command acts on such a plan any more, so nothing
    /// else would release them.
    async fn collect_locks(&self, sweep: GcMode, collected: &mut GcResult) -> Result<(), EngineError> {
        let locks = self.locks().await?;
        for lock in locks.into_iter().filter(|lock| lock.stale && lock.scope == LockScope::Plan) {
            let Ok(id) = lock.key.parse::<PlanId>() else { continue };
            let state = match self.store().plan_fetch(&id).await? {
                Some(plan) if !plan.stage.is_terminal() => continue,
                Some(plan) => format!("its plan is {}", plan.stage.state()),
                None => "its plan was never created".to_owned(),
            };
            if sweep == GcMode::Remove {
                match self.lock_plan(&id, "gc").await {
                    Ok(hold) => hold.release().await,
                    // Another process took the lock meanwhile and will release it.
                    Err(EngineError::LockHeld { .. }) => continue,
                    Err(error) => return Err(error),
                }
            }
            let (what, pid, host) =
                (format!("lock {} of {id}", lock.id), lock.holder.process.pid, lock.holder.process.host);
            let proof = format!("{state}; the lock of process {pid} on {host} has expired");
            collected.removed.push(GcRemoved { what, proof });
        }
        Ok(())
    }

    async fn collect_plan(
        &self,
        id: &PlanId,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        let keep = |what: String, reason: String| GcKept { what, reason };
        let Some(plan) = self.store().plan_fetch(id).await? else {
            collected.kept.push(keep(id.to_string(), "its plan is not in this store".to_owned()));
            return Ok(());
        };
        let state = plan.stage.state();
        if !matches!(state, State::Applied | State::Cancelled) {
            collected.kept.push(keep(id.to_string(), format!("the plan is {}/{state}", plan.stage.phase())));
            return Ok(());
        }
        let swept = match self.hold_to_sweep(id, sweep).await? {
            Held::Here(hold) => {
                let swept = self.sweep(&plan, &hold).await;
                hold.release().await;
                swept
            }
            Held::NotNeeded => self.foresee(&plan).await,
            Held::Elsewhere { reason } => {
                collected.kept.push(keep(id.to_string(), reason));
                return Ok(());
            }
        };
        match swept {
            Ok(swept) => {
                collected.removed.extend(swept.removed);
                collected.kept.extend(swept.kept);
            }
            Err(error) => collected.kept.push(keep(id.to_string(), error_chain(&error))),
        }
        Ok(())
    }

    /// Locks a plan whose files are collected. Listing takes no lock, because taking one writes to the store;
    /// it reads instead whether another process holds the plan.
    pub(crate) async fn hold_to_sweep(&self, plan: &PlanId, sweep: GcMode) -> Result<Held, EngineError> {
        let is_held = |lock: &Lock| lock.scope == LockScope::Plan && lock.key == plan.as_str() && !lock.stale;
        let lock = match sweep {
            GcMode::Tell => match self.store().lock_list().await?.into_iter().find(is_held) {
                Some(lock) => lock,
                None => return Ok(Held::NotNeeded),
            },
            GcMode::Remove => match self.lock_plan(plan, "gc").await {
                Ok(hold) => return Ok(Held::Here(hold)),
                Err(EngineError::LockHeld { lock }) => *lock,
                Err(error) => return Err(error),
            },
        };
        let reason = format!("process {} on {} holds it", lock.holder.process.pid, lock.holder.process.host);
        Ok(Held::Elsewhere { reason })
    }

    /// Returns the run directories that a collection would remove.
    async fn foresee(&self, plan: &Plan) -> Result<GcResult, EngineError> {
        let (worktrees, id, state) = (self.settings().worktrees.clone(), plan.id.clone(), plan.stage.state());
        task::blocking(move || {
            let proof = format!("the plan is {state}; its work will be checkpointed first");
            let found = listed(&worktrees, &id)?.into_iter();
            let removed = found
                .map(|leftover| GcRemoved { what: format!("{id}/{}", leftover.run), proof: proof.clone() });
            Ok(GcResult { removed: removed.collect(), ..GcResult::default() })
        })
        .await
    }

    async fn sweep(&self, plan: &Plan, hold: &PlanLockGuard) -> Result<GcResult, EngineError> {
        let fence = hold.lease().fence();
        let project = self.project(plan.spec.project.as_str()).await?;
        let repository = self.repository(&project).await?.on_behalf(plan.id.as_str(), fence);
        let base = crate::rule::CommitRange::of(plan)?.from;
        let (worktrees, id, state) = (self.settings().worktrees.clone(), plan.id.clone(), plan.stage.state());
        let (swept, alerts) = task::blocking(move || {
            let (mut swept, mut alerts) = (GcResult::default(), Vec::new());
            for leftover in listed(&worktrees, &id)? {
                let what = format!("{id}/{}", leftover.run);
                let proof = |kept: &str| format!("the plan is {state}; {kept}");
                let removed = remove_leftover(&repository, &id, &base, fence, &leftover, Rest::Checkpoint);
                if let Ok(removed) = &removed {
                    alerts.extend(removed.link_alerts(&id, &leftover));
                }
                match removed.map(|removed| removed.work) {
                    Ok(KeptWork::Nothing) => {
                        let proof = proof("it contained no changes");
                        swept.removed.push(GcRemoved { what, proof });
                    }
                    Ok(KeptWork::Snapshot(reference)) => {
                        let proof = proof(&format!("its work is kept as {reference}"));
                        swept.removed.push(GcRemoved { what, proof });
                    }
                    Ok(KeptWork::Directory { path, reason }) => {
                        let reason = format!(
                            "its work cannot be captured ({reason}); it was moved to {}",
                            path.display()
                        );
                        swept.kept.push(GcKept { what, reason });
                    }
                    Err(error) => swept.kept.push(GcKept { what, reason: error_chain(&error) }),
                }
            }
            remove_empty(&worktrees.join(id.as_str()))?;
            Ok::<_, EngineError>((swept, alerts))
        })
        .await?;
        if !alerts.is_empty() {
            self.emit(hold, alerts).await?;
        }
        Ok(swept)
    }
}

fn listed(worktrees: &Path, plan: &PlanId) -> Result<Vec<OldRunDir>, EngineError> {
    leftovers(worktrees, plan)
        .map_err(|source| EngineError::File { attempt: format!("list the runs of {plan}"), source })
}

/// Removes the directories of interrupted agent checks; they contain no work.
fn abandoned(checks: &Path, sweep: GcMode) -> std::io::Result<Vec<GcRemoved>> {
    let entries = match std::fs::read_dir(checks) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut removed = Vec::new();
    for entry in entries {
        let path = entry?.path();
        // A running check holds its directory.
        let held = match sweep {
            GcMode::Tell => is_occupied(&path)?,
            GcMode::Remove => match lock_run_dir(&path) {
                Ok(_alive) => std::fs::remove_dir_all(&path).map(|()| false)?,
                Err(_) => true,
            },
        };
        if held {
            continue;
        }
        let proof = "an interrupted check of an agent; it contains no work".to_owned();
        removed.push(GcRemoved { what: path.display().to_string(), proof });
    }
    Ok(removed)
}

fn plan_directories(worktrees: PathBuf) -> std::io::Result<Vec<PlanId>> {
    let entries = match std::fs::read_dir(&worktrees) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut plans = Vec::new();
    for entry in entries {
        // A directory whose name is not a plan id is not ours.
        if let Ok(plan) = entry?.file_name().to_string_lossy().parse() {
            plans.push(plan);
        }
    }
    Ok(plans)
}

/// Reports the agents, and warns if none can run.
fn agents(entries: &[ConfiguredAgent]) -> HealthCheck {
    let of = |source| entries.iter().filter(move |entry| entry.source == source);
    let (configured, known) = (of(AgentSource::Configured).count(), of(AgentSource::BuiltIn));
    let found: Vec<&str> = known.filter(|entry| entry.found).map(|entry| entry.name.as_str()).collect();
    let text = match found.as_slice() {
        [] => format!("{configured} configured, no built-in agent installed"),
        found => format!("{configured} configured, built-in agents installed: {}", found.join(", ")),
    };
    let none = configured == 0 && found.is_empty();
    HealthCheck {
        name: "agents",
        grade: if none { CheckGrade::Doubtful } else { CheckGrade::Good },
        text,
        hint: none.then(|| {
            "install one that `drydock agent list` lists, or add [agents.NAME]; see docs/agents.md".to_owned()
        }),
    }
}

/// Reports the sandbox of the agents, and warns if it could be stricter.
fn sandbox(mode: SandboxMode, kernel: &Landlock) -> HealthCheck {
    let doubtful = |text: String, hint: &str| HealthCheck {
        name: "sandbox",
        grade: CheckGrade::Doubtful,
        text,
        hint: Some(hint.to_owned()),
    };
    let free = "agents can write wherever you can; run drydock as a user with few permissions";
    match (mode, kernel) {
        (SandboxMode::Required, Landlock::Absent { reason } | Landlock::Broken { reason }) => {
            bad("sandbox", format!("it is required, and {reason}"), "no agent can run; use another kernel")
        }
        (SandboxMode::Required, Landlock::Partial { abi, lacks }) => bad(
            "sandbox",
            format!("it is required in full, and Landlock {abi} {lacks}"),
            "no agent can run; use Linux 6.2 or newer, with seccomp",
        ),
        (SandboxMode::Off, Landlock::Absent { reason }) => doubtful(format!("off, and {reason}"), free),
        (SandboxMode::Off, _) => doubtful(
            "off in the configuration, though this kernel has Landlock".to_owned(),
            "remove `mode = \"off\"` from [sandbox]",
        ),
        (SandboxMode::BestEffort, Landlock::Absent { reason }) => doubtful(reason.clone(), free),
        (SandboxMode::BestEffort, Landlock::Broken { reason }) => {
            bad("sandbox", reason.clone(), "no agent can run")
        }
        (SandboxMode::BestEffort, Landlock::Partial { abi, lacks }) => {
            doubtful(format!("Landlock {abi}, which {lacks}"), "use Linux 6.2 or newer, with seccomp")
        }
        (SandboxMode::BestEffort, Landlock::Full { abi }) => good("sandbox", format!("Landlock {abi}")),
        (SandboxMode::Required, Landlock::Full { abi }) => {
            good("sandbox", format!("Landlock {abi}, required"))
        }
    }
}

fn good(name: &'static str, text: String) -> HealthCheck {
    HealthCheck { name, grade: CheckGrade::Good, text, hint: None }
}

fn bad(name: &'static str, text: String, hint: &str) -> HealthCheck {
    HealthCheck { name, grade: CheckGrade::Bad, text, hint: Some(hint.to_owned()) }
}
