//! All SQL of the product: SQLite and PostgreSQL behind one interface, with one contract test suite for both.
//!
//! A plan is written only under a lease that this crate created, and the commit checks the lease again. A
//! transition is written completely or not at all. This crate caches no mutable data.

mod answer;
mod catalog;
mod changeset;
mod crash;
mod decision;
mod delivery;
mod enforcement;
mod error;
mod event;
mod find;
mod gone;
mod health;
mod lease;
mod lock;
mod outbox;
mod plan;
mod postgres;
mod request;
mod sqlite;
mod store;
mod task;
mod token;
mod tx;
mod url;
mod value;
mod wake;

pub use answer::{IdempotencyClaim, IdempotentRequest, KeyState, StoredResponse};
pub use catalog::{AddOutcome, RemoveOutcome};
pub use changeset::ChangesetHandle;
pub use crash::{CrashPoint, UnknownPoint};
pub use decision::{DecisionFilter, DecisionOrder};
pub use delivery::{ClaimStatus, Delivery, DeliveryClaim, DeliveryOutcome};
pub use error::{CommitError, RecordError, SharedError, StoreError};
pub use event::EventFilter;
pub use find::{Page, PrefixMatch};
pub use gone::HoldingProcess;
pub use health::Counts;
pub use lease::{Acquired, EventBatch, Leases, PlanLease, ProjectLease, Renewed};
pub use outbox::{ClaimRequest, EffectClaim, PhaseLimits};
pub use plan::{Committed, Decide, Parent, PlanChange, PlanFilter, PlanRows, Sighted};
pub use request::{HolderRequest, RequestKind};
pub use store::{Options, Store};
pub use token::{NewSession, Revocation, StoredToken, TokenAdded, TokenInsert};
pub use tx::BoxFuture;
pub use url::{StoreUrl, UnknownScheme};
pub use wake::Watch;
