//! Leases: the right to write a plan or to change a project. They are created only here and are not `Clone`.
//! Every commit compares its lease with the lock row inside the transaction (S1.3, S1.8).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drydock_domain::{
    Event, Fence, Holder, Lock, LockId, LockScope, Name, PlanId, ProcessIdentity, Timestamp,
};

use crate::lock::{LOCK_COLUMNS, lock_from};
use crate::tx::{BatchEnd, BoxFuture, Tx, TxOutcome};
use crate::value::Statement;
use crate::{Store, StoreError};

/// Maximum number of attempts to acquire a lock whose holder was gone when its row was read.
const LOOKS_MAX: u32 = 8;

/// The result of an acquisition.
#[must_use = "a lease that is dropped stays held until it expires"]
#[derive(Debug)]
pub enum Acquired<L> {
    /// The lease was acquired.
    Held(L),
    /// Another holder has the lock.
    Busy(Box<Lock>),
}

/// The result of a renewal.
#[must_use = "a lost lease must be noticed"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// The lease is valid until this time.
    Until(Timestamp),
    /// The lease expired, was broken, or was acquired by another holder. It cannot be recovered.
    Lost,
}

/// Proof that a plan's lock was acquired. Only a store creates one.
#[derive(Debug)]
pub struct PlanLease {
    plan: PlanId,
    grip: LeaseKey,
    /// Number of event batches created under this lease.
    batches: AtomicU64,
}

/// Events about a plan that does not change. A batch is created by the plan's lease, because the fence and a
/// number identify it. If a batch was committed but the response was lost, the key identifies the repeated
/// commit.
#[derive(Debug, Clone)]
pub struct EventBatch {
    /// Unique among the batches of the plan, because no two leases have the same fence.
    pub(crate) key: String,
    pub(crate) events: Vec<Event>,
}

/// Proof that a project's lock was acquired. Only a store creates one.
#[derive(Debug)]
pub struct ProjectLease {
    project: Name,
    grip: LeaseKey,
}

/// The data that identifies a lease in its lock row: scope, key, owner and fence.
#[derive(Debug, Clone)]
pub(crate) struct LeaseKey {
    pub(crate) scope: LockScope,
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) fence: Fence,
}

/// The leases under which a transition is committed.
#[derive(Debug, Clone, Copy)]
pub enum Leases<'a> {
    /// The plan's lease.
    Plan(&'a PlanLease),
    /// The leases of the plan and its project, as needed for landing.
    Landing {
        /// The plan's lease.
        plan: &'a PlanLease,
        /// The project's lease.
        project: &'a ProjectLease,
    },
}

impl PlanLease {
    /// Returns the plan.
    pub fn plan(&self) -> &PlanId {
        &self.plan
    }

    /// Returns the fence of this acquisition.
    pub fn fence(&self) -> Fence {
        self.grip.fence
    }

    /// Returns events about the plan as a batch, which is appended once even if it is committed several
    /// times.
    pub fn batch(&self, events: Vec<Event>) -> EventBatch {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        EventBatch { key: format!("{}.{number}", self.grip.fence.0), events }
    }

    pub(crate) fn grip(&self) -> &LeaseKey {
        &self.grip
    }
}

impl ProjectLease {
    /// Returns the project.
    pub fn project(&self) -> &Name {
        &self.project
    }

    /// Returns the fence of this acquisition.
    pub fn fence(&self) -> Fence {
        self.grip.fence
    }

    pub(crate) fn grip(&self) -> &LeaseKey {
        &self.grip
    }
}

