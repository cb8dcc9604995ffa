//! Subplans as this process last saw them. Tending looks at all pieces of a plan each time one of them moves: with a
//! thousand of them, reading all each time would cost more than the work. A plan of the same revision is the same plan,
//! so what is remembered is never wrong; what is forgotten is read again.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use drydock_domain::PlanId;

use super::tend::Children;

/// How many plans' subplans are remembered at the most.
const FAMILIES_MAX: usize = 16;

/// The subplans of the plans that are tended here.
#[derive(Debug, Default)]
pub(crate) struct Families(Mutex<HashMap<PlanId, Children>>);

impl Families {
    /// Returns the subplans of a plan as they were; none where nobody looked yet.
    pub(super) fn last_seen(&self, plan: &PlanId) -> Children {
        self.lock().get(plan).cloned().unwrap_or_default()
    }

    /// Keeps them for the next look.
    pub(super) fn remember(&self, plan: &PlanId, children: &Children) {
        let mut families = self.lock();
        if families.len() >= FAMILIES_MAX && !families.contains_key(plan) {
            families.clear();
        }
        families.insert(plan.clone(), children.clone());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PlanId, Children>> {
        // Nothing is half done under this lock.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
