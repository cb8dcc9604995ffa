//! A fan-out: the pieces of one plan, how their results are merged, and how far each of them got.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{ErrorClass, Failure, Inheritance, Name, PlanId, RunId, Timestamp};

/// The pieces of a plan, in the order in which they join.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fanout {
    /// How results are merged into the plan's branch.
    pub merge: MergeStrategy,
    /// What the failure of one piece means for the others.
    pub on_failure: OnFailure,
    /// How many pieces may be at work at the same time.
    pub max_parallel: u32,
    /// The pieces; one never comes before those it waits for.
    pub pieces: Vec<Piece>,
    /// The commit that holds everything that has joined so far.
    #[serde(default)]
    pub head: Option<String>,
}

/// One piece of a plan, done by a plan of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Piece {
    /// Its name among its siblings.
    pub name: Name,
    /// What is to be done.
    pub task: PieceTask,
    /// On another project than its parent's.
    #[serde(default)]
    pub project: Option<Name>,
    /// With another agent than its parent's.
    #[serde(default)]
    pub agent: Option<String>,
    /// Which siblings come before it.
    #[serde(default)]
    pub after: Vec<Name>,
    /// What it says it will touch; siblings that overlap do not run at the same time.
    #[serde(default)]
    pub paths: Vec<String>,
    /// How often it may be tried when it fails in a way that can pass.
    pub max_attempts: u32,
    /// How many seconds its agent may take.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// The sibling whose conflict it resolves, and the commit with the conflict in it.
    #[serde(default)]
    pub mends: Option<Mends>,
    /// The plan that does it, once it is born.
    #[serde(default)]
    pub child: Option<PlanId>,
    /// What became of it.
    pub fate: Fate,
    /// Which side a person takes where it conflicts.
    #[serde(default)]
    pub favour: Option<Side>,
    /// Every failure, the oldest first.
    #[serde(default)]
    pub failures: Vec<FailureRecord>,
    /// How many failures there were when a person let it be tried anew.
    #[serde(default)]
    pub forgiven: usize,
}

/// The conflict that a piece resolves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mends {
    /// Whose.
    pub piece: Name,
    /// What had joined by then.
    pub onto: String,
    /// A commit with the conflict's marks in its files.
    pub marked: String,
    /// The conflicts without marks, each with its paths: one of these must be touched.
    #[serde(default)]
    pub unmarked: Vec<Vec<String>>,
}

/// What a piece is to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PieceTask {
    /// A task in words.
    Words(String),
    /// An action with arguments.
    Action {
        /// Its name.
        name: String,
        /// Its arguments.
        arguments: BTreeMap<String, String>,
    },
}

/// What became of a piece, as its parent has recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// Not settled: in line, at work, or waiting for a person.
    Open,
    /// Its work is complete in another project, and lands there when its parent does.
    Ready,
    /// Its result is part of the parent's branch, or landed in its own project.
    Joined {
        /// The commit that holds it.
        commit: String,
    },
    /// Its result conflicts, and this sibling resolves it.
    Handed {
        /// The sibling's name.
        to: Name,
    },
    /// It failed for good.
    Failed,
    /// It was ended before it was done.
    Cancelled {
        /// Why.
        reason: String,
    },
    /// The parent goes on without it.
    Dropped,
}

impl Fate {
    /// Returns the name used in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Fate::Open => "open",
            Fate::Ready => "ready",
            Fate::Joined { .. } => "joined",
            Fate::Handed { .. } => "handed",
            Fate::Failed => "failed",
            Fate::Cancelled { .. } => "cancelled",
            Fate::Dropped => "dropped",
        }
    }
}

/// One failure of a piece.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// The run that failed, where one had started.
    pub run: Option<RunId>,
    /// What failed.
    pub failure: Failure,
    /// When it was noticed.
    pub at: Timestamp,
}

/// How the result of a piece is merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MergeStrategy {
    /// By three ways: the commit the piece started from, what has joined, and its result. A conflict is asked about.
    #[default]
    ThreeWay,
    /// Its commits one by one on top of what has joined. A conflict is asked about.
    Sequential,
    /// By three ways, and a conflict fails the piece.
    FailOnConflict,
    /// By three ways, and where both changed the same place what has joined stays.
    PreferParent,
    /// By three ways, and where both changed the same place the piece's result is taken.
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

