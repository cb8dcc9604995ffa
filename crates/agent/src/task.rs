//! What an agent is told, and where it may work.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

/// The task of one run of an agent, given as JSON on its standard input and in `DRYDOCK_TASK`.
#[derive(Debug, Clone, Serialize)]
pub struct Task {
    /// The plan's id.
    pub plan: String,
    /// The run's id.
    pub run: String,
    /// `strategize`, `execute` or `apply`.
    pub phase: String,
    /// What the agent is asked to be, such as `writer` or `reviewer`.
    pub role: String,
    /// The task in words, arguments already filled in.
    pub task: String,
    /// What must be true at the end, where the action says so.
    pub definition_of_done: Option<String>,
    /// The plan's arguments by name.
    pub arguments: BTreeMap<String, String>,
    /// The rules in force, in words or as expressions.
    pub invariants: Vec<String>,
    /// The choices already taken for this plan.
    pub choices: Vec<serde_json::Value>,
    /// What people and reviewers said about earlier attempts.
    pub feedback: Vec<String>,
    /// The directory the agent works in.
    pub worktree: String,
    /// The commit the worktree started from.
    pub base: String,
    /// The session of an earlier run that the agent may go on with, where it can; no part of what it is told.
    #[serde(skip)]
    pub session: Option<EarlierSession>,
    /// A person's answers about its tools; not sent to the agent.
    #[serde(skip)]
    pub permitted: Permits,
    /// What a reviewer shall judge.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposal: Option<Proposal>,
}

/// The answers of people about tools, for all starts of agents in one run. The first use takes an answer for one use.
#[derive(Debug, Clone, Default)]
pub struct Permits(Arc<Mutex<Vec<Permitted>>>);

impl Permits {
    /// Takes the latest answer to this very request: yes, no, or none.
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
    /// The kind of tool.
    pub tool: String,
    /// The complete request.
    pub matches: String,
    /// Yes or no.
    pub allowed: bool,
    /// Whether it is for one use alone.
    pub once: bool,
}

/// A session that an agent had before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EarlierSession {
    /// The agent's own name for it.
    pub id: String,
    /// What it told of its use then.
    pub told: SessionUse,
}

/// What a session used, as far as its agent tells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUse {
    /// Tokens of its model.
    pub tokens: u64,
    /// Money, in millionths of a US dollar.
    pub cost_micros: u64,
}

/// A result that is proposed to reviewers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    /// Its number within the run; a verdict names it.
    pub version: usize,
    /// Its commit, which is checked out in the reviewer's worktree.
    pub commit: String,
}

/// The directories of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDirs {
    /// Where the agent starts and works; must exist.
    pub worktree: PathBuf,
    /// The agent's own scratch space, also its `HOME` and `TMPDIR`; made when missing.
    pub temp: PathBuf,
    /// What it must be able to read beside these where reading is restricted, such as the repository's `.git`.
    pub reads: Vec<PathBuf>,
}
