//! What a tender sees of the pieces, what that is news of, and what is to be done next.

use std::time::Duration;

use super::outlook::{Outlook, outlook};
use crate::{
    Complete, ErrorClass, Failure, Fanout, Fate, Piece, Plan, PlanId, Progress, RunId, Settled, Spent, Stage,
    Timestamp, Turn,
};

/// How long a piece that failed waits before it is tried again; doubled each time.
const PAUSE_FIRST: Duration = Duration::from_secs(1);
const PAUSE_LAST: Duration = Duration::from_secs(60);

/// What can be seen of a piece's plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// There is none yet.
    Unborn,
    /// It is queued and not called.
    InLine,
    /// It is queued, not called, and not due before a time: an agent met its rate limit.
    Postponed {
        /// When it is due.
        until: Timestamp,
        /// Whose limit it is.
        agent: String,
    },
    /// It was called, and is queued or at work.
    Busy,
    /// It waits for a person.
    Asking,
    /// Its latest run failed.
    Failed {
        /// Which run.
        run: Option<RunId>,
        /// What failed.
        failure: Failure,
    },
    /// Its work is complete and judged.
    Finished {
        /// The commit that holds it.
        head: String,
    },
    /// Its result is where it belongs.
    Landed {
        /// The commit that holds it.
        commit: String,
    },
    /// It was ended.
    Cancelled {
        /// Why.
        reason: String,
    },
}

impl Seen {
    /// Returns what a tender sees of this plan.
    pub fn of(plan: &Plan) -> Seen {
        if plan.pending_decision().is_some() {
            return Seen::Asking;
        }
        if let Some(failure) = plan.stage.failure() {
            return Seen::Failed { run: plan.run.clone(), failure: failure.clone() };
        }
        match &plan.stage {
            Stage::Apply(Progress::Reached(Settled::Applied { commit })) => {
                Seen::Landed { commit: commit.clone() }
            }
            Stage::Apply(Progress::Reached(Settled::Constrained { reasons })) => Seen::Failed {
                run: plan.run.clone(),
                failure: Failure::new(ErrorClass::SubplanFailed, reasons.join("; ")),
            },
            Stage::Execute(Progress::Reached(Complete)) => {
                Seen::Finished { head: plan.head_commit.clone().unwrap_or_else(|| plan.base_commit.clone()) }
            }
            Stage::Strategize(Progress::Cancelled { reason })
            | Stage::Execute(Progress::Cancelled { reason }) => Seen::Cancelled { reason: reason.clone() },
            Stage::Apply(Progress::Cancelled { reason }) => Seen::Cancelled { reason: reason.clone() },
            Stage::Strategize(_) | Stage::Execute(_) | Stage::Apply(_) => {
                let in_line = plan.place.as_ref().is_some_and(|place| place.turn == Turn::InLine);
                match plan.waits() {
                    _ if !(in_line && plan.awaits_turn()) => Seen::Busy,
                    Some(limit) => Seen::Postponed { until: limit.until, agent: limit.agent.clone() },
                    None => Seen::InLine,
                }
            }
        }
    }
}

impl Seen {
    /// Says whether it waits for nothing but its turn.
    pub fn stands_in_line(&self, now: Timestamp) -> bool {
        match self {
            Seen::InLine => true,
            Seen::Postponed { until, .. } => *until <= now,
            Seen::Unborn
            | Seen::Busy
            | Seen::Asking
            | Seen::Failed { .. }
            | Seen::Finished { .. }
            | Seen::Landed { .. }
            | Seen::Cancelled { .. } => false,
        }
    }
}

/// Something about a piece that its parent has not recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// It failed.
    Failed {
        /// Which piece.
        piece: usize,
        /// In which run.
        run: Option<RunId>,
        /// What failed.
        failure: Failure,
    },
    /// It was ended by somebody.
    Cancelled {
        /// Which piece.
        piece: usize,
        /// Why.
        reason: String,
    },
    /// It is complete, and lands in its own project later.
    Ready {
        /// Which piece.
        piece: usize,
    },
    /// Its result is part of the parent's branch, or landed in its own project.
    Joined {
        /// Which piece.
        piece: usize,
        /// The commit that holds it.
        commit: String,
    },
    /// A subplan is over, so that what it did not use is its parent's again.
    Over {
        /// Which one.
        child: PlanId,
        /// What it used.
        used: Spent,
    },
    /// Its result conflicts with what has joined; only a person can say.
    Conflict {
        /// Which piece.
        piece: usize,
        /// What is asked.
        question: Box<crate::Question>,
    },
}

/// What is to be done for the pieces now.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Acts {
    /// These are to be tried again.
    pub retry: Vec<usize>,
    /// These are called to work.
    pub call: Vec<usize>,
    /// This one joins next.
    pub join: Option<usize>,
    /// Nothing else is due before then.
    pub wake_at: Option<Timestamp>,
}

impl Acts {
    /// Lets somebody look again at this time at the latest.
    fn wake(&mut self, at: Timestamp) {
        self.wake_at = Some(self.wake_at.map_or(at, |other| other.min(at)));
    }
}

