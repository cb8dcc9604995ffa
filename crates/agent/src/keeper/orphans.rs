//! What a keeper leaves that was killed: drydock inherits it, and kills it.
//!
//! A keeper's mark in the environment finds most of that, but a process can have dropped its environment. The kernel gives
//! orphans to the nearest ancestor that asked for them, which for those of a dead keeper is drydock. They are told from what
//! drydock started itself by their session: a keeper leads one of its own, and no process can come back from there.

use std::collections::BTreeSet;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{getpid, set_child_subreaper};
use tokio::process::Child;

use super::processes;

static ADOPTING: AtomicBool = AtomicBool::new(false);
/// The keepers that were started and not waited for yet.
static KEEPERS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

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
    keepers().remove(&keeper.cast_signed());
}

/// Kills every orphan that this process has inherited, and returns how many were alive.
pub(crate) fn kill_orphans() -> io::Result<usize> {
    if !ADOPTING.load(Ordering::Acquire) {
        return Ok(0);
    }
    processes::kill_strange_children(&keepers())
}

fn keepers() -> MutexGuard<'static, BTreeSet<i32>> {
    KEEPERS.lock().unwrap_or_else(PoisonError::into_inner)
}
