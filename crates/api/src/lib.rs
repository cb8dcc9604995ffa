//! The types sent between a drydock client and a drydock server: one file per object, the table of error codes, and a
//! typed client over any transport. This crate does not depend on the store, git, agents or the state machine of
//! plans. Times are RFC 3339 UTC text and ids are text. Clients ignore unknown fields, so they work with a newer
//! server.

mod action;
mod agent;
mod backup;
mod changeset;
mod checkpoint;
mod client;
mod code;
mod decision;
mod doctor;
mod event;
mod explain;
mod gc;
mod invariant;
mod lock;
mod log;
mod offer;
mod plan;
mod private;
mod problem;
mod project;
mod query;
mod remote;
mod routes;
mod sight;
mod stream;
mod sync;
mod token;
mod transport;
mod word;

pub use action::{Action, Actions, Argument, NewAction, OneAction, Reviewer, Roles};
pub use agent::{AgentCheck, AgentEntry, Agents, OneAgentCheck};
pub use backup::{
    Backup, BackupQuery, Backups, Commit, DeleteBackup, OneBackup, PruneBackups, PrunedBackups,
    RestoreBackup, RestoredBackup,
};
pub use changeset::{ChangeOp, Changeset, ChangesetQuery, ChangesetState, Changesets, Entry, OneChangeset};
pub use checkpoint::{Checkpoint, Checkpoints};
pub use client::{Client, ClientError, PlanMove, RequestOptions};
pub use code::{Code, exit};
pub use decision::{
    Decision, DecisionOption, DecisionOrder, DecisionQuery, DecisionStatus, Decisions, OneDecision,
    Resolution, Resolve, Resolved,
};
pub use doctor::{Check, CheckStatus, Doctor, OneDoctor};
pub use drydock_domain::Rule;
pub use event::{Event, EventQuery, Events, FeedEnd, LastEvent, LastEventQuery};
pub use explain::{Answered, ExplainQuery, Explanation, OneExplanation, Refused, Said};
pub use gc::{Gc, GcRequest, Kept, OneGc, Removed};
pub use hyper::body::Bytes;
pub use hyper::http;
pub use invariant::{Invariant, InvariantQuery, Invariants, NewInvariant, OneInvariant, ScopeQuery};
pub use lock::{BreakLock, Lock, LockScope, Locks, OneLock};
pub use log::{Log, LogLine, LogPage, LogQuery, Logs};
pub use offer::{Blocked, BlockedBy, Offer, Quantity};
pub use plan::{
    Amounts, Interruption, NewPlan, OnePlan, Phase, Plan, PlanError, PlanInvariant, PlanQuery, Plans, Prompt,
    Reason, RetryPlan, RollBack, State, SubplanCount, Waits,
};
pub use problem::Problem;
pub use project::{NewProject, NewValidation, OnDivergence, OneProject, Project, Projects, Validation};
pub use remote::{HttpTransport, ServerUrlError};
pub use sight::{CanAct, Diff, DiffKind, DiffOf, NumberedChoice, OneDiff, OneTree, OneWhy, Tree, Why};
pub use stream::{EventStream, StreamItem};
pub use sync::{Sync, Synced};
pub use token::{
    MadeLink, MadeToken, NewLink, NewToken, RevokedToken, Role, Token, TokenKind, TokenState, Tokens, WELCOME,
};
pub use transport::{BodyStream, BoxFuture, Transport, TransportError};
pub use word::UnknownWord;
