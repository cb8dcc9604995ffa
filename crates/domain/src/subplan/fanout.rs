//! A fan-out: the subplans of one plan, how their results are merged, and the progress of each.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ErrorClass, Failure, InheritedInvariants, Name, PlanId, RunId, Timestamp};

/// The subplans of a plan, in the order in which they join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fanout {
    /// How results are merged into the plan's branch.
    pub merge: MergeStrategy,
    /// The effect of one subplan's failure on the others.
    pub on_failure: OnFailure,
    /// Maximum number of subplans that run at the same time.
    pub max_parallel: u32,
    /// The subplans; each comes after the ones it waits for.
    pub pieces: Vec<Subplan>,
    /// The commit that contains all results joined so far.
    #[serde(default)]
    pub head: Option<String>,
}

/// One subplan, as its parent records it. A child plan does the work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subplan {
    /// Unique name among its siblings.
    pub name: Name,
    /// The task.
    pub task: SubplanTask,
    /// The project, if not the parent's.
    #[serde(default)]
    pub project: Option<Name>,
    /// The agent, if not the parent's.
    #[serde(default)]
    pub agent: Option<String>,
    /// The siblings that must be done first.
    #[serde(default)]
    pub after: Vec<Name>,
    /// The paths that it declares to change. Siblings with overlapping paths do not run at the same time.
    #[serde(default)]
    pub paths: Vec<String>,
    /// Maximum number of attempts after failures that may be temporary.
    pub max_attempts: u32,
    /// Time limit of its agent in seconds.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// The conflict that this subplan resolves, if it was added for that.
    #[serde(default)]
    pub mends: Option<ResolvesConflict>,
    /// The child plan, once it is spawned.
    #[serde(default)]
    pub child: Option<PlanId>,
    /// The status of the subplan.
    pub fate: SubplanStatus,
    /// The side that a person chose for its conflicts.
    #[serde(default)]
    pub favour: Option<ConflictSide>,
    /// All failures, oldest first.
    #[serde(default)]
    pub failures: Vec<FailureRecord>,
    /// Number of failures when a person last allowed a retry.
    #[serde(default)]
    pub forgiven: usize,
}

/// The conflict that a subplan resolves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResolvesConflict {
    /// The subplan whose result conflicts.
    pub piece: Name,
    /// The commit with the results joined when the conflict was found.
    pub onto: String,
    /// A commit with conflict markers in its files.
    pub marked: String,
    /// The conflicts without markers, each as a list of paths. One path of each must be changed.
    #[serde(default)]
    pub unmarked: Vec<Vec<String>>,
}

/// The task of a subplan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubplanTask {
    /// A task as text.
    Words(String),
    /// An action with arguments.
    Action {
        /// The action's name.
        name: String,
        /// The action's arguments.
        arguments: BTreeMap<String, String>,
    },
}

/// The status of a subplan, as its parent has recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubplanStatus {
    /// Not ended: waiting for its turn, running, or waiting for a person.
    Open,
    /// Complete in another project; it lands there when its parent lands.
    Ready,
    /// Its result is part of the parent's branch, or landed in its own project.
    Joined {
        /// The commit that contains the result.
        commit: String,
    },
    /// Its result conflicts, and this sibling resolves the conflict.
    Handed {
        /// The sibling's name.
        to: Name,
    },
    /// Failed without further retries.
    Failed,
    /// Cancelled before it was complete.
    Cancelled {
        /// Reason for cancelling.
        reason: String,
    },
    /// The parent continues without it.
    Dropped,
}

impl SubplanStatus {
    /// Returns the name used in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            SubplanStatus::Open => "open",
            SubplanStatus::Ready => "ready",
            SubplanStatus::Joined { .. } => "joined",
            SubplanStatus::Handed { .. } => "handed",
            SubplanStatus::Failed => "failed",
            SubplanStatus::Cancelled { .. } => "cancelled",
            SubplanStatus::Dropped => "dropped",
        }
    }
}

/// One failure of a subplan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The failed run, if one had started.
    pub run: Option<RunId>,
    /// The failure.
    pub failure: Failure,
    /// When the parent recorded the failure.
    pub at: Timestamp,
}

/// How the result of a subplan is merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    /// Three-way merge with the results joined so far, based on the subplan's start. Asks about a conflict.
    #[default]
    ThreeWay,
    /// Replays the subplan's commits one by one on the results joined so far. Asks about a conflict.
    Sequential,
    /// Three-way merge; a conflict fails the subplan.
    FailOnConflict,
    /// Three-way merge; in a conflict the results joined so far win.
    PreferParent,
    /// Three-way merge; in a conflict the subplan's result wins.
    PreferChild,
}

