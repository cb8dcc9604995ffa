//! Held locks. A short transition takes a lock, commits and lets go; a phase keeps it alive from a task of its own
//! and hears at once when it is lost or when somebody asks its holder to cancel (S1.1, S1.3).

use std::sync::Arc;
use std::time::Duration;

use drydock_domain::{Lock, Name, PlanId};
use drydock_store::{Acquired, PlanLease, ProjectLease, Renewed, RequestKind, Store};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::identity::Identity;
use crate::task;

/// How often a lock is renewed within its lifetime.
const RENEWALS_PER_TTL: u32 = 4;
/// How often the holder of a phase looks for requests at least.
const REQUEST_POLL: Duration = Duration::from_secs(1);
/// How long a landing waits for another landing in the same project.
const PROJECT_WAIT: Duration = Duration::from_secs(120);
const PROJECT_POLL: Duration = Duration::from_millis(100);

/// A held plan lock.
pub(crate) struct Hold {
    store: Store,
    identity: Arc<Identity>,
    lease: Arc<PlanLease>,
    plan: PlanId,
    lost: CancellationToken,
    keeper: Option<Keeper>,
}

struct Keeper {
    task: JoinHandle<()>,
    done: CancellationToken,
    cancel_asked: CancellationToken,
}

/// A held project lock, kept alive until it is released.
pub(crate) struct ProjectHold {
    store: Store,
    identity: Arc<Identity>,
    lease: Arc<ProjectLease>,
    lost: CancellationToken,
    done: CancellationToken,
    task: JoinHandle<()>,
}

impl Engine {
    /// Takes the lock of a plan, or says who has it (S1.6).
    pub(crate) async fn hold(&self, plan: &PlanId, purpose: &str) -> Result<Hold, EngineError> {
        let holder = self.identity().holder(purpose);
        match self.store().plan_lease_acquire(plan, &holder, self.settings().lock_ttl).await? {
            Acquired::Held(lease) => {
                self.identity().took();
                Ok(Hold {
                    store: self.store().clone(),
                    identity: self.identity().clone(),
                    lease: Arc::new(lease),
                    plan: plan.clone(),
                    lost: CancellationToken::new(),
                    keeper: None,
                })
            }
            Acquired::Busy(lock) => Err(EngineError::LockHeld { lock }),
        }
    }

    /// Takes the lock of a project, waiting for another landing to end.
    pub(crate) async fn hold_project(
        &self,
        project: &Name,
        stop: &CancellationToken,
    ) -> Result<ProjectHold, EngineError> {
        let ttl = self.settings().lock_ttl;
        let deadline = tokio::time::Instant::now() + PROJECT_WAIT;
        let holder = self.identity().holder("land a plan");
        loop {
            let lock: Box<Lock> = match self.store().project_lease_acquire(project, &holder, ttl).await? {
                Acquired::Held(lease) => return Ok(ProjectHold::keep(self, lease)),
                Acquired::Busy(lock) => lock,
            };
            if stop.is_cancelled() || tokio::time::Instant::now() >= deadline {
                return Err(EngineError::LockHeld { lock });
            }
            tokio::select! {
                () = tokio::time::sleep(PROJECT_POLL) => {}
                () = stop.cancelled() => {}
            }
        }
    }
}

impl Hold {
    pub(crate) fn lease(&self) -> &PlanLease {
        &self.lease
    }

    /// Keeps the lock alive until it is released, and listens for requests to its holder.
    pub(crate) fn keep_alive(&mut self, ttl: Duration) {
        let (done, cancel_asked) = (CancellationToken::new(), CancellationToken::new());
        let upkeep = Upkeep {
            store: self.store.clone(),
            lease: self.lease.clone(),
            plan: self.plan.clone(),
            lost: self.lost.clone(),
            cancel_asked: cancel_asked.clone(),
        };
        let watched = done.clone();
        let task = task::start("plan lock", async move {
            tokio::select! {
                () = upkeep.run(ttl) => {}
                () = watched.cancelled() => {}
            }
        });
        self.keeper = Some(Keeper { task, done, cancel_asked });
    }

    /// Is cancelled when the lock is lost: whoever works under it must stop.
    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    /// Resolves when somebody asked for the plan to be cancelled.
    pub(crate) async fn cancel_asked(&self) {
        match &self.keeper {
            Some(keeper) => keeper.cancel_asked.cancelled().await,
            None => std::future::pending().await,
        }
    }

