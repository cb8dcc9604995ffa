//! The observed state of a branch, its remote and its worktree, and the least destructive step that follows.
//! The `worktree` crate observes and performs steps; the decision is made here, without I/O.

use serde::{Deserialize, Serialize};

/// The state observed before any change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncInput {
    /// The state of the worktree.
    pub footing: WorktreeState,
    /// The state of the remote, compared with the branch.
    pub remote: RemoteState,
    /// Whether the branch's own commits are to be pushed.
    pub publish: Publish,
}

/// The state of the branch's worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WorktreeState {
    /// The branch has no worktree; it is only a ref.
    Unattached,
    /// The worktree is on the branch.
    OnBranch,
    /// The worktree is on the branch, but its index is locked.
    Locked {
        /// The held lock file.
        lock: String,
    },
    /// The worktree is on another branch or commit.
    Elsewhere {
        /// That branch or commit.
        on: String,
    },
    /// Another git operation is in progress in the worktree.
    MidOperation {
        /// The operation.
        operation: String,
    },
}

/// The state of the remote, compared with the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteState {
    /// The project has no remote.
    NotConfigured,
    /// The remote could not be reached.
    Unreachable {
        /// The error of git or the remote.
        reason: String,
    },
    /// The remote never had the branch, as far as earlier syncs observed.
    NoBranch(Unsent),
    /// The remote had the branch, and it was deleted there.
    BranchDeleted,
    /// The remote has the branch.
    Tip(Relation),
}

/// Whether a branch that the remote does not have contains commits to push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// Nothing beyond its base.
    Nothing,
    /// Commits of its own.
    Commits,
}

/// The relation of a branch to the remote branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Both are at the same commit.
    Same,
    /// Only the branch has commits of its own.
    Ahead,
    /// Only the remote has commits of its own.
    Behind,
    /// Both have commits of their own.
    Diverged,
    /// Both have commits of their own, and no common commit.
    Unrelated,
    /// The remote is at the commit for which it was decided that the branch replaces it.
    Replaced,
}

/// Whether a branch's own commits are to be pushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Publish {
    /// Push them.
    Yes,
    /// Push them, unless commits from outside arrive: the combined result is not validated and reviewed yet.
    IfAlone,
    /// Do not push them: the run that made them did not succeed.
    No,
}

/// The least destructive step that syncs the branch and its remote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyncStep {
    /// Nothing: the project has no remote.
    NoRemote,
    /// Nothing: the remote could not be reached.
    FetchFailed {
        /// The error of git or the remote.
        reason: String,
    },
    /// Nothing: the worktree is on another branch or commit.
    Detached {
        /// That branch or commit.
        on: String,
    },
    /// Nothing: another git operation is in progress in the worktree.
    MidOperation {
        /// The operation.
        operation: String,
    },
    /// Nothing: the remote does not have the branch and should not get it.
    LeaveRemoteAbsent,
    /// Nothing: both are at the same commit.
    InSync,
    /// Nothing: the branch is ahead and must not be pushed.
    KeepLocal,
    /// Push the branch. The remote accepts it only as a fast-forward.
    Push,
    /// Move the branch forward to the remote's commit, keeping uncommitted edits.
    FastForward,
    /// Replay the branch's own commits, and then the edits, on the remote's commit.
    Replay,
    /// Back up the branch and change neither side: branches without a common commit cannot be merged.
    LeaveUnrelated,
    /// Push a commit with the branch's content and both tips as its parents.
    Supersede,
}

/// The reaction to commits or edits that cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnConflict {
    /// Back them up, then reset the branch to the remote's commit.
    PinAndReset,
    /// Back them up, and change nothing else.
    PinOnly,
}