impl News {
    /// Returns that a subplan is over, where it is: it will use no more of what it was handed.
    pub fn of_end(child: &Plan) -> Option<News> {
        let complete = child.stage == Stage::Execute(Progress::Reached(Complete));
        let over = child.stage.is_terminal() || complete && child.pending_decision().is_none();
        over.then(|| News::Over { child: child.id.clone(), used: child.used() })
    }
}

impl Fanout {
    /// Returns what is seen and not recorded yet. `seen` has one entry for each piece.
    pub fn news(&self, seen: &[Seen]) -> Vec<News> {
        let told = self.pieces.iter().zip(seen).enumerate();
        told.filter_map(|(piece, (one, seen))| match (&one.fate, seen) {
            (Fate::Open, Seen::Failed { run, failure }) if !one.knows(run) => {
                Some(News::Failed { piece, run: run.clone(), failure: failure.clone() })
            }
            (Fate::Open | Fate::Ready, Seen::Cancelled { reason }) => {
                Some(News::Cancelled { piece, reason: reason.clone() })
            }
            (Fate::Open, Seen::Finished { .. }) if one.project.is_some() => Some(News::Ready { piece }),
            (Fate::Open | Fate::Ready, Seen::Landed { commit }) => {
                Some(News::Joined { piece, commit: commit.clone() })
            }
            (Fate::Ready, Seen::Failed { run, failure }) if !one.knows(run) => {
                Some(News::Failed { piece, run: run.clone(), failure: failure.clone() })
            }
            _ => None,
        })
        .collect()
    }

    /// Returns what is to be done now; call it when there is no news. Never lets more than `max_parallel` pieces work,
    /// nor two whose paths overlap, nor one before those it waits for.
    pub fn acts(&self, seen: &[Seen], now: Timestamp) -> Acts {
        let mut acts = Acts::default();
        let mut busy: Vec<usize> = Vec::new();
        for (index, piece) in self.open() {
            match &seen[index] {
                Seen::Busy => busy.push(index),
                Seen::Failed { .. } => {
                    let at = piece.retry_at();
                    if at <= now {
                        acts.retry.push(index);
                    } else {
                        acts.wake(at);
                    }
                }
                // It has given its place to others meanwhile, and stands in line when its time has come.
                Seen::Postponed { until, .. } if *until > now => acts.wake(*until),
                Seen::Unborn
                | Seen::InLine
                | Seen::Postponed { .. }
                | Seen::Asking
                | Seen::Finished { .. }
                | Seen::Landed { .. }
                | Seen::Cancelled { .. } => {}
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
        // In their order: the next one joins when it is finished, and until then nobody behind it does.
        let next = self.open().find(|(_, piece)| piece.project.is_none());
        acts.join =
            next.map(|(index, _)| index).filter(|index| matches!(seen[*index], Seen::Finished { .. }));
        acts
    }

    fn open(&self) -> impl Iterator<Item = (usize, &Piece)> {
        self.pieces.iter().enumerate().filter(|(_, piece)| piece.fate == Fate::Open)
    }

    /// Says whether everything that a piece waits for is done.
    fn may_follow(&self, piece: &Piece, seen: &[Seen]) -> bool {
        piece.after.iter().filter_map(|name| self.position(name)).all(|at| match &self.pieces[at].fate {
            Fate::Joined { .. } | Fate::Ready => true,
            Fate::Open => matches!(seen[at], Seen::Finished { .. }),
            Fate::Handed { .. } | Fate::Failed | Fate::Cancelled { .. } | Fate::Dropped => false,
        })
    }
}

impl Piece {
    fn knows(&self, run: &Option<RunId>) -> bool {
        self.failures.iter().any(|record| record.run == *run)
    }

    /// Says whether one more failure leaves it another attempt.
    pub(crate) fn may_be_tried(&self, failure: &Failure) -> bool {
        outlook(failure.class) == Outlook::MayPass && self.attempts() < self.max_attempts as usize
    }

    fn retry_at(&self) -> Timestamp {
        let attempts = self.attempts();
        match self.failures.last() {
            Some(record) if attempts > 0 => {
                let doublings = u32::try_from(attempts - 1).unwrap_or(u32::MAX).min(16);
                record.at.plus(PAUSE_FIRST.saturating_mul(2_u32.saturating_pow(doublings)).min(PAUSE_LAST))
            }
            // A person let it be tried: at once.
            Some(_) | None => Timestamp::from_micros(0),
        }
    }
}

/// Says whether two lists of declared paths have a place in common. What declares nothing overlaps with nothing.
fn overlap(one: &[String], other: &[String]) -> bool {
    one.iter().any(|left| other.iter().any(|right| nested(&fixed(left), &fixed(right))))
}

/// Returns the parts of a path up to the first that is a pattern.
fn fixed(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .take_while(|part| !part.contains(['*', '?', '[']))
        .collect()
}

fn nested(one: &[&str], other: &[&str]) -> bool {
    one.iter().zip(other).all(|(left, right)| left == right)
}
