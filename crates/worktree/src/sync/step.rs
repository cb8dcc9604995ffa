//! Performs a sync from the first read to its outcome. It returns no error: a failure is an outcome too.

use drydock_domain::{
    BackupRef, ClashCause, CommitLine, OnConflict, Publish, PublishResult, Relation, RemoteState,
    ReplayConflict, SyncInput, SyncOutcome, SyncStep, Uncommitted, Unsent, WorktreeState, error_chain,
    trailer,
};

use crate::crash;
use crate::error::GitError;
use crate::id::CommitId;
use crate::pin::BackupContent;
use crate::push::Push;
use crate::refs::{Moved, RefCondition};
use crate::remote_land::RemoteTip;
use crate::repository::Repository;
use crate::sync::fetch::Fetched;
use crate::sync::folder::{LockOutcome, LockedWorktree};
use crate::sync::footing::footing;
use crate::sync::join::RebaseResult;
use crate::sync::look::RemoteSeen;
use crate::sync::order::{SyncRefNames, SyncRequest};
use crate::sync::recovery::RecoveryMarker;
use crate::sync::shift::{BranchMove, BranchMoveOutcome};
use crate::sync::walk::{DivergedCommits, commit_lines};

/// The state once the remote has responded.
struct SyncContext<'a> {
    order: &'a SyncRequest<'a>,
    names: &'a SyncRefNames,
    remote: &'a str,
    local: CommitId,
    /// The remote's commit, or `None` if it has no such branch.
    tip: Option<CommitId>,
    sides: DivergedCommits,
}

impl Repository {
    /// Syncs a branch with its remote branch by the least destructive step.
    pub fn sync(&self, order: &SyncRequest<'_>) -> SyncOutcome {
        let Some(remote) = order.remote else { return SyncOutcome::NoRemote };
        self.try_sync(order, remote).unwrap_or_else(|error| SyncOutcome::Unknown {
            attempt: format!("sync {} with {remote}", order.branch),
            reason: error_chain(&error),
        })
    }

    fn try_sync(&self, order: &SyncRequest<'_>, remote: &str) -> Result<SyncOutcome, GitError> {
        let attempt = format!("sync {} with {remote}", order.branch);
        let names = SyncRefNames::new(order, remote)?;
        if self.common_dir().join("shallow").exists() {
            let detail = "the repository has become a shallow clone: run git fetch --unshallow in it";
            return Err(GitError::unexpected(&attempt, detail));
        }
        let (refs, fetched) = self.look(&names, remote)?;
        let Some(local) = refs.local.clone() else {
            return Err(GitError::unexpected(&attempt, "there is no such branch"));
        };
        if let Some(blob) = &refs.recovery
            && let Some(outcome) = self.resume(order, &names, blob, &local)?
        {
            return Ok(outcome);
        }
        let fetched = match fetched {
            Some(tip) => Fetched::At(tip),
            None => self.ask_remote(&names.at_remote(), remote)?,
        };
        let seen = self.remember(&names, &refs, fetched)?;
        crash::hit("sync.fetched");
        let footing = match order.worktree {
            Some(checkout) => footing(checkout, &names.branch)?,
            None => WorktreeState::Unattached,
        };
        let (seen, tip, sides) = self.compare(order, &local, seen)?;
        let scene = SyncContext { order, names: &names, remote, local, tip, sides };
        let moves =
            matches!(seen, RemoteState::Tip(Relation::Behind | Relation::Diverged | Relation::Unrelated));
        let sight = SyncInput { footing, remote: seen, publish: order.publish };
        if !moves || !matches!(sight.footing, WorktreeState::Unattached | WorktreeState::OnBranch) {
            return self.step(&scene, sight.step(), None);
        }
        let outcome = self.step_locked(&scene, sight)?;
        Ok(self.publish_rebased(&scene, outcome))
    }

    /// Performs a step that moves files, holding the repository lock.
    fn step_locked(&self, scene: &SyncContext<'_>, sight: SyncInput) -> Result<SyncOutcome, GitError> {
        let _lock = self.lock(&format!("sync {} with {}", scene.order.branch, scene.remote))?;
        match self.open_folder(scene, &sight)? {
            Ok(folder) => self.step(scene, sight.step(), folder),
            Err(lock) => {
                self.step(scene, SyncInput { footing: WorktreeState::Locked { lock }, ..sight }.step(), None)
            }
        }
    }