    /// Lets go. A lock that could not be released is logged; it runs out by itself.
    pub(crate) async fn release(self) {
        if let Some(keeper) = self.keeper {
            keeper.done.cancel();
            log_panic(keeper.task.await, "plan lock");
        }
        let Some(lease) = Arc::into_inner(self.lease) else {
            tracing::error!(plan = %self.plan, "the lock was still in use when it was released; it runs out by itself");
            return;
        };
        match self.store.plan_lease_release(lease).await {
            Ok(()) => self.identity.let_go(),
            Err(error) => {
                tracing::warn!(plan = %self.plan, %error, "could not release the lock; it runs out by itself")
            }
        }
    }
}

struct Upkeep {
    store: Store,
    lease: Arc<PlanLease>,
    plan: PlanId,
    lost: CancellationToken,
    cancel_asked: CancellationToken,
}

impl Upkeep {
    async fn run(self, ttl: Duration) {
        let renew = renew_until_lost(ttl, &self.lost, || self.store.plan_lease_renew(&self.lease, ttl));
        let listen = async {
            let mut watch = self.store.watch();
            loop {
                match self.store.request_fetch(&self.plan).await {
                    Ok(Some(request)) if request.kind == RequestKind::Cancel => self.cancel_asked.cancel(),
                    Ok(_) => {}
                    Err(error) => tracing::warn!(plan = %self.plan, %error, "could not look for requests"),
                }
                watch.changed(REQUEST_POLL).await;
            }
        };
        tokio::join!(renew, async {
            tokio::select! {
                () = listen => {}
                () = self.lost.cancelled() => {}
            }
        });
    }
}

/// Renews until the store says that the lock is lost, or until it must have run out without an answer.
async fn renew_until_lost<F, R>(ttl: Duration, lost: &CancellationToken, renew: F)
where
    F: Fn() -> R,
    R: Future<Output = Result<Renewed, drydock_store::StoreError>>,
{
    let mut good_until = tokio::time::Instant::now() + ttl;
    loop {
        tokio::time::sleep(ttl / RENEWALS_PER_TTL).await;
        let asked = tokio::time::Instant::now();
        match renew().await {
            Ok(Renewed::Until(_)) => good_until = asked + ttl,
            Ok(Renewed::Lost) => {
                lost.cancel();
                return;
            }
            Err(error) => tracing::warn!(%error, "could not renew a lock"),
        }
        if tokio::time::Instant::now() >= good_until {
            lost.cancel();
            return;
        }
    }
}

impl ProjectHold {
    fn keep(engine: &Engine, lease: ProjectLease) -> Self {
        let (store, identity, ttl) =
            (engine.store().clone(), engine.identity().clone(), engine.settings().lock_ttl);
        identity.took();
        let (lost, done) = (CancellationToken::new(), CancellationToken::new());
        let lease = Arc::new(lease);
        let task = {
            let (store, lease, lost, done) = (store.clone(), lease.clone(), lost.clone(), done.clone());
            task::start("project lock", async move {
                tokio::select! {
                    () = renew_until_lost(ttl, &lost, || store.project_lease_renew(&lease, ttl)) => {}
                    () = done.cancelled() => {}
                }
            })
        };
        Self { store, identity, lease, lost, done, task }
    }

    pub(crate) fn lease(&self) -> &ProjectLease {
        &self.lease
    }

    pub(crate) fn lost(&self) -> &CancellationToken {
        &self.lost
    }

    pub(crate) async fn release(self) {
        self.done.cancel();
        log_panic(self.task.await, "project lock");
        let Some(lease) = Arc::into_inner(self.lease) else {
            tracing::error!("a project's lock was still in use when it was released; it runs out by itself");
            return;
        };
        match self.store.project_lease_release(lease).await {
            Ok(()) => self.identity.let_go(),
            Err(error) => tracing::warn!(%error, "could not release a project's lock; it runs out by itself"),
        }
    }
}

fn log_panic(joined: Result<(), tokio::task::JoinError>, task: &'static str) {
    if let Err(error) = joined {
        tracing::error!(task, %error, "a task ended badly");
    }
}