impl SyncInput {
    /// Returns the least destructive step.
    pub fn step(&self) -> SyncStep {
        let reachable = match &self.remote {
            RemoteState::NotConfigured => return SyncStep::NoRemote,
            RemoteState::Unreachable { reason } => Err(reason),
            RemoteState::NoBranch(unsent) => Ok(ReachedRemote::NoBranch(*unsent)),
            RemoteState::BranchDeleted => Ok(ReachedRemote::Deleted),
            RemoteState::Tip(relation) => Ok(ReachedRemote::Tip(*relation)),
        };
        // An operation in progress in the worktree is checked first: it blocks every step, regardless of the
        // remote.
        let lock = match &self.footing {
            WorktreeState::MidOperation { operation } => {
                return SyncStep::MidOperation { operation: operation.clone() };
            }
            WorktreeState::Elsewhere { on } => return SyncStep::Detached { on: on.clone() },
            WorktreeState::Locked { lock } => Some(lock),
            WorktreeState::Unattached | WorktreeState::OnBranch => None,
        };
        let remote = match reachable {
            Ok(remote) => remote,
            Err(reason) => return SyncStep::FetchFailed { reason: reason.clone() },
        };
        match (remote, self.publish, lock) {
            // A branch that was deleted on the remote must not be pushed again.
            (
                ReachedRemote::Deleted | ReachedRemote::NoBranch(Unsent::Nothing),
                Publish::Yes | Publish::IfAlone | Publish::No,
                _,
            ) => SyncStep::LeaveRemoteAbsent,
            (ReachedRemote::Tip(Relation::Same), Publish::Yes | Publish::IfAlone | Publish::No, _) => {
                SyncStep::InSync
            }
            (
                ReachedRemote::NoBranch(Unsent::Commits) | ReachedRemote::Tip(Relation::Ahead),
                Publish::Yes | Publish::IfAlone,
                _,
            ) => SyncStep::Push,
            (
                ReachedRemote::NoBranch(Unsent::Commits)
                | ReachedRemote::Tip(Relation::Ahead | Relation::Replaced),
                Publish::No,
                _,
            ) => SyncStep::KeepLocal,
            // This step changes neither the files nor the index.
            (ReachedRemote::Tip(Relation::Replaced), Publish::Yes | Publish::IfAlone, _) => {
                SyncStep::Supersede
            }
            (
                ReachedRemote::Tip(Relation::Behind | Relation::Diverged | Relation::Unrelated),
                Publish::Yes | Publish::IfAlone | Publish::No,
                Some(lock),
            ) => SyncStep::MidOperation { operation: lock.clone() },
            (ReachedRemote::Tip(Relation::Behind), Publish::Yes | Publish::IfAlone | Publish::No, None) => {
                SyncStep::FastForward
            }
            (ReachedRemote::Tip(Relation::Diverged), Publish::Yes | Publish::IfAlone | Publish::No, None) => {
                SyncStep::Replay
            }
            (
                ReachedRemote::Tip(Relation::Unrelated),
                Publish::Yes | Publish::IfAlone | Publish::No,
                None,
            ) => SyncStep::LeaveUnrelated,
        }
    }
}

/// A remote that was reached.
#[derive(Clone, Copy)]
enum ReachedRemote {
    NoBranch(Unsent),
    Deleted,
    Tip(Relation),
}

