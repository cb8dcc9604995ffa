//! Leases: the right to write a plan, or to change a project. They are minted here and nowhere else, are not
//! `Clone`, and every commit compares them with the lock row inside its transaction (S1.3, S1.8).

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use drydock_domain::{
    Event, Fence, Holder, Lock, LockId, LockScope, Name, PlanId, ProcessIdentity, Timestamp,
};

use crate::lock::{LOCK_COLUMNS, lock_from};
use crate::tx::{BoxFuture, Ending, Tx, Verdict};
use crate::value::Statement;
use crate::{Store, StoreError};

/// How often an acquisition looks again when the holder it met was gone by the time it was named.
const LOOKS_MAX: u32 = 8;

/// What an acquisition came to.
#[must_use = "a lease that is dropped stays held until it expires"]
#[derive(Debug)]
pub enum Acquired<L> {
    /// It is held now.
    Held(L),
    /// Somebody else holds it.
    Busy(Box<Lock>),
}

/// What a renewal came to.
#[must_use = "a lost lease must be noticed"]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewed {
    /// It is held until then.
    Until(Timestamp),
    /// It expired, was overtaken or broken, and cannot come back.
    Lost,
}

/// Proof that a plan's lock was acquired. Only a store makes one.
#[derive(Debug)]
pub struct PlanLease {
    plan: PlanId,
    grip: Grip,
    /// How many batches of events were made under it.
    batches: AtomicU64,
}

/// Events about a plan that does not change. Made by its lease, because fence and number name it: a batch that was
/// committed before its answer was lost is recognised when it is committed again.
#[derive(Debug, Clone)]
pub struct EventBatch {
    /// Unique among the batches of the plan: no two leases have the same fence.
    pub(crate) key: String,
    pub(crate) events: Vec<Event>,
}

/// Proof that a project's lock was acquired. Only a store makes one.
#[derive(Debug)]
pub struct ProjectLease {
    project: Name,
    grip: Grip,
}

/// What makes a lease the current one: owner and fence; and where its lock row is.
#[derive(Debug, Clone)]
pub(crate) struct Grip {
    pub(crate) scope: LockScope,
    pub(crate) key: String,
    pub(crate) owner: String,
    pub(crate) fence: Fence,
}

/// The locks under which a transition is committed.
#[derive(Debug, Clone, Copy)]
pub enum Warrant<'a> {
    /// The plan's.
    Plan(&'a PlanLease),
    /// The plan's and its project's, as landing needs.
    Landing {
        /// The plan's.
        plan: &'a PlanLease,
        /// The project's.
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

    /// Returns events about the plan as a batch, which is appended once even if it is committed several times.
    pub fn batch(&self, events: Vec<Event>) -> EventBatch {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        EventBatch { key: format!("{}.{number}", self.grip.fence.0), events }
    }

    pub(crate) fn grip(&self) -> &Grip {
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

    pub(crate) fn grip(&self) -> &Grip {
        &self.grip
    }
}

impl Store {
    /// Acquires a plan's lock when it is free, expired, or held by the same owner; the fence grows.
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

    /// Lets go of a plan's lock; nothing happens when the lease was lost before.
    pub fn plan_lease_release(&self, lease: PlanLease) -> BoxFuture<'_, Result<(), StoreError>> {
        self.release(lease.grip)
    }

    /// Lets go of a project's lock; nothing happens when the lease was lost before.
    pub fn project_lease_release(&self, lease: ProjectLease) -> BoxFuture<'_, Result<(), StoreError>> {
        self.release(lease.grip)
    }

    /// Lets go of every lock whose owner begins like this, and returns how many there were (S1.5).
    pub fn leases_release_all(&self, owner_prefix: &str) -> BoxFuture<'_, Result<usize, StoreError>> {
        let prefix = owner_prefix.to_owned();
        Box::pin(self.write_for_lock(move |tx| Box::pin(release_all(tx, prefix))))
    }

    pub(crate) fn wanted(&self, scope: LockScope, key: &str, holder: &Holder, ttl: Duration) -> Wanted {
        let id = lock_id(scope, key, &holder.owner, self.now());
        Wanted { scope, key: key.to_owned(), id, holder: holder.clone(), ttl: micros(ttl) }
    }

    fn renew(&self, grip: Grip, ttl: Duration) -> BoxFuture<'_, Result<Renewed, StoreError>> {
        let ttl = micros(ttl);
        Box::pin(self.write_for_lock(move |tx| Box::pin(renew(tx, grip, ttl))))
    }

    fn release(&self, grip: Grip) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.write_for_lock(move |tx| Box::pin(release(tx, grip))))
    }
}

