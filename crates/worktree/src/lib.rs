//! Runs git: worktrees, captures, diffs, merges, refs, landing, sync and backups. No other crate calls git.
//!
//! All calls are synchronous and have a time limit. No call runs a program that a repository's configuration
//! names; `guard` describes how, and the exceptions. Paths are UTF-8: other names are rejected, never
//! converted.

mod address;
mod capture;
mod checkout;
mod child;
mod crash;
mod create;
mod describe;
mod diff;
mod error;
mod forget;
mod git;
mod guard;
mod holder;
mod id;
mod index_file;
mod intake;
mod join;
mod land;
mod landing_check;
mod landings;
mod line;
mod lock;
mod memory;
mod merge;
mod name;
mod objects;
mod patience;
mod pin;
mod placement;
mod private_index;
mod process;
mod push;
mod refs;
mod remote_land;
mod repository;
mod run;
mod sign;
mod stand;
mod submodule;
mod sync;
mod walk;
mod worktrees;

pub use capture::{Captured, Staged};
pub use checkout::{Checkout, Verified, make_folder, remove_folder};
pub use child::with_git_children;
pub use describe::CommitHead;
pub use diff::{DiffStat, TreeChange};
pub use error::{GitError, OpenError};
pub use git::{Git, GitVersion};
pub use holder::{Judge, LockHolder, Standing};
pub use id::{BadId, CommitId, TreeId, Treeish};
pub use join::{ConflictFile, ConflictKind, DetailedMerge, Hunk, MergeRequest, Prefer};
pub use land::LandOutcome;
pub use line::Own;
pub use merge::{MergeOutcome, Signature};
pub use patience::{CaptureBounds, StopSignal};
pub use pin::{BackupDetails, BackupRequest, PinDropped, RestoreOutcome};
pub use placement::Link;
pub use process::{at_pid, is_gone, this_process};
pub use push::Push;
pub use refs::{RefCreated, RefDeleted};
pub use remote_land::{Followed, IntentPushed, RemoteLanded, RemoteLanding, RemoteTip, Revoked, SentBranch};
pub use repository::Repository;
pub use sign::Signed;
pub use sync::SyncRequest;
