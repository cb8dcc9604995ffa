//! Plans as they were answered last. The row of a plan is read for each request; while it is the same, byte by byte, so is
//! the answer, which is made of nothing else: not of the clock, nor of who asks. So nobody is told an old plan, whoever
//! changed it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use drydock_api as api;
use drydock_store::{PlanRow, StoreError};

use super::extract::json;
use super::view;

/// How many answers are kept, and how long they are together with their rows, in bytes; beyond, all are forgotten, which
/// costs as much as never having kept them.
const ANSWERS_MAX: usize = 512;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// Answers by the ids of their plans.
#[derive(Debug, Default)]
pub(super) struct Shown(Mutex<Answers<PlanRow>>);

#[derive(Debug)]
struct Answers<R> {
    bytes: usize,
    of: HashMap<String, Answer<R>>,
}

/// An answer, what it was made of, and how long both are.
#[derive(Debug)]
struct Answer<R> {
    row: R,
    body: Bytes,
    bytes: usize,
}

impl Shown {
    /// Returns the plan of this row as JSON.
    pub(super) fn answer(&self, row: PlanRow) -> Result<Bytes, StoreError> {
        if let Some(body) = row.id().and_then(|id| self.lock().known(id, &row)) {
            return Ok(body);
        }
        let plan = row.plan()?;
        let id = plan.id.to_string();
        let body = Bytes::from(json(&api::OnePlan { plan: view::plan(plan) }));
        let bytes = row.bytes() + body.len();
        self.lock().keep(id, Answer { row, body: body.clone(), bytes });
        Ok(body)
    }

    /// A panic while this was held left nothing half done.
    fn lock(&self) -> MutexGuard<'_, Answers<PlanRow>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Default for Answers<R> {
    fn default() -> Self {
        Self { bytes: 0, of: HashMap::new() }
    }
}

impl<R: PartialEq> Answers<R> {
    fn known(&self, id: &str, row: &R) -> Option<Bytes> {
        self.of.get(id).filter(|answer| answer.row == *row).map(|answer| answer.body.clone())
    }

    fn keep(&mut self, id: String, answer: Answer<R>) {
        if let Some(old) = self.of.remove(&id) {
            self.bytes -= old.bytes;
        }
        if answer.bytes > BYTES_MAX {
            return;
        }
        if self.of.len() >= ANSWERS_MAX || self.bytes + answer.bytes > BYTES_MAX {
            *self = Answers::default();
        }
        self.bytes += answer.bytes;
        self.of.insert(id, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(row: usize, bytes: usize) -> Answer<usize> {
        Answer { row, body: Bytes::new(), bytes }
    }

    /// Breaks when what is kept grows with the number of plans, with their length, or with how often one changes.
    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut answers = Answers::default();
        let mut most = 0;
        for number in 0..10 * ANSWERS_MAX {
            answers.keep(number.to_string(), answer(number, 10));
            answers.keep("changing".to_owned(), answer(number, BYTES_MAX / 100));
            assert!(answers.known("changing", &number).is_some());
            assert!(answers.of.len() <= ANSWERS_MAX && answers.bytes <= BYTES_MAX);
            assert_eq!(answers.bytes, answers.of.values().map(|answer| answer.bytes).sum::<usize>());
            most = most.max(answers.of.len());
        }
        assert_eq!(most, ANSWERS_MAX);
        answers.keep("1".to_owned(), answer(1, BYTES_MAX + 1));
        assert!(
            answers.known("1", &1).is_none() && answers.known("changing", &(10 * ANSWERS_MAX - 1)).is_some()
        );
        for number in 0..10 {
            answers.keep(format!("long {number}"), answer(number, BYTES_MAX / 2 + 1));
            assert!(answers.bytes <= BYTES_MAX);
        }
    }
}
