//! Decides whether the holder of a repository's lock may still act. A plan's fence is over when another
//! process holds the plan, or when the plan's lock expired or was released. A frozen process still holds the
//! lock of the operating system then (BUG-11).

use std::sync::Arc;

use drydock_domain::{Lock, LockScope, PlanId, error_chain};
use drydock_store::{Store, StoreError};
use drydock_worktree::{Judge, LockHolder, Standing};
use tokio::runtime::Handle;

/// Returns a judge that reads the store. Must be called in a runtime. The judge itself blocks, so it is
/// called on the blocking threads that run git.
pub(crate) fn judge(store: &Store) -> Judge {
    let (store, runtime) = (store.clone(), Handle::current());
    Arc::new(move |holder| match runtime.block_on(look(&store, holder)) {
        Ok(standing) => standing,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "could not read the locks to check the holder of the repository's lock");
            Standing::Current
        }
    })
}

/// A plan that this store does not have belongs to another store with the same repository. Only that store
/// can judge its lock.
async fn look(store: &Store, holder: &LockHolder) -> Result<Standing, StoreError> {
    let known = match holder.plan.as_ref().and_then(|(plan, _)| plan.parse::<PlanId>().ok()) {
        Some(plan) => store.plan_fetch(&plan).await?.is_some(),
        None => false,
    };
    if !known {
        return Ok(Standing::Current);
    }
    Ok(standing(holder, &store.lock_list().await?))
}

fn standing(holder: &LockHolder, locks: &[Lock]) -> Standing {
    let Some((plan, fence)) = &holder.plan else { return Standing::Current };
    let current = |lock: &&Lock| lock.scope == LockScope::Plan && lock.key == *plan;
    match locks.iter().find(current) {
        Some(lock) if lock.fence <= *fence && !lock.stale => Standing::Current,
        Some(_) | None => Standing::Over,
    }
}