impl MergeStrategy {
    /// All strategies.
    pub const ALL: [MergeStrategy; 5] = [
        MergeStrategy::ThreeWay,
        MergeStrategy::Sequential,
        MergeStrategy::FailOnConflict,
        MergeStrategy::PreferParent,
        MergeStrategy::PreferChild,
    ];

    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            MergeStrategy::ThreeWay => "three_way",
            MergeStrategy::Sequential => "sequential",
            MergeStrategy::FailOnConflict => "fail_on_conflict",
            MergeStrategy::PreferParent => "prefer_parent",
            MergeStrategy::PreferChild => "prefer_child",
        }
    }
}

/// The effect of one subplan's failure on the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// The others continue, except those that wait for it.
    #[default]
    Continue,
    /// The others are stopped.
    FailFast,
}

/// One side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictSide {
    /// The results joined so far.
    Parent,
    /// The subplan's result.
    Child,
}

/// The relation of a child plan to its parent and siblings. Every plan with a parent has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParentLink {
    /// Unique name among its siblings.
    pub name: Name,
    /// Whether its parent has given it its turn.
    pub turn: Turn,
    /// Where its result goes.
    pub lands: LandsOn,
    /// Number of ancestors.
    pub depth: u32,
    /// Time limit of its agent in seconds.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// The invariants inherited from the parent.
    #[serde(default)]
    pub rules: InheritedInvariants,
}

/// Where the result of a subplan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LandsOn {
    /// Into its parent's branch.
    WithParent,
    /// Onto the target branch of its own project, when its parent lands.
    ByItself,
}

/// Whether a subplan may run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Not before its parent gives it its turn.
    InLine,
    /// Now; it occupies one of its parent's parallel slots until it is idle.
    Called,
}

impl Fanout {
    /// Default for the number of subplans that run at the same time.
    pub const PARALLEL: u32 = 4;

    /// Returns true if any subplan has not ended.
    pub fn is_open(&self) -> bool {
        self.pieces.iter().any(|piece| piece.fate == SubplanStatus::Open)
    }

    /// Returns true if any subplan waits to land in another project.
    pub fn is_ready(&self) -> bool {
        self.pieces.iter().any(|piece| piece.fate == SubplanStatus::Ready)
    }

    /// Returns true if any subplan in another project has landed or is ready to land.
    pub fn is_done_elsewhere(&self) -> bool {
        let done =
            |piece: &&Subplan| matches!(piece.fate, SubplanStatus::Ready | SubplanStatus::Joined { .. });
        self.pieces.iter().filter(done).any(|piece| piece.project.is_some())
    }

    /// Returns the open subplans without a child plan.
    pub fn unspawned(&self) -> impl Iterator<Item = &Subplan> {
        self.pieces.iter().filter(|piece| piece.fate == SubplanStatus::Open && piece.child.is_none())
    }

    /// Returns the index of the subplan with this name.
    pub fn position(&self, name: &Name) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.name == *name)
    }

    /// Returns the subplans that failed or were cancelled.
    pub fn failed_subplans(&self) -> impl Iterator<Item = &Subplan> {
        self.pieces
            .iter()
            .filter(|piece| matches!(piece.fate, SubplanStatus::Failed | SubplanStatus::Cancelled { .. }))
    }

    /// Returns the indices of all subplans that wait for this one, directly or indirectly.
    pub fn dependents(&self, piece: usize) -> Vec<usize> {
        let mut found = vec![piece];
        // Every subplan comes after the ones it waits for, so one pass finds all dependents.
        for (index, one) in self.pieces.iter().enumerate() {
            let waits = one.after.iter().any(|name| found.iter().any(|at| self.pieces[*at].name == *name));
            if waits && !found.contains(&index) {
                found.push(index);
            }
        }
        found.retain(|index| *index != piece);
        found
    }

    /// Returns the indices of all subplans that this one waits for, directly or indirectly, in join order.
    pub fn predecessors(&self, piece: usize) -> Vec<usize> {
        let mut wanted = vec![piece];
        for index in (0..piece).rev() {
            let name = &self.pieces[index].name;
            if wanted.iter().any(|at| self.pieces[*at].after.contains(name)) {
                wanted.push(index);
            }
        }
        wanted.retain(|index| *index != piece);
        wanted.sort_unstable();
        wanted
    }
}

impl Subplan {
    /// Returns true if the subplan has ended and does not wait to land.
    pub fn is_settled(&self) -> bool {
        match self.fate {
            SubplanStatus::Open | SubplanStatus::Ready => false,
            SubplanStatus::Joined { .. }
            | SubplanStatus::Handed { .. }
            | SubplanStatus::Failed
            | SubplanStatus::Cancelled { .. }
            | SubplanStatus::Dropped => true,
        }
    }

    /// Returns true if a conflict must be asked about even under `fail_on_conflict`, because a person already
    /// retried this subplan after a conflict.
    pub fn asks_about_conflict(&self) -> bool {
        let seen = &self.failures[..self.forgiven.min(self.failures.len())];
        seen.iter().any(|record| record.failure.class == ErrorClass::SubplanConflict)
    }

    /// Returns the number of failures since a person last allowed a retry.
    pub fn attempts(&self) -> usize {
        self.failures.len().saturating_sub(self.forgiven)
    }
}
