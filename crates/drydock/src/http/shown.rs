//! A cache of serialized plans. The rows of a plan are read for each request. The cached answer is used only if the
//! rows are the same, byte by byte, and the caller has the same authority; it depends on nothing else. So no caller
//! gets an old plan, no matter which process changed it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use axum::body::Bytes;
use drydock_api as api;
use drydock_domain::Authority;
use drydock_engine::Offered;
use drydock_store::{PlanRows, StoreError};

use super::extract::json;
use super::view;

/// The maximum number of cached answers, and the maximum size of the answers and their rows in bytes. When a limit is
/// reached, the cache is cleared, which costs no more than not caching.
const ANSWERS_MAX: usize = 512;
const BYTES_MAX: usize = 4 * 1024 * 1024;

/// The plan's id, and the authority of the callers.
type Key = (String, Authority);

/// Answers by plan and authority.
#[derive(Debug, Default)]
pub(super) struct PlanJsonCache(Mutex<CachedPlans<PlanRows>>);

#[derive(Debug)]
struct CachedPlans<R> {
    bytes: usize,
    of: HashMap<Key, CachedPlan<R>>,
}

/// An answer, the rows it was made from, and the size of both.
#[derive(Debug)]
struct CachedPlan<R> {
    row: R,
    body: Bytes,
    bytes: usize,
}

impl PlanJsonCache {
    /// Returns the plan of these rows as JSON, with the actions that this authority can take.
    pub(super) fn answer(&self, row: PlanRows, authority: Authority) -> Result<Bytes, StoreError> {
        let key = (row.id().unwrap_or_default().to_owned(), authority);
        if let Some(body) = self.lock().known(&key, &row) {
            return Ok(body);
        }
        let sighted = row.read()?;
        let offered = Offered::of(&sighted, authority);
        let plan = view::offered(sighted.snapshot.plan, &offered);
        let body = Bytes::from(json(&api::OnePlan { plan }));
        let bytes = row.bytes() + body.len();
        self.lock().keep(key, CachedPlan { row, body: body.clone(), bytes });
        Ok(body)
    }

    /// Ignores poisoning: a panic while the lock is held leaves no partial change.
    fn lock(&self) -> MutexGuard<'_, CachedPlans<PlanRows>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R> Default for CachedPlans<R> {
    fn default() -> Self {
        Self { bytes: 0, of: HashMap::new() }
    }
}

impl<R: PartialEq> CachedPlans<R> {
    fn known(&self, key: &Key, row: &R) -> Option<Bytes> {
        self.of.get(key).filter(|answer| answer.row == *row).map(|answer| answer.body.clone())
    }

    fn keep(&mut self, key: Key, answer: CachedPlan<R>) {
        if let Some(old) = self.of.remove(&key) {
            self.bytes -= old.bytes;
        }
        if answer.bytes > BYTES_MAX {
            return;
        }
        if self.of.len() >= ANSWERS_MAX || self.bytes + answer.bytes > BYTES_MAX {
            *self = CachedPlans::default();
        }
        self.bytes += answer.bytes;
        self.of.insert(key, answer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(row: usize, bytes: usize) -> CachedPlan<usize> {
        CachedPlan { row, body: Bytes::new(), bytes }
    }

    fn key(id: &str) -> Key {
        (id.to_owned(), Authority::Person)
    }

    /// Breaks if the cache grows without bound with the number of plans, with their size, or with the number of
    /// changes.
    #[test]
    fn no_more_is_kept_than_there_is_room_for() {
        let mut answers = CachedPlans::default();
        let mut most = 0;
        for number in 0..10 * ANSWERS_MAX {
            answers.keep(key(&number.to_string()), answer(number, 10));
            answers.keep(key("changing"), answer(number, BYTES_MAX / 100));
            assert!(answers.known(&key("changing"), &number).is_some());
            assert!(answers.of.len() <= ANSWERS_MAX && answers.bytes <= BYTES_MAX);
            assert_eq!(answers.bytes, answers.of.values().map(|answer| answer.bytes).sum::<usize>());
            most = most.max(answers.of.len());
        }
        assert_eq!(most, ANSWERS_MAX);
        answers.keep(key("1"), answer(1, BYTES_MAX + 1));
        assert!(
            answers.known(&key("1"), &1).is_none()
                && answers.known(&key("changing"), &(10 * ANSWERS_MAX - 1)).is_some()
        );
        for number in 0..10 {
            answers.keep(key(&format!("long {number}")), answer(number, BYTES_MAX / 2 + 1));
            assert!(answers.bytes <= BYTES_MAX);
        }
    }
}
