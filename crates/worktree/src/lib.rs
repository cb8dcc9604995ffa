//! The only caller of git: worktrees, captures, diffs, merges, joins, refs, landing, sync and pins.
//!
//! Everything is synchronous, every call has a time limit, and no call runs a program that the
//! configuration of a repository names (`guard` says how, and what is left). Paths are UTF-8;
//! a name that is not is refused, never changed.

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
mod worktrees;

pub use capture::{Captured, Staged};
pub use checkout::{Checkout, Verified, make_folder, remove_folder};
pub use child::with_git_children;
pub use describe::CommitHead;
pub use diff::{Change, ChangeOp, DiffStat};
pub use error::{GitError, OpenError};
pub use git::{Git, GitVersion};
pub use holder::{Judge, LockHolder, Standing};
pub use id::{BadId, CommitId, TreeId, Treeish};
pub use join::{ConflictFile, ConflictKind, Favour, Hunk, Join, JoinOrder};
pub use land::Landing;
pub use line::Own;
pub use merge::{Merge, Signature};
pub use pin::{Pin, PinDropped, PinOrder, Restored};
pub use process::{at_pid, is_gone, this_process};
pub use push::Push;
pub use refs::{RefCreated, RefDeleted};
pub use remote_land::{Followed, IntentPushed, RemoteLanded, RemoteLanding, RemoteTip, Revoked, SentBranch};
pub use repository::Repository;
pub use sign::Signed;
pub use sync::SyncOrder;
