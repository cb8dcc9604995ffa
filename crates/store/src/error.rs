//! Errors of a store, for three readers: a program (`code`), a person (text and `hint`), and a caller that
//! needs to know whether a retry can help (`is_transient`). Refusals are not errors; see `CommitError`.

use std::error::Error;
use std::sync::Arc;

use drydock_domain::{ChangesetId, Fence, PlanId, Refusal};

/// The cause of an error. Shared, because all jobs of a failed batch get the same cause.
pub type SharedError = Arc<dyn Error + Send + Sync>;

/// Why a store operation failed.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StoreError {
    /// The store does not exist and cannot be created.
    #[error("the store {place} cannot be created: {reason}")]
    Missing {
        /// The expected location.
        place: String,
        /// The missing part.
        reason: String,
        /// Advice for the user.
        remedy: &'static str,
    },
    /// The store cannot be written.
    #[error("the store {place} cannot be written")]
    ReadOnly {
        /// The location.
        place: String,
        /// Advice for the user.
        remedy: &'static str,
        /// The error of the database.
        #[source]
        source: SharedError,
    },
    /// Another process held the store for too long.
    #[error("the store {place} was busy for too long while trying to {attempt}{}", after(holder.as_deref()))]
    Busy {
        /// The location.
        place: String,
        /// The attempted operation.
        attempt: &'static str,
        /// The process that holds it and advice, if it can be determined.
        holder: Option<String>,
    },
    /// The disk is full.
    #[error("the disk of the store {place} is full")]
    Full {
        /// The location.
        place: String,
        /// The error of the database.
        #[source]
        source: SharedError,
    },
    /// The database file is corrupt.
    #[error("the store {place} is damaged")]
    Corrupt {
        /// The location.
        place: String,
        /// The error of the database.
        #[source]
        source: SharedError,
    },
    /// A newer program version wrote the store.
    #[error("the store {place} has schema {found}, but this program supports schemas up to {known}")]
    Newer {
        /// The location.
        place: String,
        /// The schema version of the store.
        found: i64,
        /// The newest schema version that this program supports.
        known: i64,
    },
    /// The database belongs to another program.
    #[error("{place} is not a Drydock store: {reason}")]
    NotDrydock {
        /// The location.
        place: String,
        /// How this was detected.
        reason: String,
    },
    /// The database server cannot be reached.
    #[error("the database at {place} cannot be reached: {reason}")]
    Unavailable {
        /// Host and port, never a password.
        place: String,
        /// The cause.
        reason: String,
    },
    /// The database server has no free connection.
    #[error("the database at {place} has no connection left: {reason}")]
    Crowded {
        /// Host and port.
        place: String,
        /// The server's message.
        reason: String,
    },
    /// A connection pooler changes the session in an unsupported way.
    #[error("the database at {place} is behind a connection pooler with unsupported settings: {reason}")]
    Pooled {
        /// Host and port.
        place: String,
        /// How this was detected.
        reason: String,
    },
    /// A row has invalid content.
    #[error("the row {key} of {table} is damaged: {reason}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// The key of the row.
        key: String,
        /// The problem.
        reason: String,
    },
    /// This database does not support the operation.
    #[error("cannot {attempt} on this database: {reason}")]
    Unsupported {
        /// The attempted operation.
        attempt: &'static str,
        /// Why it is not supported, and an alternative.
        reason: &'static str,
    },
    /// A test requested this failure.
    #[error("a test made the commit fail here")]
    Injected,
    /// Any other error of the database.
    #[error("could not {attempt}")]
    Database {
        /// The attempted operation.
        attempt: &'static str,
        /// The error of the database.
        #[source]
        source: SharedError,
    },
}

fn after(holder: Option<&str>) -> String {
    holder.map_or(String::new(), |holder| format!(": {holder}"))
}

impl StoreError {
    /// Returns a stable error code.
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

    /// Returns advice for the user.
    pub fn hint(&self) -> &'static str {
        match self {
            StoreError::Missing { remedy, .. } | StoreError::ReadOnly { remedy, .. } => remedy,
            StoreError::Busy { .. } => {
                "try again; if the problem persists, find the process that holds \
                                        the store"
            }
            StoreError::Full { .. } => "free some space, then try again; no partial write happened",
            StoreError::Corrupt { .. } => "run `drydock store check`, and restore the latest backup",
            StoreError::Newer { .. } => "use the newer drydock that wrote it",
            StoreError::NotDrydock { .. } => "name another place with --store",
            StoreError::Unavailable { .. } => "check that the server runs and that the address is right",
            StoreError::Crowded { .. } => {
                "raise max_connections of the server, or lower `connections` under [store] in every process's configuration"
            }
            StoreError::Pooled { .. } => {
                "name the server itself; or let the pooler use session mode, and give the database user \
                 the limits: \
                 ALTER ROLE user SET lock_timeout = '10s'; ALTER ROLE user SET idle_in_transaction_session_timeout = '10s'"
            }
            StoreError::Damaged { .. } => "run `drydock store check`, and restore the latest backup",
            StoreError::Unsupported { .. } => "see the reason above",
            StoreError::Injected => "unset the fault that the test set",
            StoreError::Database { .. } => "check the cause above, and run `drydock store check`",
        }
    }

    /// Returns true if the same call may succeed when it is repeated.
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

/// Why a transition was not committed; the plan is unchanged.
#[derive(Debug, Clone, thiserror::Error)]
pub enum CommitError {
    /// The plan does not accept the command.
    #[error(transparent)]
    Refused(Refusal),
    /// The lease expired, was broken, or was acquired by another holder.
    #[error("the lease on {plan} was lost (fence {} is no longer current)", fence.0)]
    LeaseLost {
        /// The plan.
        plan: PlanId,
        /// The fence of the lost lease.
        fence: Fence,
    },
    /// The transition changes the project, and the project's lock is not held.
    #[error("the transition needs the lock of the plan's project")]
    ProjectLockMissing,
    /// The plan does not exist.
    #[error("there is no plan {0}")]
    PlanMissing(PlanId),
    /// A plan with this id already exists.
    #[error("plan {0} already exists")]
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
    /// The lease under which the changeset was opened is lost.
    #[error("the lease under which changeset {id} was opened was lost")]
    LeaseLost {
        /// The changeset.
        id: ChangesetId,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}
