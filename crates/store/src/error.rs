//! The ways a store can fail, for three readers: a program (`code`), a person (text and `hint`), and a caller that
//! wonders whether to try again (`is_transient`). What the world refuses is not here; see `CommitError`.

use std::error::Error;
use std::sync::Arc;

use drydock_domain::{ChangesetId, Fence, PlanId, Refusal};

/// The cause of an error, kept so that several jobs of one batch can be told the same one.
pub type Cause = Arc<dyn Error + Send + Sync>;

/// Why the store could not do what it was asked.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// There is no such place.
    #[error("the store {place} cannot be made: {reason}")]
    Missing {
        /// Where it should be.
        place: String,
        /// What is missing.
        reason: String,
        /// What a person can do about it.
        remedy: &'static str,
    },
    /// It cannot be written.
    #[error("the store {place} cannot be written")]
    ReadOnly {
        /// Where it is.
        place: String,
        /// What a person can do about it.
        remedy: &'static str,
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// Another program holds it.
    #[error("the store {place} was busy for too long while trying to {attempt}{}", after(holder.as_deref()))]
    Busy {
        /// Where it is.
        place: String,
        /// What was attempted.
        attempt: &'static str,
        /// Which process holds it and what to do about it, where that can be seen.
        holder: Option<String>,
    },
    /// There is no room left.
    #[error("the disk of the store {place} is full")]
    Full {
        /// Where it is.
        place: String,
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// The file is damaged.
    #[error("the store {place} is damaged")]
    Corrupt {
        /// Where it is.
        place: String,
        /// What the database said.
        #[source]
        source: Cause,
    },
    /// A newer program wrote it.
    #[error("the store {place} has schema {found}, and this program knows schemas up to {known}")]
    Newer {
        /// Where it is.
        place: String,
        /// What it has.
        found: i64,
        /// What this program knows.
        known: i64,
    },
    /// It belongs to another program.
    #[error("{place} is not a Drydock store: {reason}")]
    NotDrydock {
        /// Where it is.
        place: String,
        /// How that was seen.
        reason: String,
    },
    /// The database server cannot be reached.
    #[error("the database at {place} cannot be reached: {reason}")]
    Unavailable {
        /// Host and port, never a password.
        place: String,
        /// What happened.
        reason: String,
    },
    /// The database server has no connection left.
    #[error("the database at {place} has no connection left: {reason}")]
    Crowded {
        /// Host and port.
        place: String,
        /// The server's message.
        reason: String,
    },
    /// Something between us and the server alters the connection.
    #[error("the database at {place} is behind a pooler that cannot be used like this: {reason}")]
    Pooled {
        /// Host and port.
        place: String,
        /// How that was seen.
        reason: String,
    },
    /// A row cannot be what it says.
    #[error("the row {key} of {table} is damaged: {reason}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The row.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The database cannot do this.
    #[error("cannot {attempt} on this database: {reason}")]
    Unsupported {
        /// What was attempted.
        attempt: &'static str,
        /// Why not, and what to do instead.
        reason: &'static str,
    },
    /// A test asked for this failure.
    #[error("the commit was made to fail here by a test")]
    Injected,
    /// Anything else that the database said.
    #[error("could not {attempt}")]
    Database {
        /// What was attempted.
        attempt: &'static str,
        /// What the database said.
        #[source]
        source: Cause,
    },
}

fn after(holder: Option<&str>) -> String {
    holder.map_or(String::new(), |holder| format!(": {holder}"))
}

impl StoreError {
    /// Returns a name that never changes its meaning.
    pub fn code(&self) -> &'static str {
        match self {
            StoreError::Missing { .. } => "store_missing",
            StoreError::ReadOnly { .. } => "store_read_only",
            StoreError::Busy { .. } => "store_busy",
            StoreError::Full { .. } => "store_full",
            StoreError::Corrupt { .. } => "store_corrupt",
            StoreError::Newer { .. } => "store_newer",
            StoreError::NotDrydock { .. } => "store_foreign",
            StoreError::Unavailable { .. } | StoreError::Crowded { .. } => "store_unavailable",
            StoreError::Pooled { .. } => "store_unsupported",
            StoreError::Damaged { .. } => "store_damaged",
            StoreError::Unsupported { .. } => "store_unsupported",
            StoreError::Injected => "store_injected",
            StoreError::Database { .. } => "store_failed",
        }
    }

    /// Returns what a person can do next.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Missing { remedy, .. } | StoreError::ReadOnly { remedy, .. } => remedy,
            StoreError::Busy { .. } => "try again; if it lasts, see which process holds the store",
            StoreError::Full { .. } => "free some space, then try again; nothing was half written",
            StoreError::Corrupt { .. } => "run `drydock store check`, and restore the latest backup",
            StoreError::Newer { .. } => "use the newer drydock that wrote it",
            StoreError::NotDrydock { .. } => "name another place with --store",
            StoreError::Unavailable { .. } => "check that the server runs and that the address is right",
            StoreError::Crowded { .. } => {
                "raise max_connections of the server, or lower `connections` under [store] in every process's configuration"
            }
            StoreError::Pooled { .. } => {
                "name the server itself; or let the pooler use session mode, and give the database user the limits: \
                 ALTER ROLE user SET lock_timeout = '10s'; ALTER ROLE user SET idle_in_transaction_session_timeout = '10s'"
            }
            StoreError::Damaged { .. } => "run `drydock store check`, and restore the latest backup",
            StoreError::Unsupported { .. } => "see the reason above",
            StoreError::Injected => "unset the fault that the test set",
            StoreError::Database { .. } => "look at the cause above, and run `drydock store check`",
        }
    }

    /// Says whether the same call may succeed when it is simply made again.
    pub fn is_transient(&self) -> bool {
        match self {
            StoreError::Busy { .. } | StoreError::Unavailable { .. } | StoreError::Crowded { .. } => true,
            StoreError::Missing { .. }
            | StoreError::ReadOnly { .. }
            | StoreError::Full { .. }
            | StoreError::Corrupt { .. }
            | StoreError::Newer { .. }
            | StoreError::NotDrydock { .. }
            | StoreError::Damaged { .. }
            | StoreError::Unsupported { .. }
            | StoreError::Pooled { .. }
            | StoreError::Injected
            | StoreError::Database { .. } => false,
        }
    }

    pub(crate) fn database(attempt: &'static str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        StoreError::Database { attempt, source: Arc::from(source.into()) }
    }

    pub(crate) fn damaged(table: &'static str, key: impl Into<String>, reason: impl Into<String>) -> Self {
        StoreError::Damaged { table, key: key.into(), reason: reason.into() }
    }
}

/// Why a transition was not committed; the plan is as it was.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The plan does not take the command.
    #[error(transparent)]
    Refused(Refusal),
    /// The lease expired, was overtaken or broken.
    #[error("the lease on {plan} was lost (fence {} is no longer current)", fence.0)]
    LeaseLost {
        /// The plan.
        plan: PlanId,
        /// The fence of the lost lease.
        fence: Fence,
    },
    /// The transition changes the project, and its lock is not held.
    #[error("the transition needs the lock of the plan's project")]
    ProjectLockMissing,
    /// There is no such plan.
    #[error("there is no plan {0}")]
    PlanMissing(PlanId),
    /// There is such a plan already.
    #[error("there is a plan {0} already")]
    PlanExists(PlanId),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why changes were not recorded; none of them was.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RecordError {
    /// The changeset is sealed.
    #[error("changeset {id} is not open, so nothing can be recorded in it")]
    NotOpen {
        /// The changeset.
        id: ChangesetId,
    },
    /// The lease under which it was opened is lost.
    #[error("the lease under which changeset {id} was opened was lost")]
    LeaseLost {
        /// The changeset.
        id: ChangesetId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
