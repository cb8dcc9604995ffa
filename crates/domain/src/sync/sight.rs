//! What a sync saw of a branch, its remote and its worktree, and the least destructive step from there.
//! Looking and stepping are `worktree`'s; which step follows from which sight is decided here, without I/O.

use serde::{Deserialize, Serialize};

/// What was seen before anything was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sight {
    /// How the branch stands in its worktree.
    pub footing: Footing,
    /// Where the remote is, compared with the branch.
    pub remote: RemoteSight,
    /// Whether the branch's own commits are to be sent.
    pub publish: Publish,
}

/// How a branch stands in the worktree that is meant to have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Footing {
    /// There is no worktree: the branch is a ref and nothing else.
    Unattached,
    /// The worktree is on the branch.
    OnBranch,
    /// The worktree is on the branch, but its index is locked.
    Locked {
        /// The lock that is held.
        lock: String,
    },
    /// The worktree is on something else.
    Elsewhere {
        /// A branch, or a commit.
        on: String,
    },
    /// Something else is under way in the worktree.
    MidOperation {
        /// What.
        operation: String,
    },
}

/// Where the remote is, compared with the branch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteSight {
    /// The project has no remote.
    NotConfigured,
    /// It could not be found out.
    Unreachable {
        /// What git or the remote said.
        reason: String,
    },
    /// The remote never had such a branch, as far as we saw.
    NoBranch(Unsent),
    /// The remote had such a branch, and somebody deleted it.
    BranchDeleted,
    /// The remote has such a branch.
    Tip(Relation),
}

/// Whether a branch that the remote does not have holds anything to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsent {
    /// Nothing beyond its base.
    Nothing,
    /// Commits of its own.
    Commits,
}

/// How a branch relates to that of the remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Both are at the same commit.
    Same,
    /// Only the branch has commits of its own.
    Ahead,
    /// Only the remote has commits of its own.
    Behind,
    /// Both have.
    Diverged,
    /// Both have, and the histories have no commit in common.
    Unrelated,
    /// The remote is at a tip of which it was decided that the branch replaces it.
    Replaced,
}

/// Whether a branch's own commits are to be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Publish {
    /// They are.
    Yes,
    /// They are, unless commits of others arrive: the result of that is not judged yet.
    IfAlone,
    /// They are not: the run that made them did not succeed.
    No,
}

/// The least destructive step that brings branch and remote together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// None: there is no remote.
    NoRemote,
    /// None: the remote could not be asked.
    FetchFailed {
        /// What git or the remote said.
        reason: String,
    },
    /// None: the worktree is on something else.
    Detached {
        /// A branch, or a commit.
        on: String,
    },
    /// None: something else is under way in the worktree.
    MidOperation {
        /// What.
        operation: String,
    },
    /// None: the remote has no such branch, and is not to get one.
    LeaveRemoteAbsent,
    /// None: both are at the same commit.
    InSync,
    /// None: the branch is ahead and is not to be sent.
    KeepLocal,
    /// Send the branch, which the remote accepts only as a fast-forward.
    Push,
    /// Move the branch forward to the remote's commit, under whatever edits there are.
    FastForward,
    /// Replay the branch's own commits, then the edits, on those of the remote.
    Replay,
    /// Pin the branch and leave both as they are: branches without a common history cannot be joined.
    LeaveUnrelated,
    /// Send a commit that has the branch's content and both as its parents.
    Supersede,
}

/// What to do about commits or edits that cannot be replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClashStep {
    /// Pin them, then set the branch to the remote's commit.
    PinAndReset,
    /// Pin them, and leave all as it is.
    PinOnly,
}

