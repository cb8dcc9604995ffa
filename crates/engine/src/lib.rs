//! Takes plans through their phases: the only committer of transitions, the only keeper of held locks, and the
//! place where slow looks outside (git, agents, rules) become facts for the pure state machine.

mod action_file;
mod clock;
mod engine;
mod error;
mod feed;
mod hold;
mod hook;
mod identity;
mod look;
mod make;
mod phase;
mod registry;
mod rule;
mod settings;
mod steer;
mod sync;
mod task;
mod token;
mod transition;
mod tree;
mod upkeep;
mod why;
mod worker;

pub use clock::now;
pub use engine::Engine;
pub use error::{Absent, EngineError};
pub use feed::{EventPage, Follower, Interest, News, Shown};
pub use hook::{Hook, Hooks, Means, Pattern, PatternError, Priority, Wants, WebAddress, WebAddressError};
pub use look::{AgentCheckup, AgentEntry, AgentSource, Checkpoint, PlanDiff};
pub use make::{Asked, NewInvariant, Request};
pub use registry::{Lockable, NewProject};
pub use settings::Settings;
pub use steer::{Authority, Caller};
pub use sync::{Backup, Restored, Synced};
pub use task::shield;
pub use token::{NewRole, NewToken, Recognised, Secret};
pub use upkeep::{Checkup, Collected, Grade, Kept, Removed, Sweep};
pub use why::{CanAct, Why};