impl Store {
    /// Acquires a plan's lock if it is free, expired, or held by the same owner. Increments the fence.
    pub fn plan_lease_acquire(
        &self,
        plan: &PlanId,
        holder: &Holder,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Acquired<PlanLease>, StoreError>> {
        let (plan, wanted) = (plan.clone(), self.wanted(LockScope::Plan, plan.as_str(), holder, ttl));
        Box::pin(async move {
            let acquired = self.write(move |tx| Box::pin(acquire(tx, wanted))).await?;
            Ok(match acquired {
                Acquired::Held(grip) => Acquired::Held(PlanLease { plan, grip, batches: AtomicU64::new(0) }),
                Acquired::Busy(lock) => Acquired::Busy(lock),
            })
        })
    }

    /// Acquires a project's lock; see [`Store::plan_lease_acquire`].
    pub fn project_lease_acquire(
        &self,
        project: &Name,
        holder: &Holder,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Acquired<ProjectLease>, StoreError>> {
        let wanted = self.wanted(LockScope::Project, project.as_str(), holder, ttl);
        let project = project.clone();
        Box::pin(async move {
            let acquired = self.write(move |tx| Box::pin(acquire(tx, wanted))).await?;
            Ok(match acquired {
                Acquired::Held(grip) => Acquired::Held(ProjectLease { project, grip }),
                Acquired::Busy(lock) => Acquired::Busy(lock),
            })
        })
    }

    /// Renews a plan's lease, unless it is lost.
    pub fn plan_lease_renew(
        &self,
        lease: &PlanLease,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        self.renew(lease.grip.clone(), ttl)
    }

    /// Renews a project's lease, unless it is lost.
    pub fn project_lease_renew(
        &self,
        lease: &ProjectLease,
        ttl: Duration,
    ) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        self.renew(lease.grip.clone(), ttl)
    }

    /// Releases a plan's lock. Does nothing if the lease was lost.
    pub fn plan_lease_release(&self, lease: PlanLease) -> BoxFuture<'_, Result<(), StoreError>> {
        self.release(lease.grip)
    }

    /// Releases a project's lock. Does nothing if the lease was lost.
    pub fn project_lease_release(&self, lease: ProjectLease) -> BoxFuture<'_, Result<(), StoreError>> {
        self.release(lease.grip)
    }

    /// Releases every lock whose owner starts with this prefix, and returns their number (S1.5).
    pub fn leases_release_all(&self, owner_prefix: &str) -> BoxFuture<'_, Result<usize, StoreError>> {
        let prefix = owner_prefix.to_owned();
        Box::pin(self.write_for_lock(move |tx| Box::pin(release_all(tx, prefix))))
    }

    pub(crate) fn wanted(&self, scope: LockScope, key: &str, holder: &Holder, ttl: Duration) -> LockRequest {
        let id = lock_id(scope, key, &holder.owner, self.now());
        LockRequest { scope, key: key.to_owned(), id, holder: holder.clone(), ttl: micros(ttl) }
    }

    fn renew(&self, grip: LeaseKey, ttl: Duration) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        let ttl = micros(ttl);
        Box::pin(self.write_for_lock(move |tx| Box::pin(renew(tx, grip, ttl))))
    }

    fn release(&self, grip: LeaseKey) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write_for_lock(move |tx| Box::pin(release(tx, grip))))
    }
}

/// Returns the stored form of a process identity: equal identities have equal texts.
pub(crate) fn identity_text(process: &ProcessIdentity) -> String {
    serde_json::to_string(process).expect("an identity is text and numbers")
}

/// Returns a duration in microseconds, as stored.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

/// Returns the id of one acquisition. It needs no random source: owners are unique, and one owner acquires at
/// different times.
fn lock_id(scope: LockScope, key: &str, owner: &str, at: Timestamp) -> LockId {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, scope.name(), key, owner, at.as_micros()).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    LockId::from_random(half(0) << 64 | half(1))
}

/// A lock to acquire.
pub(crate) struct LockRequest {
    scope: LockScope,
    key: String,
    id: LockId,
    holder: Holder,
    ttl: i64,
}

const ACQUIRE: &str = "
    INSERT INTO locks (scope, key, id, owner, host, pid, purpose, fence, acquired_at, expires_at, process)
    VALUES ($1, $2, $3, $4, $5, $6, $7, 1, drydock_now(), drydock_now() + $8, $9)
    ON CONFLICT (scope, key) DO UPDATE SET id = excluded.id, owner = excluded.owner, host = excluded.host,
        pid = excluded.pid, purpose = excluded.purpose, process = excluded.process, fence = locks.fence + 1,
        acquired_at = drydock_now(), expires_at = drydock_now() + $8
    WHERE locks.owner IS NULL OR locks.owner = excluded.owner OR locks.expires_at <= drydock_now()
    RETURNING fence";

