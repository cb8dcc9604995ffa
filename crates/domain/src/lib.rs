//! The plan lifecycle as pure values: the plan, the commands that change it, and the events and effects of
//! each change. This crate does no I/O, does not wait, and reads neither a clock nor a random source.

mod action;
mod agent;
mod authority;
mod budget;
mod changeset;
mod choice;
mod command;
mod counted;
mod decide;
mod decision;
mod duration;
mod effect;
mod event;
mod grant;
mod id;
mod interruption;
mod invariant;
mod lock;
mod measure;
mod offer;
mod offers;
mod outcome;
mod plan;
mod postpone;
mod process;
mod profile;
mod project;
mod question;
mod refusal;
mod shell;
mod spelling;
mod stage;
mod subplan;
mod sync;
mod take_up;
mod target;
mod time;
mod token;
mod told;
mod written;

pub use action::{
    Action, ActionArgument, Name, NameError, ReviewOpinion, ReviewResult, ReviewerSpec, Validation,
    ValidationResult,
};
pub use agent::PlanAgents;
pub use authority::Authority;
pub use budget::{Budget, BudgetError, RawBudget, ResourceUsage, dollars, micros};
pub use changeset::{ChangeOp, Changeset, ChangesetEntry, ChangesetState, PathChange};
pub use choice::{CHOICES_MAX, Choice, ChoiceTreeError, Placed, check_tree, outline, put as put_choice};
pub use command::{
    Advance, CallSubplan, Changes, Command, Completion, Context, Landed, LandingProof, NextPhase, Obstacle,
    Start, TakeOverCause,
};
pub use counted::counted;
pub use decide::{REVERSIONS_MAX, admit, create, create_alerting, decide};
pub use decision::{
    Answer, ConflictResolution, Decision, DecisionChange, DecisionKind, DecisionOption, DecisionStatus,
    OptionEffect, Question, RejectedBy, Resolution,
};
pub use duration::duration;
pub use effect::{Effect, next_effect};
pub use event::{Event, StoredEvent};
pub use grant::{Grant, GrantAnswer, GrantScope, GrantTerms};
pub use id::{ChangesetId, DecisionId, IdError, IdPrefix, LockId, PlanId, RunId, TokenId};
pub use interruption::{INTERRUPTIONS_MAX, InterruptedRun, Remains, RestartPoint};
pub use invariant::{
    Enforced, Enforcement, Finding, Invariant, InvariantCheck, InvariantScope, Rule, RuleKind, effective,
};
pub use lock::{Fence, Holder, Lock, LockScope};
pub use measure::{Demand, Measure};
pub use offer::{Act, Need, Offer};
pub use offers::{offers, offers_unheld};
pub use outcome::{Decided, Transition};
pub use plan::{CreatePlan, Intent, Plan, PlanSpec, StoredPlan};
pub use postpone::{Delay, POSTPONED_MAX, POSTPONED_MS_MAX, Postponed, RateLimit, RemoteAway};
pub use process::{AtPid, ProcessIdentity};
pub use profile::{OnDivergence, Profile};
pub use project::Project;
pub use refusal::Refusal;
pub use shell::shell_word;
pub use spelling::edits;
pub use stage::{Complete, ErrorClass, Failure, Phase, Progress, Settled, Stage, State};
pub use subplan::{
    ChildState, ConflictMarkers, ConflictReport, ConflictSide, ConflictSummary, EffectiveInvariants,
    FailureRecord, Fanout, FanoutError, Inherited, InheritedInvariants, LandsOn, MergeStrategy, NewChild,
    OnFailure, ParentLink, ResolvesConflict, SpawnChild, Subplan, SubplanStatus, SubplanSteps, SubplanTask,
    SubplanUpdate, Transience, Turn, arrange, outlook,
};
pub use sync::{
    BackupRef, ClashCause, CommitLine, Divergence, OnConflict, Publish, PublishResult, Relation, RemoteState,
    ReplayConflict, SyncInput, SyncOutcome, SyncStatus, SyncStep, Uncommitted, Unsent, WorktreeState,
};
pub use take_up::RestartReason;
pub use target::Target;
pub use time::Timestamp;
pub use token::{Token, TokenKind, TokenRole, TokenState};
pub use told::error_chain;
pub use written::{
    BRANCHES, CHECKPOINT, JOINS, PINS, SNAPSHOTS, is_landing_of, run_trailer, trailer, without_trailers,
};
