//! The task of an agent, and the directories in which it works.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The task of one run of an agent, passed as JSON on its standard input and in `DRYDOCK_TASK`.
#[derive(Debug, Clone, Serialize)]
pub struct AgentTask {
    /// Id of the plan.
    pub plan: String,
    /// Id of the run.
    pub run: String,
    /// `strategize`, `execute` or `apply`.
    pub phase: String,
    /// The agent's role, such as `writer` or `reviewer`.
    pub role: String,
    /// The task text with all arguments filled in.
    pub task: String,
    /// What must be true at the end, if the action defines it.
    pub definition_of_done: Option<String>,
    /// The plan's arguments by name.
    pub arguments: BTreeMap<String, String>,
    /// The invariants in force, as text or expressions.
    pub invariants: Vec<String>,
    /// The choices already made for this plan.
    pub choices: Vec<serde_json::Value>,
    /// Feedback from people and reviewers on earlier attempts.
    pub feedback: Vec<String>,
    /// The directory in which the agent works.
    pub worktree: String,
    /// The commit from which the worktree started.
    pub base: String,
    /// The session of an earlier run that the agent may resume, if it can; not sent to the agent.
    #[serde(skip)]
    pub session: Option<EarlierSession>,
    /// A person's answers about tools; not sent to the agent.
    #[serde(skip)]
    pub permitted: Permits,
    /// The proposal that a reviewer checks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
}

/// People's answers about tools, shared by all starts of agents in one run. An answer for one use is consumed
/// by the first use.
#[derive(Debug, Clone, Default)]
pub struct Permits(Arc<Mutex<Vec<Permitted>>>);

impl Permits {
    /// Returns the latest answer to exactly this request, and consumes it if it is for one use.
    pub(crate) fn answer(&self, tool: &str, matches: &str) -> Option<bool> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().rposition(|one| one.tool == tool && one.matches == matches)?;
        let Permitted { allowed, once, .. } = known[at];
        if once {
            known.remove(at);
        }
        Some(allowed)
    }
}

impl FromIterator<Permitted> for Permits {
    fn from_iter<I: IntoIterator<Item = Permitted>>(answers: I) -> Self {
        Self(Arc::new(Mutex::new(answers.into_iter().collect())))
    }
}

/// A person's answer about a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Permitted {
    /// Kind of the tool.
    pub tool: String,
    /// The complete request.
    pub matches: String,
    /// Whether the use is allowed.
    pub allowed: bool,
    /// Whether the answer is for one use only.
    pub once: bool,
}

/// A session of an earlier run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierSession {
    /// The agent's id of the session.
    pub id: String,
    /// Usage of the session reported in the earlier run.
    pub told: SessionUsage,
}

/// Usage of a session, as far as the agent reports it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUsage {
    /// Tokens of the model.
    pub tokens: u64,
    /// Cost, in millionths of a US dollar.
    pub cost_micros: u64,
}

/// A result that reviewers check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// Its number within the run; a verdict refers to it.
    pub version: usize,
    /// Its commit, which is checked out in the reviewer's worktree.
    pub commit: String,
}

/// The directories of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirs {
    /// Working directory of the agent; must exist.
    pub worktree: PathBuf,
    /// The agent's temporary directory, also its `HOME` and `TMPDIR`; created if missing.
    pub temp: PathBuf,
    /// Further paths that it must be able to read if reads are restricted, such as the repository's `.git`.
    pub reads: Vec<PathBuf>,
}