/// Returns a process as the store keeps it: two texts are equal when the processes are.
pub(crate) fn identity_text(process: &ProcessIdentity) -> String {
    serde_json::to_string(process).expect("an identity is text and numbers")
}

/// Returns a span as the store keeps it.
pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX / 4)
}

/// Names one acquisition. No chance is needed: owners are unique, and one owner acquires at different times.
fn lock_id(scope: LockScope, key: &str, owner: &str, at: Timestamp) -> LockId {
    let half = |salt: u8| {
        let mut hasher = DefaultHasher::new();
        (salt, scope.name(), key, owner, at.as_micros()).hash(&mut hasher);
        u128::from(hasher.finish())
    };
    LockId::from_random(half(0) << 64 | half(1))
}

/// A lock that is asked for.
pub(crate) struct Wanted {
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

async fn acquire(tx: &mut Tx<'_>, wanted: Wanted) -> Result<Verdict<Acquired<Grip>>, StoreError> {
    tx.quiet();
    Ok(match seize(tx, &wanted, Ending::Commit).await? {
        held @ Acquired::Held(_) => Verdict::Keep(held),
        busy @ Acquired::Busy(_) => Verdict::Undo(busy),
    })
}

/// Takes a lock, as the last thing of a transaction or as the first.
pub(crate) async fn seize(
    tx: &mut Tx<'_>,
    wanted: &Wanted,
    ending: Ending,
) -> Result<Acquired<Grip>, StoreError> {
    for _ in 0..LOOKS_MAX {
        let Wanted { scope, key, id, holder, ttl } = wanted;
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
            return Ok(Acquired::Held(Grip { scope, key, owner, fence }));
        }
        let sql =
            format!("SELECT {LOCK_COLUMNS} FROM locks WHERE scope = $1 AND key = $2 AND owner IS NOT NULL");
        let params = vec![scope.name().into(), key.as_str().into()];
        let found = tx.one(Statement::composed(sql, params), ending).await?;
        if let [row] = found.as_slice() {
            return Ok(Acquired::Busy(Box::new(lock_from(row)?)));
        }
        // On PostgreSQL it was let go of in between; then it may be ours after all.
    }
    Err(StoreError::Busy {
        place: format!("{} {}", wanted.scope.name(), wanted.key),
        attempt: "acquire its lock",
        holder: None,
    })
}

async fn renew(tx: &mut Tx<'_>, grip: Grip, ttl: i64) -> Result<Verdict<Renewed>, StoreError> {
    tx.quiet();
    let sql = "UPDATE locks SET expires_at = drydock_now() + $5
        WHERE scope = $1 AND key = $2 AND owner = $3 AND fence = $4 AND expires_at > drydock_now()
        RETURNING expires_at";
    let params =
        [grip.scope.name().into(), grip.key.into(), grip.owner.into(), grip.fence.0.into(), ttl.into()];
    match tx.last(Statement::new(sql, params)).await?.as_slice() {
        [row] => Ok(Verdict::Keep(Renewed::Until(row.time(0)?))),
        _ => Ok(Verdict::Undo(Renewed::Lost)),
    }
}

async fn release(tx: &mut Tx<'_>, grip: Grip) -> Result<Verdict<()>, StoreError> {
    tx.last(releasing(&grip)).await?;
    Ok(Verdict::Keep(()))
}

/// Returns the statement that lets go of a lock, if it is held by this grip.
pub(crate) fn releasing(grip: &Grip) -> Statement {
    let sql = "UPDATE locks SET owner = NULL, expires_at = 0
        WHERE scope = $1 AND key = $2 AND owner = $3 AND fence = $4";
    let Grip { scope, key, owner, fence } = grip;
    Statement::new(sql, [scope.name().into(), key.as_str().into(), owner.as_str().into(), fence.0.into()])
}

async fn release_all(tx: &mut Tx<'_>, prefix: String) -> Result<Verdict<usize>, StoreError> {
    let sql = "UPDATE locks SET owner = NULL, expires_at = 0
        WHERE owner IS NOT NULL AND substr(owner, 1, CAST($2 AS INTEGER)) = $1 RETURNING fence";
    let length = i64::try_from(prefix.chars().count()).unwrap_or(i64::MAX);
    let freed = tx.last(Statement::new(sql, [prefix.into(), length.into()])).await?;
    Ok(Verdict::Keep(freed.len()))
}
