//! Orphans that drydock inherits: kills those left by a killed keeper, and reaps those that have ended.
//!
//! A keeper's mark in the environment finds most of its processes, but a process may have cleared its
//! environment. The kernel reparents orphans to the nearest subreaper, which is drydock for those of a dead
//! keeper. They differ from drydock's own children by their session: a keeper leads its own session, and a
//! process cannot return from there.
//!
//! Drydock also inherits processes that git started and did not wait for (transport helpers, hooks, detached
//! maintenance). These may finish; each is a zombie until it is reaped.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{getpid, set_child_subreaper};
use tokio::process::Child;

use super::processes;

static ADOPTING: AtomicBool = AtomicBool::new(false);
/// Keepers that were started and not reaped. A list, not a set: the pid of a reaped keeper can be reused by
/// the next one before the first is removed.
static KEEPERS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Makes this process inherit and kill the processes that its keepers leave behind. Only for programs whose
/// children in other sessions are all keepers.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTING.store(true, Ordering::Release);
    Ok(())
}

/// Starts a keeper under the lock, so that a concurrent scan for orphans cannot mistake it for one.
pub(crate) fn spawn_registered(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut keepers = keepers();
    let keeper = spawn()?;
    keepers.extend(keeper.id().map(u32::cast_signed));
    Ok(keeper)
}

/// Unregisters a keeper that was reaped.
pub(crate) fn strike(keeper: u32) {
    let mut keepers = keepers();
    if let Some(at) = keepers.iter().position(|known| *known == keeper.cast_signed()) {
        keepers.swap_remove(at);
    }
}

/// Kills every orphan that this process has inherited, and returns how many were alive.
pub(crate) fn kill_orphans() -> io::Result<usize> {
    if !ADOPTING.load(Ordering::Acquire) {
        return Ok(0);
    }
    processes::kill_unknown_children(&keepers())
}

/// Reaps every child of this process that has ended and is neither a keeper nor one of `registered`, and
/// returns their number. The caller must ensure that no child other than a keeper is started meanwhile.
///
/// This never takes an exit status for which another thread waits. Each of our children is registered before
/// the lock under which it was started is released. Both locks are held here, so an unregistered child was
/// inherited. A registration ends after its owner has waited, when no status is left to take; if the pid then
/// belongs to a new child of ours, the new child has its own registration. This function waits for specific
/// pids and never for "any child", because then the kernel would choose the child.
pub fn reap_orphans(registered: &[i32]) -> io::Result<usize> {
    if !ADOPTING.load(Ordering::Acquire) {
        return Ok(0);
    }
    let keepers = keepers();
    processes::reap_children(|child| keepers.contains(&child) || registered.contains(&child))
}

fn keepers() -> MutexGuard<'static, Vec<i32>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