async fn acquire(tx: &mut Tx<'_>, wanted: LockRequest) -> Result<TxOutcome<Acquired<LeaseKey>>, StoreError> {
    tx.quiet();
    Ok(match acquire_in_tx(tx, &wanted, BatchEnd::Commit).await? {
        held @ Acquired::Held(_) => TxOutcome::Keep(held),
        busy @ Acquired::Busy(_) => TxOutcome::Undo(busy),
    })
}

/// Acquires a lock in a transaction. `ending` states whether more statements follow.
pub(crate) async fn acquire_in_tx(
    tx: &mut Tx<'_>,
    wanted: &LockRequest,
    ending: BatchEnd,
) -> Result<Acquired<LeaseKey>, StoreError> {
    for _ in 0..LOOKS_MAX {
        let LockRequest { scope, key, id, holder, ttl } = wanted;
        let params = [
            scope.name().into(),
            key.as_str().into(),
            id.as_str().into(),
            holder.owner.as_str().into(),
            holder.process.host.as_str().into(),
            i64::from(holder.process.pid).into(),
            holder.purpose.as_str().into(),
            (*ttl).into(),
            identity_text(&holder.process).into(),
        ];
        if let [row] = tx.one(Statement::new(ACQUIRE, params), ending).await?.as_slice() {
            let fence = Fence(row.int(0)?);
            let (scope, key, owner) = (*scope, key.clone(), holder.owner.clone());
            return Ok(Acquired::Held(LeaseKey { scope, key, owner, fence }));
        }
        let sql =
            format!("SELECT {LOCK_COLUMNS} FROM locks WHERE scope = $1 AND key = $2 AND owner IS NOT NULL");
        let params = vec![scope.name().into(), key.as_str().into()];
        let found = tx.one(Statement::composed(sql, params), ending).await?;
        if let [row] = found.as_slice() {
            return Ok(Acquired::Busy(Box::new(lock_from(row)?)));
        }
        // On PostgreSQL the lock was released in between; the next attempt may acquire it.
    }
    Err(StoreError::Busy {
        place: format!("{} {}", wanted.scope.name(), wanted.key),
        attempt: "acquire its lock",
        holder: None,
    })
}

async fn renew(tx: &mut Tx<'_>, grip: LeaseKey, ttl: i64) -> Result<TxOutcome<Renewed>, StoreError> {
    tx.quiet();
    let sql = "UPDATE locks SET expires_at = drydock_now() + $5
        WHERE scope = $1 AND key = $2 AND owner = $3 AND fence = $4 AND expires_at > drydock_now()
        RETURNING expires_at";
    let params =
        [grip.scope.name().into(), grip.key.into(), grip.owner.into(), grip.fence.0.into(), ttl.into()];
    match tx.last(Statement::new(sql, params)).await?.as_slice() {
        [row] => Ok(TxOutcome::Keep(Renewed::Until(row.time(0)?))),
        _ => Ok(TxOutcome::Undo(Renewed::Lost)),
    }
}

async fn release(tx: &mut Tx<'_>, grip: LeaseKey) -> Result<TxOutcome<()>, StoreError> {
    tx.last(releasing(&grip)).await?;
    Ok(TxOutcome::Keep(()))
}

/// Returns the statement that releases a lock, if this lease still holds it.
pub(crate) fn releasing(grip: &LeaseKey) -> Statement {
    let sql = "UPDATE locks SET owner = NULL, expires_at = 0
        WHERE scope = $1 AND key = $2 AND owner = $3 AND fence = $4";
    let LeaseKey { scope, key, owner, fence } = grip;
    Statement::new(sql, [scope.name().into(), key.as_str().into(), owner.as_str().into(), fence.0.into()])
}

async fn release_all(tx: &mut Tx<'_>, prefix: String) -> Result<TxOutcome<usize>, StoreError> {
    let sql = "UPDATE locks SET owner = NULL, expires_at = 0
        WHERE owner IS NOT NULL AND substr(owner, 1, CAST($2 AS INTEGER)) = $1 RETURNING fence";
    let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
    let freed = tx.last(Statement::new(sql, [prefix.into(), length.into()])).await?;
    Ok(TxOutcome::Keep(freed.len()))
}