impl crate::OnDivergence {
    /// Returns the reaction to commits or edits that cannot be replayed.
    pub fn on_clash(self) -> OnConflict {
        match self {
            crate::OnDivergence::Recover => OnConflict::PinAndReset,
            crate::OnDivergence::Pause => OnConflict::PinOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Publish, Relation, RemoteState, SyncInput, SyncStep, Unsent, WorktreeState};

    fn footings() -> Vec<WorktreeState> {
        let text = str::to_owned;
        vec![
            WorktreeState::Unattached,
            WorktreeState::OnBranch,
            WorktreeState::Locked { lock: text("index.lock") },
            WorktreeState::Elsewhere { on: text("main") },
            WorktreeState::MidOperation { operation: text("rebase") },
        ]
    }

    fn remotes() -> Vec<RemoteState> {
        vec![
            RemoteState::NotConfigured,
            RemoteState::Unreachable { reason: "away".to_owned() },
            RemoteState::NoBranch(Unsent::Nothing),
            RemoteState::NoBranch(Unsent::Commits),
            RemoteState::BranchDeleted,
            RemoteState::Tip(Relation::Same),
            RemoteState::Tip(Relation::Ahead),
            RemoteState::Tip(Relation::Replaced),
            RemoteState::Tip(Relation::Behind),
            RemoteState::Tip(Relation::Diverged),
            RemoteState::Tip(Relation::Unrelated),
        ]
    }

    fn all() -> Vec<SyncInput> {
        let mut all = Vec::new();
        for footing in footings() {
            for remote in remotes() {
                for publish in [Publish::Yes, Publish::IfAlone, Publish::No] {
                    all.push(SyncInput { footing: footing.clone(), remote: remote.clone(), publish });
                }
            }
        }
        all
    }

    /// Returns true if a step writes the index, or needs a consistent read of all files.
    fn holds_files(step: &SyncStep) -> bool {
        matches!(step, SyncStep::FastForward | SyncStep::Replay | SyncStep::LeaveUnrelated)
    }

    fn sends(step: &SyncStep) -> bool {
        matches!(step, SyncStep::Push | SyncStep::Supersede)
    }

    /// S4.1: fails if an unknown state of the remote leads to a step that changes something.
    #[test]
    fn what_could_not_be_found_out_changes_nothing() {
        for sight in all() {
            let step = sight.step();
            let unknown =
                matches!(sight.remote, RemoteState::Unreachable { .. } | RemoteState::NotConfigured);
            let unsteady =
                matches!(sight.footing, WorktreeState::Elsewhere { .. } | WorktreeState::MidOperation { .. });
            if unknown || unsteady {
                assert!(!holds_files(&step) && !sends(&step), "{sight:?}: {step:?}");
                assert_ne!(step, SyncStep::InSync, "{sight:?}");
            }
        }
    }

    /// Fails if commits of a failed run are pushed, or if a deleted remote branch is pushed again.
    #[test]
    fn nothing_is_sent_unasked() {
        for sight in all() {
            let step = sight.step();
            if sends(&step) {
                assert_ne!(sight.publish, Publish::No, "{sight:?}");
                assert_ne!(sight.remote, RemoteState::BranchDeleted);
            }
        }
    }

    /// Fails if a locked index is written, or if a lock prevents a branch from being found in sync.
    #[test]
    fn a_locked_index_matters_only_to_what_would_write_it() {
        for sight in all().into_iter().filter(|sight| matches!(sight.footing, WorktreeState::Locked { .. })) {
            let free = SyncInput { footing: WorktreeState::OnBranch, ..sight.clone() }.step();
            let locked = sight.step();
            if holds_files(&free) {
                assert_eq!(locked, SyncStep::MidOperation { operation: "index.lock".to_owned() });
            } else {
                assert_eq!(locked, free, "{sight:?}");
            }
        }
    }

    /// S4.1: fails if two states that a person must distinguish lead to the same step by accident.
    #[test]
    fn each_relation_has_its_own_step() {
        let step = |remote, publish| SyncInput { footing: WorktreeState::OnBranch, remote, publish }.step();
        let tip = RemoteState::Tip;
        for publish in [Publish::Yes, Publish::IfAlone, Publish::No] {
            assert_eq!(step(RemoteState::NotConfigured, publish), SyncStep::NoRemote);
            assert_eq!(step(tip(Relation::Same), publish), SyncStep::InSync);
            assert_eq!(step(RemoteState::BranchDeleted, publish), SyncStep::LeaveRemoteAbsent);
            assert_eq!(step(RemoteState::NoBranch(Unsent::Nothing), publish), SyncStep::LeaveRemoteAbsent);
            assert_eq!(step(tip(Relation::Behind), publish), SyncStep::FastForward);
            assert_eq!(step(tip(Relation::Diverged), publish), SyncStep::Replay);
            assert_eq!(step(tip(Relation::Unrelated), publish), SyncStep::LeaveUnrelated);
        }
        let ahead = [RemoteState::NoBranch(Unsent::Commits), tip(Relation::Ahead)];
        for remote in ahead {
            assert_eq!(step(remote.clone(), Publish::Yes), SyncStep::Push);
            assert_eq!(step(remote, Publish::No), SyncStep::KeepLocal);
        }
        assert_eq!(step(tip(Relation::Replaced), Publish::Yes), SyncStep::Supersede);
        assert_eq!(step(tip(Relation::Replaced), Publish::No), SyncStep::KeepLocal);
        let nowhere = SyncInput {
            footing: WorktreeState::Elsewhere { on: "main".to_owned() },
            remote: tip(Relation::Same),
            publish: Publish::Yes,
        };
        assert_eq!(nowhere.step(), SyncStep::Detached { on: "main".to_owned() });
    }
}
