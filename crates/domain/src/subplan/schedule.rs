//! Scheduling of subplans: the observed state of each child plan, the updates that the parent has not
//! recorded, and the steps that are due.

use std::time::Duration;

use super::outlook::{Transience, outlook};
use crate::{
    Complete, ErrorClass, Failure, Fanout, Plan, PlanId, Progress, ResourceUsage, RunId, Settled, Stage,
    Subplan, SubplanStatus, Timestamp, Turn,
};

/// First wait before a failed subplan is retried; doubled after each failure.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(60);

/// The observed state of a subplan's child plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChildState {
    /// The child plan does not exist yet.
    Unborn,
    /// Queued, and waiting for its turn.
    InLine,
    /// Queued, waiting for its turn, and postponed: an agent met its rate limit.
    Postponed {
        /// When it is due.
        until: Timestamp,
        /// The agent with the rate limit.
        agent: String,
    },
    /// It has its turn, and is queued or running.
    Busy,
    /// Waits for a person.
    Asking,
    /// Its latest run failed.
    Failed {
        /// The failed run.
        run: Option<RunId>,
        /// The failure.
        failure: Failure,
    },
    /// Its work is complete, validated and reviewed.
    Finished {
        /// The commit that contains the work.
        head: String,
    },
    /// Its result joined its parent's branch, or landed in its own project.
    Landed {
        /// The commit that contains the result.
        commit: String,
    },
    /// It was ended.
    Cancelled {
        /// Reason for cancelling.
        reason: String,
    },
}

impl ChildState {
    /// Returns the observed state of this plan.
    pub fn of(plan: &Plan) -> ChildState {
        if plan.pending_decision().is_some() {
            return ChildState::Asking;
        }
        if let Some(failure) = plan.stage.failure() {
            return ChildState::Failed { run: plan.run.clone(), failure: failure.clone() };
        }
        match &plan.stage {
            Stage::Apply(Progress::Reached(Settled::Applied { commit })) => {
                ChildState::Landed { commit: commit.clone() }
            }
            Stage::Apply(Progress::Reached(Settled::Constrained { reasons })) => ChildState::Failed {
                run: plan.run.clone(),
                failure: Failure::new(ErrorClass::SubplanFailed, reasons.join("; ")),
            },
            Stage::Execute(Progress::Reached(Complete)) => ChildState::Finished {
                head: plan.head_commit.clone().unwrap_or_else(|| plan.base_commit.clone()),
            },
            Stage::Strategize(Progress::Cancelled { reason })
            | Stage::Execute(Progress::Cancelled { reason }) => {
                ChildState::Cancelled { reason: reason.clone() }
            }
            Stage::Apply(Progress::Cancelled { reason }) => ChildState::Cancelled { reason: reason.clone() },
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => {
                let in_line = plan.place.as_ref().is_some_and(|place| place.turn == Turn::InLine);
                match plan.waits() {
                    _ if !(in_line && plan.awaits_turn()) => ChildState::Busy,
                    Some(limit) => ChildState::Postponed { until: limit.until, agent: limit.agent.clone() },
                    None => ChildState::InLine,
                }
            }
        }
    }
}

impl ChildState {
    /// Returns true if it only waits for its turn.
    pub fn stands_in_line(&self, now: Timestamp) -> bool {
        match self {
            ChildState::InLine => true,
            ChildState::Postponed { until, .. } => *until <= now,
            ChildState::Unborn
            | ChildState::Busy
            | ChildState::Asking
            | ChildState::Failed { .. }
            | ChildState::Finished { .. }
            | ChildState::Landed { .. }
            | ChildState::Cancelled { .. } => false,
        }
    }
}

/// A change of a subplan that its parent has not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SubplanUpdate {
    /// The subplan failed.
    Failed {
        /// Index of the subplan.
        piece: usize,
        /// The failed run.
        run: Option<RunId>,
        /// The failure.
        failure: Failure,
    },
    /// The child plan was cancelled by another process or a person.
    Cancelled {
        /// Index of the subplan.
        piece: usize,
        /// Reason for cancelling.
        reason: String,
    },
    /// The subplan is complete, and lands in its own project later.
    Ready {
        /// Index of the subplan.
        piece: usize,
    },
    /// Its result is part of the parent's branch, or landed in its own project.
    Joined {
        /// Index of the subplan.
        piece: usize,
        /// The commit that contains the result.
        commit: String,
    },
    /// A child plan has ended; the unused part of its budget share returns to the parent.
    Over {
        /// The child plan.
        child: PlanId,
        /// Its usage.
        used: ResourceUsage,
    },
    /// The result conflicts with the results joined so far; only a person can decide.
    Conflict {
        /// Index of the subplan.
        piece: usize,
        /// The question to ask.
        question: Box<crate::Question>,
    },
}

/// The steps that are due for the subplans.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubplanSteps {
    /// Subplans to retry.
    pub retry: Vec<usize>,
    /// Subplans that get their turn.
    pub call: Vec<usize>,
    /// The subplan to join next.
    pub join: Option<usize>,
    /// The time of the next due step, if no other change happens before.
    pub wake_at: Option<Timestamp>,
}

impl SubplanSteps {
    /// Makes sure that the schedule is checked at this time or earlier.
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }
}

