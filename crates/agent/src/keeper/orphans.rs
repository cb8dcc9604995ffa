//! Processes that drydock inherits: it kills those that a killed keeper left, and reaps those that have ended.
//!
//! A keeper's mark in the environment finds most of that, but a process can have dropped its environment. The kernel gives
//! orphans to the nearest ancestor that asked for them, which for those of a dead keeper is drydock. They are told from what
//! drydock started itself by their session: a keeper leads one of its own, and no process can come back from there.
//!
//! Drydock also inherits what git started and did not wait for (transport helpers, hooks, detached maintenance). Those may
//! finish; each is a zombie until it is waited for.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{getpid, set_child_subreaper};
use tokio::process::Child;

use super::processes;

static ADOPTING: AtomicBool = AtomicBool::new(false);
/// The keepers that were started and not waited for yet. A list, not a set: the number of a keeper that was just waited for
/// can belong to the next one before the first is removed.
static KEEPERS: Mutex<Vec<i32>> = Mutex::new(Vec::new());

/// Makes this process inherit what its keepers leave behind, and end that. For a program whose children in other sessions are
/// all keepers.
pub fn adopt_orphans() -> io::Result<()> {
    set_child_subreaper(Some(getpid()))?;
    ADOPTING.store(true, Ordering::Release);
    Ok(())
}

/// Starts a keeper. Nobody looks for orphans meanwhile, who could take it for one.
pub(crate) fn enrolled(spawn: impl FnOnce() -> io::Result<Child>) -> io::Result<Child> {
    let mut keepers = keepers();
    let keeper = spawn()?;
    keepers.extend(keeper.id().map(u32::cast_signed));
    Ok(keeper)
}

/// Forgets a keeper that was waited for.
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
    processes::kill_strange_children(&keepers())
}

/// Waits for every child of this process that has ended and is neither a keeper nor one of `registered`, and returns how
/// many there were. The caller sees to it that no child other than a keeper is started meanwhile.
///
/// No exit status is taken that another thread waits for. Each child of ours is registered before the lock under which it
/// was started is released, and both locks are held here, so a child that is not registered was inherited. A registration
/// ends after its owner has waited, when no status is left to take: if the number belongs to a new child of ours by
/// then, the new child has a registration of its own. This function waits by number and never for "any child", since
/// the kernel would choose the child.
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
