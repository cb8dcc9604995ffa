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

pub use answer::{AnswerClaim, KeptAnswer, Keyed, KeyedRequest};
pub use catalog::{Added, Removed};
pub use changeset::ChangesetHandle;
pub use crash::{CrashPoint, UnknownPoint};
pub use decision::{DecisionFilter, DecisionOrder};
pub use delivery::{Delivery, DeliveryClaim, Tenure, Told};
pub use error::{Cause, CommitError, RecordError, StoreError};
pub use event::EventFilter;
pub use find::{Found, Page};
pub use gone::HoldingProcess;
pub use health::Counts;
pub use lease::{Acquired, EventBatch, PlanLease, ProjectLease, Renewed, Warrant};
pub use outbox::{Claim, ClaimOrder, Limits};
pub use plan::{Change, Committed, Decide, Parent, PlanFilter, PlanRows, Sighted};
pub use request::{Request, RequestKind};
pub use store::{Options, Store};
pub use token::{KeptToken, NewSession, NewToken, RevokedToken, TokenAdded};
pub use tx::BoxFuture;
pub use url::{StoreUrl, UnknownScheme};
pub use wake::Watch;
