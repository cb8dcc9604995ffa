//! Reaps processes that this process inherited and that have ended, so that none stays a zombie.
//!
//! `agent` waits for its keepers and `worktree` for its git processes; this module reaps every other child
//! that has ended. It runs in every process that adopts orphans, from the engine's start to its end.

use std::time::Duration;

use drydock_domain::error_chain;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::task;

/// How long to wait after a child has ended: git processes end in groups, and one scan reaps all of them.
const PAUSE: Duration = Duration::from_millis(100);

/// The task that reaps; dropping it ends the task.
#[derive(Debug)]
pub(crate) struct Reaper(JoinHandle<()>);

impl Reaper {
    pub(crate) fn start() -> Self {
        Self(task::start("reaper", reap()))
    }
}

impl Drop for Reaper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn reap() {
    // The kernel sends `SIGCHLD` for inherited children as well.
    let mut ended = match signal(SignalKind::child()) {
        Ok(ended) => ended,
        Err(error) => {
            tracing::warn!(error = %error_chain(&error), "inherited zombie processes are not reaped");
            return;
        }
    };
    loop {
        tokio::time::sleep(PAUSE).await;
        let look = || drydock_worktree::with_git_children(drydock_agent::reap_orphans);
        match task::blocking(look).await {
            // The list of children can miss one while others end, so scan again until nothing was reaped.
            Ok(1..) => continue,
            Ok(0) => {}
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "could not check for zombie processes")
            }
        }
        if ended.recv().await.is_none() {
            return;
        }
    }
}
