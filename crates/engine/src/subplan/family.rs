//! Cache of child plans. Scheduling reads all subplans of a plan each time one of them changes; with a
//! thousand subplans, reading them from the store each time would cost more than the work. Plans with the
//! same revision are identical, so a cached plan is revalidated by its revision, and a missing one is read
//! again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use drydock_domain::PlanId;

use super::tend::Children;

/// Maximum number of parents whose children are cached.
const FAMILIES_MAX: usize = 16;

/// The children of the plans that this process schedules.
#[derive(Debug, Default)]
pub(crate) struct ChildrenCache(Mutex<HashMap<PlanId, Children>>);

impl ChildrenCache {
    /// Returns the cached children of a plan; empty if there are none.
    pub(super) fn last_seen(&self, plan: &PlanId) -> Children {
        self.lock().get(plan).cloned().unwrap_or_default()
    }

    /// Caches the children of a plan.
    pub(super) fn remember(&self, plan: &PlanId, children: &Children) {
        let mut families = self.lock();
        if families.len() >= FAMILIES_MAX && !families.contains_key(plan) {
            families.clear();
        }
        families.insert(plan.clone(), children.clone());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PlanId, Children>> {
        // No update is left incomplete under this lock, so a poisoned lock is safe to use.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
