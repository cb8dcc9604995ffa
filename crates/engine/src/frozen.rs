//! Judges the holder of a repository's lock. A plan's fence is over when another process holds the plan, or when the plan's lock
//! ran out or was released. A frozen process still holds the lock of the operating system then (BUG-11).

use std::sync::Arc;

use drydock_domain::{Lock, LockScope, told};
use drydock_store::Store;
use drydock_worktree::{Judge, LockHolder, Standing};
use tokio::runtime::Handle;

/// Returns a judge that asks the store. Call it in a runtime; the judge itself blocks, and is called where git is.
pub(crate) fn judge(store: &Store) -> Judge {
    let (store, runtime) = (store.clone(), Handle::current());
    Arc::new(move |holder| match runtime.block_on(store.lock_list()) {
        Ok(locks) => standing(holder, &locks),
        Err(error) => {
            tracing::warn!(error = %told(&error), "could not read the locks to judge the holder of the repository's lock");
            Standing::Current
        }
    })
}

fn standing(holder: &LockHolder, locks: &[Lock]) -> Standing {
    let Some((plan, fence)) = &holder.plan else { return Standing::Current };
    let current = |lock: &&Lock| lock.scope == LockScope::Plan && lock.key == *plan;
    match locks.iter().find(current) {
        Some(lock) if lock.fence <= *fence && !lock.stale => Standing::Current,
        Some(_) | None => Standing::Over,
    }
}