/// What the failure of one piece means for the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OnFailure {
    /// They go on, except those that wait for it.
    #[default]
    Continue,
    /// They are stopped.
    FailFast,
}

/// One side of a conflict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// What has joined so far.
    Parent,
    /// The piece's result.
    Child,
}

/// Where a subplan stands among its siblings; every plan with a parent has one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Its name among its siblings.
    pub name: Name,
    /// Whether its parent has called it to work.
    pub turn: Turn,
    /// Where its result goes.
    pub lands: Lands,
    /// How many plans are above it.
    pub depth: u32,
    /// How many seconds its agent may take.
    #[serde(default)]
    pub timeout_s: Option<u64>,
    /// The rules that it took from its parent.
    #[serde(default)]
    pub rules: Inheritance,
}

/// Where the result of a subplan goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lands {
    /// On its parent's branch.
    WithParent,
    /// On the target of its own project, when its parent lands.
    ByItself,
}

/// Whether a subplan may work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Turn {
    /// Not before its parent calls it.
    InLine,
    /// Now; it takes one of its parent's places until it rests.
    Called,
}

impl Fanout {
    /// How many pieces are at work at the same time unless the strategy says otherwise.
    pub const PARALLEL: u32 = 4;

    /// Says whether any piece is not settled.
    pub fn is_open(&self) -> bool {
        self.pieces.iter().any(|piece| piece.fate == Fate::Open)
    }

    /// Says whether any piece waits to land in another project.
    pub fn is_ready(&self) -> bool {
        self.pieces.iter().any(|piece| piece.fate == Fate::Ready)
    }

    /// Says whether anything was done in other projects, be it landed or about to.
    pub fn is_done_elsewhere(&self) -> bool {
        let done = |piece: &&Piece| matches!(piece.fate, Fate::Ready | Fate::Joined { .. });
        self.pieces.iter().filter(done).any(|piece| piece.project.is_some())
    }

    /// Returns the pieces that are to have a plan and have none.
    pub fn unborn(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| piece.fate == Fate::Open && piece.child.is_none())
    }

    /// Returns where a piece of this name is.
    pub fn position(&self, name: &Name) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.name == *name)
    }

    /// Returns the pieces that came to nothing.
    pub fn lost(&self) -> impl Iterator<Item = &Piece> {
        self.pieces.iter().filter(|piece| matches!(piece.fate, Fate::Failed | Fate::Cancelled { .. }))
    }

    /// Returns everything that waits for this piece, directly or not.
    pub fn dependents(&self, piece: usize) -> Vec<usize> {
        let mut found = vec![piece];
        // Nothing stands before what it waits for, so one pass finds them all.
        for (index, one) in self.pieces.iter().enumerate() {
            let waits = one.after.iter().any(|name| found.iter().any(|at| self.pieces[*at].name == *name));
            if waits && !found.contains(&index) {
                found.push(index);
            }
        }
        found.retain(|index| *index != piece);
        found
    }

    /// Returns everything that this piece waits for, directly or not, in the order in which it joins.
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

impl Piece {
    /// Says whether nothing more is expected of it before its parent lands, or at all.
    pub fn is_settled(&self) -> bool {
        match self.fate {
            Fate::Open | Fate::Ready => false,
            Fate::Joined { .. }
            | Fate::Handed { .. }
            | Fate::Failed
            | Fate::Cancelled { .. }
            | Fate::Dropped => true,
        }
    }

    /// Says whether its conflict is asked about though the strategy lets it fail: a person has seen it fail by one, and let it
    /// be tried again.
    pub fn asks_about_conflict(&self) -> bool {
        let seen = &self.failures[..self.forgiven.min(self.failures.len())];
        seen.iter().any(|record| record.failure.class == ErrorClass::SubplanConflict)
    }

    /// Returns how often it has failed since a person last let it be tried.
    pub fn attempts(&self) -> usize {
        self.failures.len().saturating_sub(self.forgiven)
    }
}
