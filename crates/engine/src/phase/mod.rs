//! Runs the phases: one file each for Strategize, Execute and Apply, and the parts that they share.

mod agents;
mod apply;
mod carried;
mod drive;
mod ended;
mod execute;
mod forget;
mod ground;
mod judge;
mod leftovers;
mod limit;
mod link;
mod listen;
mod pass;
mod printed;
mod publish;
mod remains;
mod restart;
mod review;
mod scope;
mod settle;
mod sign;
mod spend;
mod strategize;
mod validate;

pub(crate) use ended::wording;
pub(crate) use leftovers::{
    KeptWork, LatestRunDir, OldRunDir, Rest, RunDirLock, claim_latest, clear_earlier_runs, is_occupied,
    leftovers, lock_run_dir, remove_empty, remove_leftover,
};
pub(crate) use scope::{commit_id, is_checkpoint, kept_as, signature};
pub(crate) use settle::{IntentEnd, intent_end};
