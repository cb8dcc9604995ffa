//! Interrupted runs: the checkpoint from which the next run starts, and the number of consecutive
//! interruptions without a new checkpoint.

use serde::{Deserialize, Serialize};

use crate::{Plan, RunId, State, TakeOverCause};

/// Number of consecutive interruptions without a new checkpoint after which a person is asked.
pub const INTERRUPTIONS_MAX: u32 = 3;

/// The checkpoint of an interrupted run that the next run starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestartPoint {
    /// The commit of the checkpoint.
    pub commit: String,
    /// Number of the checkpoint within the plan.
    pub checkpoint: u64,
}

/// The work of a run that ended early: of an interrupted run, as a checkpoint, or of a run that reached a rate
/// limit or its budget, as a commit. Without one the next run starts where this run did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remains<Point = RestartPoint> {
    /// Unfinished work of an agent, which the next agent continues.
    Work(Option<Point>),
    /// A finished result whose validation or review did not end. The next run validates and reviews it, and
    /// starts its agent only if the result is sent back.
    Result(Option<Point>),
}

impl<Point> Remains<Point> {
    /// Returns the checkpoint or commit with the work; `None` if the run changed nothing.
    pub fn restart(&self) -> Option<&Point> {
        match self {
            Remains::Work(restart) | Remains::Result(restart) => restart.as_ref(),
        }
    }

    /// Returns true if the work is a finished result.
    pub fn is_result(&self) -> bool {
        match self {
            Remains::Work(_) => false,
            Remains::Result(_) => true,
        }
    }
}

/// The latest interruption of the current phase. It is kept while the next run works, and removed when a run
/// ends in another way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct InterruptedRun {
    /// The run that was interrupted.
    pub run: RunId,
    /// Why the run was interrupted.
    pub cause: TakeOverCause,
    /// The checkpoint from which the next run starts; `None` if no interrupted run of this phase left one.
    pub restart: Option<RestartPoint>,
    /// Number of consecutive interruptions without a new checkpoint.
    pub without_checkpoint: u32,
    /// Whether the run had a finished result, which the next run validates and reviews before it starts an
    /// agent.
    #[serde(default)]
    pub judges: bool,
}

impl InterruptedRun {
    /// Returns the interruption of a run, given the previous one of the same phase.
    pub(crate) fn after(
        earlier: Option<&InterruptedRun>,
        run: RunId,
        cause: TakeOverCause,
        remains: Remains,
    ) -> Self {
        let judges = remains.is_result();
        let (Remains::Work(restart) | Remains::Result(restart)) = remains;
        let before = earlier.map_or(0, |earlier| earlier.without_checkpoint);
        let without_checkpoint = match (&restart, cause) {
            (Some(_), _) | (None, TakeOverCause::Stopped) => 0,
            // A person stopped the parent, which is not a problem of this run.
            (None, TakeOverCause::StoppedAbove) => before,
            (None, TakeOverCause::OwnerGone | TakeOverCause::Interrupted) => before + 1,
        };
        // Without a new checkpoint, the next run starts where the interrupted one did.
        let restart = restart.or_else(|| earlier.and_then(|earlier| earlier.restart.clone()));
        Self { run, cause, restart, without_checkpoint, judges }
    }

    /// Describes the interruption of a plan for people. After the next run has started, the text is in the past
    /// tense.
    pub fn describe(&self, plan: &Plan) -> String {
        let (continues, starts) = match plan.stage.state() {
            State::Processing => ("continued", "started"),
            _ => ("continues", "starts"),
        };
        let mut text = match &self.restart {
            Some(restart) => format!("interrupted, {continues} from checkpoint {}", restart.checkpoint),
            None if plan.has_work_so_far() => format!("interrupted, {continues} from the work so far"),
            None => format!("interrupted without a checkpoint, {starts} again"),
        };
        if self.judges {
            text.push_str("; its finished result is validated and reviewed again");
        }
        text
    }

    /// Returns the feedback for the next agent of the plan.
    pub fn feedback(&self, plan: &Plan) -> String {
        let checkpoint = match &self.restart {
            Some(restart) => format!(" (checkpoint {})", restart.checkpoint),
            None if plan.has_work_so_far() => String::new(),
            None => {
                return "The previous run of this task was interrupted before it changed a file. Nothing is wrong with the task."
                    .to_owned();
            }
        };
        format!(
            "The previous run of this task was interrupted. Its files are in your worktree{checkpoint}: continue that work and \
             do only what is missing. Do not start over."
        )
    }
}