impl SubplanUpdate {
    /// Returns the update for a child plan that has ended and uses no more of its budget share.
    pub fn of_end(child: &Plan) -> Option<SubplanUpdate> {
        let complete = child.stage == Stage::Execute(Progress::Reached(Complete));
        let over = child.stage.is_terminal() || complete && child.pending_decision().is_none();
        over.then(|| SubplanUpdate::Over { child: child.id.clone(), used: child.used() })
    }
}

impl Fanout {
    /// Returns the observed changes that are not recorded yet. `seen` has one entry per subplan.
    pub fn updates(&self, seen: &[ChildState]) -> Vec<SubplanUpdate> {
        let told = self.pieces.iter().zip(seen).enumerate();
        told.filter_map(|(piece, (one, seen))| match (&one.fate, seen) {
            (SubplanStatus::Open, ChildState::Failed { run, failure }) if !one.knows(run) => {
                Some(SubplanUpdate::Failed { piece, run: run.clone(), failure: failure.clone() })
            }
            (SubplanStatus::Open | SubplanStatus::Ready, ChildState::Cancelled { reason }) => {
                Some(SubplanUpdate::Cancelled { piece, reason: reason.clone() })
            }
            (SubplanStatus::Open, ChildState::Finished { .. }) if one.project.is_some() => {
                Some(SubplanUpdate::Ready { piece })
            }
            (SubplanStatus::Open | SubplanStatus::Ready, ChildState::Landed { commit }) => {
                Some(SubplanUpdate::Joined { piece, commit: commit.clone() })
            }
            (SubplanStatus::Ready, ChildState::Failed { run, failure }) if !one.knows(run) => {
                Some(SubplanUpdate::Failed { piece, run: run.clone(), failure: failure.clone() })
            }
            _ => None,
        })
        .collect()
    }

    /// Returns the steps that are due; call it only when `updates` is empty. At most `max_parallel` subplans
    /// run, never two with overlapping paths, and none before the ones it waits for.
    pub fn due_steps(&self, seen: &[ChildState], now: Timestamp) -> SubplanSteps {
        let mut acts = SubplanSteps::default();
        let mut busy: Vec<usize> = Vec::new();
        for (index, piece) in self.open() {
            match &seen[index] {
                ChildState::Busy => busy.push(index),
                ChildState::Failed { .. } => {
                    let at = piece.retry_at();
                    if at <= now {
                        acts.retry.push(index);
                    } else {
                        acts.wake(at);
                    }
                }
                // It gave up its turn, and waits for another one once its time has come.
                ChildState::Postponed { until, .. } if *until > now => acts.wake(*until),
                ChildState::Unborn
                | ChildState::InLine
                | ChildState::Postponed { .. }
                | ChildState::Asking
                | ChildState::Finished { .. }
                | ChildState::Landed { .. }
                | ChildState::Cancelled { .. } => {}
            }
        }
        for (index, piece) in self.open() {
            let free = busy.len() < self.max_parallel as usize;
            let may = free && seen[index].stands_in_line(now) && self.may_follow(piece, seen);
            let alone = busy.iter().all(|other| !overlap(&piece.paths, &self.pieces[*other].paths));
            if may && alone {
                acts.call.push(index);
                busy.push(index);
            }
        }
        // Subplans join in order: until the next one is finished, no later one joins.
        let next = self.open().find(|(_, piece)| piece.project.is_none());
        acts.join =
            next.map(|(index, _)| index).filter(|index| matches!(seen[*index], ChildState::Finished { .. }));
        acts
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Subplan)> {
        self.pieces.iter().enumerate().filter(|(_, piece)| piece.fate == SubplanStatus::Open)
    }

    /// Returns true if everything that the subplan waits for is done.
    fn may_follow(&self, piece: &Subplan, seen: &[ChildState]) -> bool {
        piece.after.iter().filter_map(|name| self.position(name)).all(|at| match &self.pieces[at].fate {
            SubplanStatus::Joined { .. } | SubplanStatus::Ready => true,
            SubplanStatus::Open => matches!(seen[at], ChildState::Finished { .. }),
            SubplanStatus::Handed { .. }
            | SubplanStatus::Failed
            | SubplanStatus::Cancelled { .. }
            | SubplanStatus::Dropped => false,
        })
    }
}

impl Subplan {
    fn knows(&self, run: &Option<RunId>) -> bool {
        self.failures.iter().any(|record| record.run == *run)
    }

    /// Returns true if the subplan may be retried after this failure.
    pub(crate) fn may_be_tried(&self, failure: &Failure) -> bool {
        outlook(failure.class) == Transience::MayPass && self.attempts() < self.max_attempts as usize
    }

    fn retry_at(&self) -> Timestamp {
        let attempts = self.attempts();
        match self.failures.last() {
            Some(record) if attempts > 0 => {
                let doublings = u32::try_from(attempts - 1).unwrap_or(u32::MAX).min(16);
                record.at.plus(PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(PAUSE_LAST))
            }
            // A person allowed the retry: it is due immediately.
            Some(_) | None => Timestamp::from_micros(0),
        }
    }
}

/// Returns true if two lists of declared paths overlap. An empty list overlaps with nothing.
fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().any(|left| other.iter().any(|right| nested(&fixed(left), &fixed(right))))
}

/// Returns the components of a path up to the first pattern.
fn fixed(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .take_while(|part| !part.contains(['*', '?', '[']))
        .collect()
}

fn nested(one: &[&str], other: &[&str]) -> bool {
    one.iter().zip(other).all(|(left, right)| left == right)
}
