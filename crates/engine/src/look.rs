//! Read-only queries: the checkpoints of a plan and the configured agents. The check of an agent also starts
//! it.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_agent::{AgentSpec, AgentTask, Ending, RunDirs, StartError};
use drydock_domain::{Plan, Timestamp, error_chain};
use drydock_worktree::make_folder;

use crate::diff::snapshots;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::phase::lock_run_dir;
use crate::task;
use crate::upkeep::CheckGrade;

/// The directory for checks of agents, below the worktrees.
pub(crate) const CHECKS: &str = "checks";
/// The timeout for the check of an agent.
const CHECK_MAX: Duration = Duration::from_secs(30);

/// A checkpoint of a plan's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanCheckpoint {
    /// The ref of the checkpoint.
    pub reference: String,
    /// The commit id.
    pub commit: String,
    /// The run that wrote the work; `None` if an older version made the checkpoint.
    pub run: Option<String>,
    /// Why the checkpoint was made.
    pub label: String,
    /// When the checkpoint was made.
    pub created_at: Timestamp,
}

/// A configured agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfiguredAgent {
    /// The name of the agent.
    pub name: String,
    /// The protocol that the agent speaks.
    pub protocol: String,
    /// The program or script that is started.
    pub summary: String,
    /// The timeout of one run.
    pub timeout: Duration,
    /// Where the agent is defined.
    pub source: AgentSource,
    /// Whether the program is installed. Always true for a script, which is looked up when it runs.
    pub found: bool,
}

/// Where an agent is defined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentSource {
    /// In the configuration.
    Configured,
    /// In Drydock itself.
    BuiltIn,
}

/// The result of starting an agent as a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentCheckup {
    /// The grade of the result.
    pub grade: CheckGrade,
    /// The finding of the check.
    pub text: String,
    /// A hint for the user.
    pub hint: Option<String>,
    /// How long the check took.
    pub took: Duration,
}

impl Engine {
    /// Returns the checkpoints of a plan, oldest first.
    pub async fn checkpoints(&self, plan: &Plan) -> Result<Vec<PlanCheckpoint>, EngineError> {
        let project = self.project(plan.spec.project.as_str()).await?;
        let repository = self.repository(&project).await?;
        let id = plan.id.clone();
        task::blocking(move || {
            let checkpoint = |(reference, commit): (String, _)| {
                let head = repository.commit_head(&commit)?;
                let created_at = Timestamp::from_micros(head.at_seconds.saturating_mul(1_000_000));
                let commit = commit.to_string();
                Ok(PlanCheckpoint { reference, commit, run: head.run, label: head.subject, created_at })
            };
            snapshots(&repository, &id)?.into_iter().map(checkpoint).collect()
        })
        .await
    }

    /// Starts an agent in an empty directory, with a task that asks for no changes.
    pub async fn agent_check(&self, name: &str) -> Result<AgentCheckup, EngineError> {
        let spec = self.settings().agents.get(name).ok_or_else(|| EngineError::absent("agent", name))?;
        let spec = spec.clone().with_timeout(CHECK_MAX.min(spec.timeout()));
        let run = self.fresh_run();
        let root = self.settings().worktrees.join(CHECKS).join(run.as_str());
        let dirs = RunDirs { worktree: root.join("tree"), temp: root.join("temp"), reads: Vec::new() };
        let (tree, made, place) = (dirs.worktree.clone(), root.clone(), root.clone());
        let file = |attempt: &str, source| EngineError::File { attempt: attempt.to_owned(), source };
        let prepared = task::blocking(move || {
            let alive = lock_run_dir(&place)?;
            make_folder(&tree).map(|()| alive)
        });
        let _alive = prepared.await.map_err(|source| file("create a directory for the check", source))?;
        let job = AgentTask {
            plan: String::new(),
            run: run.to_string(),
            phase: "check".to_owned(),
            role: "check".to_owned(),
            task: "Change nothing; this only checks that you can start.".to_owned(),
            definition_of_done: None,
            arguments: BTreeMap::new(),
            invariants: Vec::new(),
            choices: Vec::new(),
            feedback: Vec::new(),
            worktree: dirs.worktree.to_string_lossy().into_owned(),
            base: String::new(),
            session: None,
            permitted: Default::default(),
            proposal: None,
        };
        let began = tokio::time::Instant::now();
        let ended = self.runner().greet(&spec, &job, &dirs, self.stopping().clone()).await;
        let took = began.elapsed();
        if let Err(error) = task::blocking(move || std::fs::remove_dir_all(made)).await {
            tracing::warn!(error = %error_chain(&error), "could not remove the directory of a check; `drydock gc` removes it");
        }
        let (grade, text, hint) = match ended {
            Ok((Ending::Finished, Some(name))) => (CheckGrade::Good, format!("it answered: {name}"), None),
            Ok((Ending::Finished, None)) => (CheckGrade::Good, "it started and finished".to_owned(), None),
            Ok((ending, _)) => {
                let text = format!("it started, then {}", crate::phase::wording(&ending));
                (CheckGrade::Doubtful, text, Some("run its command by hand to see the problem".to_owned()))
            }
            Err(error) => {
                let missing = matches!(error, StartError::ProgramMissing { .. });
                let install = self.settings().presets.get(name).filter(|_| missing).cloned();
                (CheckGrade::Bad, error_chain(&error), Some(install.unwrap_or_else(|| error.hint())))
            }
        };
        Ok(AgentCheckup { grade, text, hint, took })
    }

    /// Returns the configured agents.
    pub fn agents(&self) -> Vec<ConfiguredAgent> {
        let entry = |(name, spec): (&String, &AgentSpec)| ConfiguredAgent {
            name: name.clone(),
            protocol: spec.protocol().to_owned(),
            summary: spec.summary(),
            timeout: spec.timeout(),
            source: match self.settings().presets.contains_key(name) {
                true => AgentSource::BuiltIn,
                false => AgentSource::Configured,
            },
            found: spec.program().is_none() || spec.program_file().is_some(),
        };
        self.settings().agents.iter().map(entry).collect()
    }
}
