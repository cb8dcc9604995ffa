//! Lock guards. Each guard has a task that renews its lock until the lock is released, and a token that is
//! cancelled when the lock is lost. The guard of a phase also watches for requests to cancel (S1.1, S1.3). A
//! guard that a panic drops stops renewing its lock, so the lock expires: no lock outlives the work under it.
//! A person can break a lock.

use std::sync::Arc;
use std::time::Duration;

use drydock_domain::{Lock, LockId, Name, Plan, PlanId, State, error_chain};
use drydock_store::{Acquired, PlanLease, ProjectLease, Renewed, RequestKind, Store, StoreError};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::engine::{Engine, one, prefix};
use crate::error::EngineError;
use crate::identity::CountedLock;
use crate::tally::UsageCounter;
use crate::task;

/// How often a lock is renewed within its lifetime.
const RENEWALS_PER_TTL: u32 = 4;
/// The longest interval at which the holder of a phase polls for requests.
const REQUEST_POLL: Duration = Duration::from_secs(1);
/// How long to wait before retrying an unavailable store.
const STORE_POLL: Duration = Duration::from_millis(500);
/// How long to keep retrying an unavailable store once this process should stop.
const STOPPING_WAIT: Duration = Duration::from_secs(5);
/// How long a landing waits for another landing in the same project.
const PROJECT_WAIT: Duration = Duration::from_secs(120);
const PROJECT_POLL: Duration = Duration::from_millis(100);
/// How long a command waits for the lock of a plan that has no running phase.
const REST_WAIT: Duration = Duration::from_secs(5);
const REST_POLL: Duration = Duration::from_millis(25);

/// A held plan lock.
pub(crate) struct PlanLockGuard {
    store: Store,
    lease: Arc<PlanLease>,
    owner: String,
    plan: PlanId,
    lost: CancellationToken,
    cancel_asked: CancellationToken,
    upkeep: Vec<LockTask>,
    counted: CountedLock,
    tally: UsageCounter,
}

/// A held project lock.
pub(crate) struct ProjectLockGuard {
    store: Store,
    lease: Arc<ProjectLease>,
    owner: String,
    lost: CancellationToken,
    upkeep: LockTask,
    counted: CountedLock,
}

/// A task that serves a lock guard; dropping it ends the task.
struct LockTask {
    task: JoinHandle<()>,
    running: DropGuard,
}

impl LockTask {
    fn start(name: &'static str, work: impl Future<Output = ()> + Send + 'static) -> Self {
        let done = CancellationToken::new();
        let running = done.clone().drop_guard();
        let task = task::start(name, async move {
            tokio::select! {
                () = work => {}
                () = done.cancelled() => {}
            }
        });
        Self { task, running }
    }

    async fn end(self) {
        drop(self.running);
        if let Err(error) = self.task.await {
            tracing::error!(error = %error_chain(&error), "a task panicked");
        }
    }
}

impl Engine {
    /// Acquires the lock of a plan, or returns the lock that another process holds (S1.6).
    pub(crate) async fn lock_plan(&self, plan: &PlanId, purpose: &str) -> Result<PlanLockGuard, EngineError> {
        if self.stopping().is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        // Counted before it is requested: a shutdown in between must not miss a lock that the store just
        // granted.
        let counted = CountedLock::new(self.identity().clone());
        let holder = self.identity().holder(purpose);
        let (store, ttl) = (self.store().clone(), self.settings().lock_ttl);
        let mut acquired = store.plan_lease_acquire(plan, &holder, ttl).await?;
        if let Acquired::Busy(lock) = &acquired
            && self.free_if_gone(lock).await?
        {
            acquired = store.plan_lease_acquire(plan, &holder, ttl).await?;
        }
        match acquired {
            Acquired::Held(lease) => {
                Ok(PlanLockGuard::new(store, lease, (plan.clone(), holder.owner), ttl, counted))
            }
            Acquired::Busy(lock) => Err(EngineError::LockHeld { lock }),
        }
    }

