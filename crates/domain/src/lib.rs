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
    Action, Argument, Name, NameError, ReviewOpinion, ReviewRun, Reviewer, Validation, ValidationRun,
};
pub use agent::AgentRoles;
pub use authority::Authority;
pub use budget::{Budget, BudgetError, Spent, WrittenBudget, dollars, micros};
pub use changeset::{ChangeOp, Changeset, ChangesetState, Entry, NewEntry};
pub use choice::{CHOICES_MAX, Choice, Placed, Tangle, outline, put as put_choice, tangle};
pub use command::{
    Advance, Call, Changes, Command, Completion, Context, Landed, LandingProof, Met, Next, Start,
    TakeOverCause,
};
pub use counted::counted;
pub use decide::{REVERSIONS_MAX, admit, create, create_alerting, decide};
pub use decision::{
    Answer, Decision, DecisionChange, DecisionKind, DecisionOption, DecisionStatus, JoinHow, OptionEffect,
    Question, Resolution, SentBack,
};
pub use duration::duration;
pub use effect::{Effect, due};
pub use event::{Event, Recorded};
pub use grant::{Grant, GrantAnswer, GrantScope, GrantTerms};
pub use id::{ChangesetId, DecisionId, IdError, IdPrefix, LockId, PlanId, RunId, TokenId};
pub use interruption::{INTERRUPTIONS_MAX, Interruption, Remains, RestartPoint};
pub use invariant::{
    Check, Enforced, Enforcement, Finding, Invariant, InvariantScope, Rule, RuleKind, effective,
};
pub use lock::{Fence, Holder, Lock, LockScope};
pub use measure::{Demand, Measure};
pub use offer::{Act, Need, Offer};
pub use offers::{offers, offers_unheld};
pub use outcome::{Decided, Transition};
pub use plan::{Intent, NewPlan, Plan, Snapshot, Spec};
pub use postpone::{Delay, POSTPONED_MAX, POSTPONED_MS_MAX, Postponed, RateLimit, RemoteAway};
pub use process::{AtPid, ProcessIdentity};
pub use profile::{OnDivergence, Profile};
pub use project::Project;
pub use refusal::Refusal;
pub use shell::shell_word;
pub use spelling::edits;
pub use stage::{Complete, ErrorClass, Failure, Phase, Progress, Settled, Stage, State};
pub use subplan::{
    Acts, Birth, Clashed, Clashing, FailureRecord, Fanout, FanoutError, Fate, Holding, Inheritance,
    Inherited, Lands, Marks, Mends, MergeStrategy, NewChild, News, OnFailure, Outlook, Piece, PieceTask,
    Place, Seen, Side, Turn, arrange, outlook,
};
pub use sync::{
    Clash, ClashCause, ClashStep, CommitLine, Divergence, Footing, PinLine, Publish, Publishing, Relation,
    RemoteSight, Sight, Standing, Step, SyncOutcome, Uncommitted, Unsent,
};
pub use take_up::TakeUp;
pub use target::Target;
pub use time::Timestamp;
pub use token::{Role, Token, TokenKind, TokenState};
pub use told::told;
pub use written::{
    BRANCHES, CHECKPOINT, JOINS, PINS, SNAPSHOTS, is_landing_of, run_trailer, trailer, without_trailers,
};