impl Sight {
    /// Returns the least destructive step.
    pub fn step(&self) -> Step {
        let reachable = match &self.remote {
            RemoteSight::NotConfigured => return Step::NoRemote,
            RemoteSight::Unreachable { reason } => Err(reason),
            RemoteSight::NoBranch(unsent) => Ok(Remote::NoBranch(*unsent)),
            RemoteSight::BranchDeleted => Ok(Remote::Deleted),
            RemoteSight::Tip(relation) => Ok(Remote::Tip(*relation)),
        };
        // What the worktree is in the middle of comes first: it holds whatever the remote says.
        let lock = match &self.footing {
            Footing::MidOperation { operation } => {
                return Step::MidOperation { operation: operation.clone() };
            }
            Footing::Elsewhere { on } => return Step::Detached { on: on.clone() },
            Footing::Locked { lock } => Some(lock),
            Footing::Unattached | Footing::OnBranch => None,
        };
        let remote = match reachable {
            Ok(remote) => remote,
            Err(reason) => return Step::FetchFailed { reason: reason.clone() },
        };
        match (remote, self.publish, lock) {
            // Somebody who deletes a branch does not want it back from us.
            (
                Remote::Deleted | Remote::NoBranch(Unsent::Nothing),
                Publish::Yes | Publish::IfAlone | Publish::No,
                _,
            ) => Step::LeaveRemoteAbsent,
            (Remote::Tip(Relation::Same), Publish::Yes | Publish::IfAlone | Publish::No, _) => Step::InSync,
            (
                Remote::NoBranch(Unsent::Commits) | Remote::Tip(Relation::Ahead),
                Publish::Yes | Publish::IfAlone,
                _,
            ) => Step::Push,
            (
                Remote::NoBranch(Unsent::Commits) | Remote::Tip(Relation::Ahead | Relation::Replaced),
                Publish::No,
                _,
            ) => Step::KeepLocal,
            // Neither files nor index change by it.
            (Remote::Tip(Relation::Replaced), Publish::Yes | Publish::IfAlone, _) => Step::Supersede,
            (
                Remote::Tip(Relation::Behind | Relation::Diverged | Relation::Unrelated),
                Publish::Yes | Publish::IfAlone | Publish::No,
                Some(lock),
            ) => Step::MidOperation { operation: lock.clone() },
            (Remote::Tip(Relation::Behind), Publish::Yes | Publish::IfAlone | Publish::No, None) => {
                Step::FastForward
            }
            (Remote::Tip(Relation::Diverged), Publish::Yes | Publish::IfAlone | Publish::No, None) => {
                Step::Replay
            }
            (Remote::Tip(Relation::Unrelated), Publish::Yes | Publish::IfAlone | Publish::No, None) => {
                Step::LeaveUnrelated
            }
        }
    }
}

/// A remote that answered.
#[derive(Clone, Copy)]
enum Remote {
    NoBranch(Unsent),
    Deleted,
    Tip(Relation),
}