    /// Acquires the lock of a plan for a caller's command. The lock of a plan without a running phase is held
    /// only briefly: by a run that has recorded its end and is about to release, or by another command. A
    /// caller that saw that end should not get `LockHeld`, so this call waits for such a lock.
    pub(crate) async fn lock_idle_plan(
        &self,
        plan: &PlanId,
        purpose: &str,
    ) -> Result<PlanLockGuard, EngineError> {
        let deadline = Instant::now() + REST_WAIT;
        loop {
            let held = self.lock_plan(plan, purpose).await;
            let Err(EngineError::LockHeld { .. }) = &held else { return held };
            let at_rest = self.load_plan(plan).await?.stage.state() != State::Processing;
            if !at_rest || Instant::now() >= deadline {
                return held;
            }
            tokio::select! {
                () = tokio::time::sleep(REST_POLL) => {}
                () = self.stopping().cancelled() => {}
            }
        }
    }

    /// Acquires the lock of a project, and waits for another landing to end.
    pub(crate) async fn lock_project(
        &self,
        project: &Name,
        stop: &CancellationToken,
    ) -> Result<ProjectLockGuard, EngineError> {
        let ttl = self.settings().lock_ttl;
        let deadline = Instant::now() + PROJECT_WAIT;
        let holder = self.identity().holder("land a plan");
        let counted = CountedLock::new(self.identity().clone());
        loop {
            let lock = match self.store().project_lease_acquire(project, &holder, ttl).await? {
                Acquired::Held(lease) => {
                    return Ok(ProjectLockGuard::new(
                        self.store().clone(),
                        lease,
                        holder.owner,
                        ttl,
                        counted,
                    ));
                }
                Acquired::Busy(lock) => lock,
            };
            if self.free_if_gone(&lock).await? {
                continue;
            }
            if stop.is_cancelled() || Instant::now() >= deadline {
                return Err(EngineError::LockHeld { lock });
            }
            tokio::select! {
                () = tokio::time::sleep(PROJECT_POLL) => {}
                () = stop.cancelled() => {}
            }
        }
    }

    /// Breaks a lock and records the reason. The former holder can no longer commit.
    pub async fn lock_break(&self, given: &str, reason: &str, by: &str) -> Result<Lock, EngineError> {
        let lock =
            one(self.store().lock_find(&prefix(given, LockId::PREFIX, "lock")?).await?, "lock", given)?;
        let broken = self.store().lock_break(&lock.id, reason, by).await?;
        broken.ok_or_else(|| EngineError::absent("lock", given))
    }
}

impl PlanLockGuard {
    fn new(
        store: Store,
        lease: PlanLease,
        (plan, owner): (PlanId, String),
        ttl: Duration,
        counted: CountedLock,
    ) -> Self {
        let (lease, lost) = (Arc::new(lease), CancellationToken::new());
        let renewal = {
            let (store, lease, lost) = (store.clone(), lease.clone(), lost.clone());
            async move { renew_until_lost(ttl, &lost, || store.plan_lease_renew(&lease, ttl)).await }
        };
        let upkeep = vec![LockTask::start("plan lock", renewal)];
        let (cancel_asked, tally) = (CancellationToken::new(), UsageCounter::default());
        Self { store, lease, owner, plan, lost, cancel_asked, upkeep, counted, tally }
    }

    pub(crate) fn lease(&self) -> &PlanLease {
        &self.lease
    }

    /// Returns the usage counter of the run under this lock.
    pub(crate) fn tally(&self) -> &UsageCounter {
        &self.tally
    }

    /// Acquires the lock of a child under this lock of its parent (S1.4).
    pub(crate) async fn child(
        &self,
        engine: &Engine,
        child: &Plan,
        purpose: &str,
    ) -> Result<PlanLockGuard, EngineError> {
        self.require_child(child)?;
        engine.lock_plan(&child.id, purpose).await
    }

    /// Retries an operation on the store while the store is unavailable or busy and the lock is ours, because
    /// a short outage of the database should not stop an agent. Use only for idempotent work: after a broken
    /// connection we cannot know whether the previous commit took effect.
    pub(crate) async fn retry_while_store_away<T, F>(
        &self,
        stopping: &CancellationToken,
        attempt: impl Fn() -> F,
    ) -> Result<T, EngineError>
    where
        F: Future<Output = Result<T, EngineError>>,
    {
        let mut last_chance = None;
        loop {
            let error = match attempt().await {
                Err(EngineError::Store(error)) if error.is_transient() => error,
                done => return done,
            };
            tracing::warn!(plan = %self.plan, error = %error_chain(&error), "the store is unavailable; trying again");
            // Once this process should stop, it retries only for a short time.
            if stopping.is_cancelled()
                && Instant::now() >= *last_chance.get_or_insert_with(|| Instant::now() + STOPPING_WAIT)
            {
                return Err(error.into());
            }
            tokio::select! {
                () = tokio::time::sleep(STORE_POLL) => {}
                () = self.lost.cancelled() => return Err(error.into()),
            }
        }
    }

