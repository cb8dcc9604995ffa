//! Keeps a plan's branch in sync with its remote: at the start of a phase, after a phase, and when a person
//! requests a sync or adopts a draft. All cases use one function, one transition and the same answers (S4.6).

mod answer;
mod ask;
mod backup;
mod own;
mod together;

pub use ask::SyncResult;
pub use backup::{BackupScan, NamedBackupPolicy, ProjectBackup, RestoredBranch};
pub(crate) use together::{AfterRunSync, PlanSync, RunStart};
