//! Runs plans through their phases. Only this crate commits transitions and keeps held locks. It also does
//! the slow reads outside (git, agents, rules) and passes their results as facts to the pure state machine.

mod absent;
mod action_file;
mod clock;
mod diff;
mod engine;
mod error;
mod explain;
mod feed;
mod frozen;
mod gone;
mod hold;
mod hook;
mod identity;
mod look;
mod make;
mod meter;
mod offered;
mod phase;
mod reap;
mod recall;
mod record;
mod registry;
mod repositories;
mod rule;
mod run_log;
mod settings;
mod sign_in;
mod steer;
mod subplan;
mod sync;
mod tally;
mod task;
mod token;
mod trace;
mod transition;
mod tree;
mod upkeep;
mod why;
mod work_log;
mod worker;

pub use clock::now;
pub use diff::{DiffSource, DiffSourceKind, PlanDiff};
pub use drydock_store::PhaseLimits;
pub use drydock_worktree::CaptureBounds;
pub use engine::Engine;
pub use error::{EngineError, MissingItem};
pub use explain::{AnsweredQuestion, PlanExplanation, RejectedWork, Remark};
pub use feed::{EncodedEvent, EventPage, FeedBatch, FeedFilter, Follower};
pub use hook::{
    Hook, HookFilter, HookKind, Hooks, Pattern, PatternError, Priority, WebAddressError, WebhookUrl,
};
pub use look::{AgentCheckup, AgentSource, ConfiguredAgent, PlanCheckpoint};
pub use make::{InvariantInput, PlanRequest, PlanSource};
pub use meter::CommitStats;
pub use offered::Offered;
pub use registry::{OverridePolicy, ProjectInput};
pub use rule::{RuleFact, rule_facts};
pub use run_log::{
    FirstLog, LogFollower, LogNews, LogRange, LogSlice, LogStart, LogSummary, NOTICE, RunState,
};
pub use settings::{Settings, SubplanLimits};
pub use sign_in::BrowserSession;
pub use steer::Caller;
pub use subplan::{PlanTree, SubplanNode};
pub use sync::{BackupScan, NamedBackupPolicy, ProjectBackup, RestoredBranch, SyncResult};
pub use task::shield;
pub use token::{NewRole, Secret, TokenCheck, TokenInput};
pub use trace::TRACE;
pub use tree::strategy_schema;
pub use upkeep::{CheckGrade, GcKept, GcMode, GcRemoved, GcResult, HealthCheck};
pub use why::{NextCommand, PlanWhy};
pub use work_log::WORK;