    /// Refuses a plan that is not a child of the locked plan.
    pub(crate) fn require_child(&self, child: &Plan) -> Result<(), EngineError> {
        if child.parent.as_ref() == Some(&self.plan) {
            Ok(())
        } else {
            Err(EngineError::absent("subplan", &child.id))
        }
    }

    /// Starts the task that watches for requests to the holder of the plan.
    pub(crate) fn listen(&mut self) {
        let (store, plan, asked) = (self.store.clone(), self.plan.clone(), self.cancel_asked.clone());
        self.upkeep.push(LockTask::start("plan requests", async move {
            let mut watch = store.watch();
            loop {
                match store.request_fetch(&plan).await {
                    Ok(Some(request)) => match request.kind {
                        RequestKind::Cancel | RequestKind::CancelBelow => asked.cancel(),
                    },
                    Ok(None) => {}
                    Err(error) => {
                        tracing::warn!(%plan, error = %error_chain(&error), "could not query for requests")
                    }
                }
                watch.changed(REQUEST_POLL).await;
            }
        }));
    }

    /// Returns the token that is cancelled when the lock is lost. All work under the lock must stop then.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Returns the token that is cancelled when a caller asks to cancel the plan.
    pub(crate) fn cancel_asked(&self) -> &CancellationToken {
        &self.cancel_asked
    }

    /// Releases the lock. A failure is logged; the lock then expires.
    pub(crate) async fn release(self) {
        for upkeep in self.upkeep {
            upkeep.end().await;
        }
        let Some(lease) = Arc::into_inner(self.lease) else {
            tracing::error!(plan = %self.plan, "the lock was still in use when it was released; it expires");
            return;
        };
        if let Err(error) = self.store.plan_lease_release(lease).await {
            tracing::warn!(plan = %self.plan, error = %error_chain(&error), "could not release the lock; it expires");
            self.counted.still_held(self.owner);
        }
    }
}

/// Renews until the store reports that the lock is lost, or until the lock must have expired without an
/// answer.
async fn renew_until_lost<F, R>(ttl: Duration, lost: &CancellationToken, renew: F)
where
    F: Fn() -> R,
    R: Future<Output = Result<Renewed, StoreError>>,
{
    let mut good_until = Instant::now() + ttl;
    loop {
        tokio::time::sleep(ttl / RENEWALS_PER_TTL).await;
        let asked = Instant::now();
        match tokio::time::timeout_at(good_until, renew()).await {
            Ok(Ok(Renewed::Until(_))) => good_until = asked + ttl,
            Ok(Ok(Renewed::Lost)) | Err(_) => break,
            Ok(Err(error)) => tracing::warn!(error = %error_chain(&error), "could not renew a lock"),
        }
        if Instant::now() >= good_until {
            break;
        }
    }
    lost.cancel();
}

impl ProjectLockGuard {
    fn new(store: Store, lease: ProjectLease, owner: String, ttl: Duration, counted: CountedLock) -> Self {
        let (lease, lost) = (Arc::new(lease), CancellationToken::new());
        let renewal = {
            let (store, lease, lost) = (store.clone(), lease.clone(), lost.clone());
            async move { renew_until_lost(ttl, &lost, || store.project_lease_renew(&lease, ttl)).await }
        };
        Self { store, lease, owner, lost, upkeep: LockTask::start("project lock", renewal), counted }
    }

    pub(crate) fn lease(&self) -> &ProjectLease {
        &self.lease
    }

    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub(crate) async fn release(self) {
        self.upkeep.end().await;
        let Some(lease) = Arc::into_inner(self.lease) else {
            tracing::error!("a project's lock was still in use when it was released; it expires");
            return;
        };
        if let Err(error) = self.store.project_lease_release(lease).await {
            tracing::warn!(error = %error_chain(&error), "could not release a project's lock; it expires");
            self.counted.still_held(self.owner);
        }
    }
}