impl crate::OnDivergence {
    /// Returns what to do about commits or edits that cannot be replayed.
    pub fn on_clash(self) -> ClashStep {
        match self {
            crate::OnDivergence::Recover => ClashStep::PinAndReset,
            crate::OnDivergence::Pause => ClashStep::PinOnly,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Footing, Publish, Relation, RemoteSight, Sight, Step, Unsent};

    fn footings() -> Vec<Footing> {
        let text = str::to_owned;
        vec![
            Footing::Unattached,
            Footing::OnBranch,
            Footing::Locked { lock: text("index.lock") },
            Footing::Elsewhere { on: text("main") },
            Footing::MidOperation { operation: text("rebase") },
        ]
    }

    fn remotes() -> Vec<RemoteSight> {
        vec![
            RemoteSight::NotConfigured,
            RemoteSight::Unreachable { reason: "away".to_owned() },
            RemoteSight::NoBranch(Unsent::Nothing),
            RemoteSight::NoBranch(Unsent::Commits),
            RemoteSight::BranchDeleted,
            RemoteSight::Tip(Relation::Same),
            RemoteSight::Tip(Relation::Ahead),
            RemoteSight::Tip(Relation::Replaced),
            RemoteSight::Tip(Relation::Behind),
            RemoteSight::Tip(Relation::Diverged),
            RemoteSight::Tip(Relation::Unrelated),
        ]
    }

    fn all() -> Vec<Sight> {
        let mut all = Vec::new();
        for footing in footings() {
            for remote in remotes() {
                for publish in [Publish::Yes, Publish::IfAlone, Publish::No] {
                    all.push(Sight { footing: footing.clone(), remote: remote.clone(), publish });
                }
            }
        }
        all
    }

    /// Says whether a step writes the index, or has to read all files at one moment.
    fn holds_files(step: &Step) -> bool {
        matches!(step, Step::FastForward | Step::Replay | Step::LeaveUnrelated)
    }

    fn sends(step: &Step) -> bool {
        matches!(step, Step::Push | Step::Supersede)
    }

    /// S4.1: would break if a sight that does not know where the remote is came to a step that changes something.
    #[test]
    fn what_could_not_be_found_out_changes_nothing() {
        for sight in all() {
            let step = sight.step();
            let unknown =
                matches!(sight.remote, RemoteSight::Unreachable { .. } | RemoteSight::NotConfigured);
            let unsteady = matches!(sight.footing, Footing::Elsewhere { .. } | Footing::MidOperation { .. });
            if unknown || unsteady {
                assert!(!holds_files(&step) && !sends(&step), "{sight:?}: {step:?}");
                assert_ne!(step, Step::InSync, "{sight:?}");
            }
        }
    }

    /// Would break if commits of a failed run were sent, or a branch that somebody deleted came back.
    #[test]
    fn nothing_is_sent_unasked() {
        for sight in all() {
            let step = sight.step();
            if sends(&step) {
                assert_ne!(sight.publish, Publish::No, "{sight:?}");
                assert_ne!(sight.remote, RemoteSight::BranchDeleted);
            }
        }
    }

    /// Would break if a locked index were written, or a lock kept a branch from being found in sync.
    #[test]
    fn a_locked_index_matters_only_to_what_would_write_it() {
        for sight in all().into_iter().filter(|sight| matches!(sight.footing, Footing::Locked { .. })) {
            let free = Sight { footing: Footing::OnBranch, ..sight.clone() }.step();
            let locked = sight.step();
            if holds_files(&free) {
                assert_eq!(locked, Step::MidOperation { operation: "index.lock".to_owned() });
            } else {
                assert_eq!(locked, free, "{sight:?}");
            }
        }
    }

    /// S4.1: would break if two sights that a person must tell apart came to the same step by accident.
    #[test]
    fn each_relation_has_its_own_step() {
        let step = |remote, publish| Sight { footing: Footing::OnBranch, remote, publish }.step();
        let tip = RemoteSight::Tip;
        for publish in [Publish::Yes, Publish::IfAlone, Publish::No] {
            assert_eq!(step(RemoteSight::NotConfigured, publish), Step::NoRemote);
            assert_eq!(step(tip(Relation::Same), publish), Step::InSync);
            assert_eq!(step(RemoteSight::BranchDeleted, publish), Step::LeaveRemoteAbsent);
            assert_eq!(step(RemoteSight::NoBranch(Unsent::Nothing), publish), Step::LeaveRemoteAbsent);
            assert_eq!(step(tip(Relation::Behind), publish), Step::FastForward);
            assert_eq!(step(tip(Relation::Diverged), publish), Step::Replay);
            assert_eq!(step(tip(Relation::Unrelated), publish), Step::LeaveUnrelated);
        }
        let ahead = [RemoteSight::NoBranch(Unsent::Commits), tip(Relation::Ahead)];
        for remote in ahead {
            assert_eq!(step(remote.clone(), Publish::Yes), Step::Push);
            assert_eq!(step(remote, Publish::No), Step::KeepLocal);
        }
        assert_eq!(step(tip(Relation::Replaced), Publish::Yes), Step::Supersede);
        assert_eq!(step(tip(Relation::Replaced), Publish::No), Step::KeepLocal);
        let nowhere = Sight {
            footing: Footing::Elsewhere { on: "main".to_owned() },
            remote: tip(Relation::Same),
            publish: Publish::Yes,
        };
        assert_eq!(nowhere.step(), Step::Detached { on: "main".to_owned() });
    }
}
