//! Releases the locks and claims of processes that have provably exited, without waiting for the locks to
//! expire, so that the next command after a `kill -9` continues (S1.7). If an exit cannot be proven, the
//! lock's expiry decides.

use drydock_domain::{Lock, error_chain};
use drydock_store::HoldingProcess;
use drydock_worktree::is_gone;

use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// Releases everything that the holder of this lock holds if its process has exited, and returns whether
    /// it has. A lock of this process that could not be released, for example because the disk was full, is
    /// released too: no work runs under it, though the process is alive.
    pub(crate) async fn free_if_gone(&self, lock: &Lock) -> Result<bool, EngineError> {
        if self.identity().abandoned(&lock.holder.owner) {
            self.store().leases_release_all(&lock.holder.owner).await?;
            self.identity().released(&lock.holder.owner);
            return Ok(true);
        }
        if !is_gone(&lock.holder.process) {
            return Ok(false);
        }
        let holding = self.store().processes_holding().await?;
        if let Some(gone) = holding.iter().find(|one| one.process == lock.holder.process) {
            self.free(gone).await?;
        }
        Ok(true)
    }

    /// Releases the locks and claims of every process that has exited.
    pub(crate) async fn free_gone(&self) -> Result<(), EngineError> {
        for gone in self.store().processes_holding().await?.iter().filter(|one| is_gone(&one.process)) {
            self.free(gone).await?;
        }
        Ok(())
    }

    async fn free(&self, gone: &HoldingProcess) -> Result<(), EngineError> {
        let freed = self.store().process_free(gone).await?;
        tracing::info!(
            pid = gone.process.pid,
            freed,
            "released the locks of a process that no longer exists"
        );
        Ok(())
    }

    /// Releases the locks and claims of processes that have exited, for callers that look for work. A failure
    /// is logged; the next call retries.
    pub(crate) async fn free_gone_or_say(&self) {
        if let Err(error) = self.free_gone().await {
            tracing::warn!(error = %error_chain(&error), "could not check for processes that no longer exist");
        }
    }

    /// Returns every held lock. A lock whose process has exited is stale, even before it expires.
    pub async fn locks(&self) -> Result<Vec<Lock>, EngineError> {
        let mut locks = self.store().lock_list().await?;
        for lock in &mut locks {
            lock.stale = lock.stale || is_gone(&lock.holder.process);
        }
        Ok(locks)
    }
}
