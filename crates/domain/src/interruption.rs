//! Interrupted runs: which checkpoint the next run starts from, and how many interruptions in a row left no new one.

use serde::{Deserialize, Serialize};

use crate::{RunId, TakeOverCause};

/// After how many interruptions in a row without a new checkpoint a person is asked.
pub const INTERRUPTIONS_MAX: u32 = 3;

/// The checkpoint of an interrupted run that the next run starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartPoint {
    /// Its commit.
    pub commit: String,
    /// Its number among the checkpoints of the plan.
    pub checkpoint: u64,
}

/// The latest interruption of the current phase. Stays while the next run works and is removed when a run ends in another way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interruption {
    /// The run that was interrupted.
    pub run: RunId,
    /// Why it was.
    pub cause: TakeOverCause,
    /// The checkpoint that the next run starts from; none if no interrupted run of this phase left one.
    pub restart: Option<RestartPoint>,
    /// How many interruptions in a row left no new checkpoint.
    pub without_checkpoint: u32,
}

impl Interruption {
    /// Returns the interruption of a run, after an earlier one of the same phase.
    pub(crate) fn after(
        earlier: Option<&Interruption>,
        run: RunId,
        cause: TakeOverCause,
        restart: Option<RestartPoint>,
    ) -> Self {
        let before = earlier.map_or(0, |earlier| earlier.without_checkpoint);
        let without_checkpoint = match (&restart, cause) {
            (Some(_), _) | (None, TakeOverCause::Stopped) => 0,
            // A person stopped it; that says nothing about the run.
            (None, TakeOverCause::StoppedAbove) => before,
            (None, TakeOverCause::OwnerGone | TakeOverCause::Interrupted) => before + 1,
        };
        // Without a new checkpoint the next run starts where the interrupted one did.
        let restart = restart.or_else(|| earlier.and_then(|earlier| earlier.restart.clone()));
        Self { run, cause, restart, without_checkpoint }
    }

    /// Describes the interruption for people, before or after the next run began.
    pub fn describe(&self, begun: bool) -> String {
        match (&self.restart, begun) {
            (Some(restart), true) => format!("interrupted, continued from checkpoint {}", restart.checkpoint),
            (Some(restart), false) => {
                format!("interrupted, continues from checkpoint {}", restart.checkpoint)
            }
            (None, true) => "interrupted without a checkpoint, started again".to_owned(),
            (None, false) => "interrupted without a checkpoint, starts again".to_owned(),
        }
    }

    /// Returns the feedback for the next agent.
    pub fn feedback(&self) -> String {
        let Some(restart) = &self.restart else {
            return "The previous run of this task was interrupted before it changed a file. Nothing is wrong with the task."
                .to_owned();
        };
        format!(
            "The previous run of this task was interrupted. Its files are in your worktree (checkpoint {}): continue that work \
             and do only what is missing. Do not start over.",
            restart.checkpoint
        )
    }
}