    /// Captures the worktree, if there is one. The inner error is the reason why it cannot be moved.
    fn open_folder<'a>(
        &self,
        scene: &SyncContext<'a>,
        sight: &SyncInput,
    ) -> Result<Result<Option<LockedWorktree<'a>>, String>, GitError> {
        let (Some(checkout), Some(tip), WorktreeState::OnBranch) =
            (scene.order.worktree, &scene.tip, &sight.footing)
        else {
            return Ok(Ok(None));
        };
        match LockedWorktree::open(
            checkout,
            &scene.local,
            tip,
            &format!("capture {}", checkout.path().display()),
        )? {
            LockOutcome::Ready(folder) => Ok(Ok(Some(folder))),
            LockOutcome::Busy(what) => Ok(Err(what)),
        }
    }

    /// Compares the branch with the remote's.
    fn compare(
        &self,
        order: &SyncRequest<'_>,
        local: &CommitId,
        seen: RemoteSeen,
    ) -> Result<(RemoteState, Option<CommitId>, DivergedCommits), GitError> {
        let tip = match seen {
            RemoteSeen::Unreachable(reason) => {
                return Ok((RemoteState::Unreachable { reason }, None, DivergedCommits::default()));
            }
            RemoteSeen::Deleted => return Ok((RemoteState::BranchDeleted, None, DivergedCommits::default())),
            RemoteSeen::NeverThere => {
                let unsent = match self.is_ancestor(local, order.base)? {
                    true => Unsent::Nothing,
                    false => Unsent::Commits,
                };
                return Ok((RemoteState::NoBranch(unsent), None, DivergedCommits::default()));
            }
            RemoteSeen::Tip(tip) => tip,
        };
        if tip == *local {
            return Ok((RemoteState::Tip(Relation::Same), Some(tip), DivergedCommits::default()));
        }
        let sides = DivergedCommits::walk(self.place(), local, &tip)?;
        let replaced = self.is_replaced(order, &tip)?;
        let relation = match (sides.local.is_empty(), sides.remote.is_empty()) {
            (_, false) if replaced => Relation::Replaced,
            (true, false) => Relation::Behind,
            (false, true) => Relation::Ahead,
            (false, false) if sides.shared.is_empty() => Relation::Unrelated,
            (false, false) => Relation::Diverged,
            (true, true) => {
                return Err(GitError::unexpected("compare", "two tips, and nothing between them"));
            }
        };
        Ok((RemoteState::Tip(relation), Some(tip), sides))
    }

    /// Returns true if the remote's tip is the commit that the branch replaces, or a descendant with the same
    /// content. A commit that was pushed to replace an earlier tip is such a descendant.
    fn is_replaced(&self, order: &SyncRequest<'_>, tip: &CommitId) -> Result<bool, GitError> {
        let Some(replaces) = order.replaces else { return Ok(false) };
        Ok(replaces == tip
            || self.is_ancestor(replaces, tip)? && self.tree_of(replaces)? == self.tree_of(tip)?)
    }

    fn step(
        &self,
        scene: &SyncContext<'_>,
        step: SyncStep,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        match step {
            SyncStep::NoRemote => Ok(SyncOutcome::NoRemote),
            SyncStep::FetchFailed { reason } => Ok(SyncOutcome::FetchFailed { reason }),
            SyncStep::Detached { on } => Ok(SyncOutcome::Detached { on }),
            SyncStep::MidOperation { operation } => Ok(SyncOutcome::MidOperation { operation }),
            SyncStep::LeaveRemoteAbsent => Ok(SyncOutcome::NoRemoteBranch),
            SyncStep::InSync => Ok(SyncOutcome::InSync { head: scene.local.to_string() }),
            SyncStep::KeepLocal => {
                Ok(SyncOutcome::KeptLocal { head: scene.local.to_string(), local: self.own_lines(scene)? })
            }
            SyncStep::Push => self.send(scene),
            SyncStep::Supersede => self.supersede(scene),
            SyncStep::FastForward | SyncStep::Replay => self.bring_together(scene, folder),
            SyncStep::LeaveUnrelated => self.leave_unrelated(scene, folder),
        }
    }

    /// Lists the commits that only the branch has.
    fn own_lines(&self, scene: &SyncContext<'_>) -> Result<Vec<CommitLine>, GitError> {
        match &scene.tip {
            Some(_) => Ok(scene.sides.local_lines()),
            None => commit_lines(self.place(), &[format!("{}..{}", scene.order.base, scene.local)]),
        }
    }

    /// Pushes the branch. If the push is rejected or fails, nothing has changed.
    fn send(&self, scene: &SyncContext<'_>) -> Result<SyncOutcome, GitError> {
        let head = scene.local.to_string();
        match self.publish(scene, &scene.local) {
            PublishResult::Done => Ok(SyncOutcome::Pushed {
                from: scene.tip.as_ref().map(CommitId::to_string),
                to: head,
                sent: self.own_lines(scene)?,
            }),
            PublishResult::Failed { reason } => Ok(push_failed(scene, head, reason)),
            PublishResult::NotAsked => Ok(SyncOutcome::KeptLocal { head, local: self.own_lines(scene)? }),
        }
    }

    fn publish(&self, scene: &SyncContext<'_>, commit: &CommitId) -> PublishResult {
        match scene.order.publish {
            Publish::No => return PublishResult::NotAsked,
            Publish::Yes | Publish::IfAlone => {}
        }
        self.fetch_before_first_push(scene);
        match self.push(scene.remote, scene.order.branch, commit) {
            Ok(Push::Pushed) => {
                crash::hit("sync.pushed");
                // The next fetch would record this too. But if the branch were deleted at the remote before
                // that, it would be pushed again.
                match self.remember_pushed(scene.names, commit) {
                    Ok(()) => PublishResult::Done,
                    Err(error) => PublishResult::Failed { reason: error_chain(&error) },
                }
            }
            Ok(Push::Rejected { text }) => PublishResult::Failed { reason: text },
            Err(error) => PublishResult::Failed { reason: error_chain(&error) },
        }
    }

    /// Fetches the target if the remote does not have the branch yet. A push omits only objects reachable from
    /// refs of the remote whose commits exist here. If others moved the target since the last fetch and the
    /// remote has no other branch, the push would send the whole history.
    fn fetch_before_first_push(&self, scene: &SyncContext<'_>) {
        if scene.tip.is_some() {
            return;
        }
        let reason = match self.remote_tip(scene.remote, scene.order.target) {
            Ok(RemoteTip::At(_) | RemoteTip::Absent) => return,
            Ok(RemoteTip::Away { reason }) => reason,
            Err(error) => error_chain(&error),
        };
        tracing::debug!(reason, "could not fetch the target before a push");
    }

    /// Pushes a commit with the branch's content and both tips as parents: the remote's commits stay in its
    /// history, and nothing is forced. The local branch moves once the remote has accepted the commit.
    fn supersede(&self, scene: &SyncContext<'_>) -> Result<SyncOutcome, GitError> {
        let Some(tip) = &scene.tip else {
            return Err(GitError::unexpected("supersede", "the remote has no such branch"));
        };
        let tree = self.tree_of(&scene.local)?;
        let plan = scene.order.pin.plan;
        // The commit has the plan's trailer like every commit of a plan, so that the next run does not treat
        // it as foreign work.
        let mark = trailer(plan);
        let message =
            format!("Keep the branch's own content\n\nThis replaces the content of {tip}.\n\n{mark}\n");
        let parents = [scene.local.clone(), tip.clone()];
        let joined = self.commit(&tree, &parents, &message, scene.order.pin.signature)?;
        let head = scene.local.to_string();
        match self.publish(scene, &joined) {
            PublishResult::Done => {}
            PublishResult::Failed { reason } => return Ok(push_failed(scene, head, reason)),
            PublishResult::NotAsked => {
                return Ok(SyncOutcome::KeptLocal { head, local: scene.sides.local_lines() });
            }
        }
        let _lock = self.lock("move a branch to the pushed commit")?;
        if let Some(reason) = self.held_elsewhere(&scene.names.branch, scene.order.worktree)? {
            return Ok(unknown(scene, reason));
        }
        // The content is the same as the branch's, so neither index nor files change.
        let SyncRefNames { branch, tracking, .. } = scene.names;
        let permit = RefCondition { name: tracking, object: joined.as_str(), note: "drydock: sync" };
        match self.branch_move(branch, &scene.local, &joined, &permit)? {
            Moved::Done => crash::hit("sync.moved"),
            Moved::Revoked | Moved::Elsewhere(_) => {
                return Ok(unknown(scene, "the branch was moved concurrently".to_owned()));
            }
        }
        Ok(SyncOutcome::Pushed {
            from: Some(tip.to_string()),
            to: joined.to_string(),
            sent: commit_lines(self.place(), &[format!("{tip}..{joined}")])?,
        })
    }

    /// Moves the branch to the remote's commit, or replays its own commits on top of it, and keeps
    /// uncommitted edits.
    fn bring_together(
        &self,
        scene: &SyncContext<'_>,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        let SyncContext { order, names, local, sides, .. } = scene;
        let Some(tip) = &scene.tip else {
            return Err(GitError::unexpected("update the branch", "the remote has no such branch"));
        };
        let held = folder.as_ref().and_then(|folder| folder.held.clone());
        let joined =
            self.join_sides(&self.place().guard()?, sides, (local, tip), held.as_ref(), order.pin.signature)?;
        crash::hit("sync.replayed");
        let (to, files, replayed, absorbed) = match joined {
            RebaseResult::Clean { to, files, replayed, absorbed } => (to, files, replayed, absorbed),
            RebaseResult::Clash(clash) => return self.clashed(scene, tip, clash, folder),
        };
        // A fast-forward without edits drops nothing, so it needs no backup.
        let pin = match held.is_some() || !sides.local.is_empty() {
            true => {
                let content = BackupContent { head: local, held, remote: Some(tip) };
                Some(self.backup_write(&order.pin, &content, None)?.line)
            }
            false => None,
        };
        crash::hit("sync.pinned");
        let permit = RefCondition { name: &names.tracking, object: tip.as_str(), note: "drydock: sync" };
        let shift = BranchMove { full: &names.branch, from: local, to: &to, files: &files, permit };
        match self.move_branch(&shift, folder)? {
            BranchMoveOutcome::Done => {}
            BranchMoveOutcome::Refused(reason) => return Ok(unknown(scene, reason)),
        }
        let (from, arrived) = (local.to_string(), sides.remote_lines());
        match pin {
            Some(pin) if !sides.local.is_empty() => Ok(SyncOutcome::Rebased {
                from,
                publishing: PublishResult::NotAsked,
                to: to.to_string(),
                onto: tip.to_string(),
                pin,
                discarded: commit_lines(self.place(), &[format!("{to}..{local}")])?,
                absorbed,
                replayed,
                arrived,
            }),
            Some(_) | None => Ok(SyncOutcome::FastForwarded { from, to: to.to_string(), arrived }),
        }
    }

    /// Pushes a rebased branch. The repository lock is not held meanwhile.
    fn publish_rebased(&self, scene: &SyncContext<'_>, mut outcome: SyncOutcome) -> SyncOutcome {
        if let SyncOutcome::Rebased { to, onto, publishing, .. } = &mut outcome {
            // If all commits were already on the remote, there is nothing to push.
            *publishing = match to.parse::<CommitId>() {
                Ok(_) if to == onto => PublishResult::Done,
                Ok(_) if scene.order.publish == Publish::IfAlone => PublishResult::NotAsked,
                Ok(commit) => self.publish(scene, &commit),
                Err(error) => PublishResult::Failed { reason: error.to_string() },
            };
        }
        outcome
    }

    /// Backs up a branch without a common history with the remote's. No policy moves either branch: combining
    /// them would rewrite one from its first commit.
    fn leave_unrelated(
        &self,
        scene: &SyncContext<'_>,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        let Some(tip) = &scene.tip else {
            return Err(GitError::unexpected("compare histories", "the remote has no such branch"));
        };
        let text = format!("{} and {tip} have no common ancestor", scene.local);
        let clash =
            ReplayConflict { cause: ClashCause::NoCommonCommit, commit: None, paths: Vec::new(), text };
        self.backup_only(scene, tip, clash, folder)
    }

    fn backup_only(
        &self,
        scene: &SyncContext<'_>,
        tip: &CommitId,
        clash: ReplayConflict,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        let SyncContext { order, local, sides, .. } = scene;
        let held = folder.and_then(|folder| folder.held);
        let content = BackupContent { head: local, held, remote: Some(tip) };
        let pin = self.backup_write(&order.pin, &content, None)?.line;
        crash::hit("sync.pinned");
        Ok(SyncOutcome::Unreconciled {
            pin,
            discarded: sides.local_lines(),
            local: local.to_string(),
            remote: tip.to_string(),
            arrived: sides.remote_lines(),
            clash,
        })
    }

    fn clashed(
        &self,
        scene: &SyncContext<'_>,
        tip: &CommitId,
        clash: ReplayConflict,
        folder: Option<LockedWorktree<'_>>,
    ) -> Result<SyncOutcome, GitError> {
        let SyncContext { order, names, local, sides, .. } = scene;
        match order.on_divergence.on_clash() {
            OnConflict::PinOnly => self.backup_only(scene, tip, clash, folder),
            OnConflict::PinAndReset => {
                let held = folder.as_ref().and_then(|folder| folder.held.clone());
                let no_pin = BackupRef {
                    name: String::new(),
                    commit: String::new(),
                    head: String::new(),
                    uncommitted: Uncommitted::Nothing,
                };
                let marker = RecoveryMarker {
                    local: local.to_string(),
                    remote: tip.to_string(),
                    tree: None,
                    staged: None,
                    pin: no_pin,
                    discarded: sides.local_lines(),
                    arrived: sides.remote_lines(),
                    clash,
                };
                self.recover(order, names, &marker, held.as_ref(), folder)
            }
        }
    }
}

fn push_failed(scene: &SyncContext<'_>, head: String, reason: String) -> SyncOutcome {
    SyncOutcome::PushFailed {
        branch: scene.order.branch.to_owned(),
        remote: scene.remote.to_owned(),
        head,
        reason,
    }
}

fn unknown(scene: &SyncContext<'_>, reason: String) -> SyncOutcome {
    let attempt = format!("sync {} with {}", scene.order.branch, scene.remote);
    SyncOutcome::Unknown { attempt, reason }
}
