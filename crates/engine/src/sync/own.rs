//! Distinguishes the plan's own commits from foreign ones. A run records the commits that it makes before it
//! moves the branch to them. Every other commit on the branch is foreign, even with the plan's trailer in its
//! message, and is validated and reviewed before it lands.

use std::collections::BTreeMap;

use drydock_domain::{Command, CommitLine, Event, Phase, Plan, SNAPSHOTS, State, trailer};
use drydock_worktree::{CommitId, GitError, Own};

use super::together::PlanSync;
use crate::engine::Actor;
use crate::error::EngineError;
use crate::phase::commit_id;
use crate::task;

impl PlanSync<'_> {
    /// Returns how the plan's own commits are recognised: by the ids that its runs recorded, and by its
    /// checkpoints. Runs of older versions recorded none, and commits of subplans are recorded with the
    /// subplans; both are recognised by their trailer.
    pub(super) async fn own(&self) -> Result<Own, EngineError> {
        let mut ids = self.engine.store().plan_commits(&self.plan.id).await?;
        if ids.is_empty() || self.plan.fanout.is_some() {
            return Ok(Own::Mark(trailer(self.plan.id.as_str())));
        }
        let (repository, below) = (self.repository.clone(), format!("{SNAPSHOTS}{}/", self.plan.id));
        let snapshots = task::blocking(move || repository.refs(&below)).await?;
        ids.extend(snapshots.into_iter().map(|(_, commit)| commit.to_string()));
        Ok(Own::Ids(ids))
    }

    /// Lists the foreign commits between the known ones and a tip, oldest first.
    pub(super) async fn foreign(
        &self,
        known: Vec<CommitId>,
        tip: CommitId,
    ) -> Result<Vec<CommitLine>, EngineError> {
        let (repository, own) = (self.repository.clone(), self.own().await?);
        Ok(task::blocking(move || repository.foreign(&known, &tip, &own)).await?)
    }

    /// Records commits as the plan's own, under the lease of the process that makes them.
    pub(crate) async fn made(&self, commits: impl IntoIterator<Item = String>) -> Result<(), EngineError> {
        let events: Vec<_> = commits.into_iter().map(|commit| Event::Committed { commit }).collect();
        if events.is_empty() { Ok(()) } else { self.engine.emit(self.hold, events).await }
    }

    /// Returns the author of the last foreign change of each path between two commits. Paths that the plan
    /// itself changed last are left out.
    pub(crate) async fn authors(
        &self,
        from: &CommitId,
        to: &CommitId,
    ) -> Result<BTreeMap<String, String>, EngineError> {
        if self.project.remote.is_none() {
            return Ok(BTreeMap::new());
        }
        let (repository, own) = (self.repository.clone(), self.own().await?);
        let (from, to) = (from.clone(), to.clone());
        Ok(task::blocking(move || repository.authors(&from, &to, &own)).await?)
    }

    /// Sends a plan back to Execute for another validation, if the branch has foreign commits after the
    /// validated work.
    pub(super) async fn reexamined(&self, by: impl Into<Actor<'_>>) -> Result<Option<Plan>, EngineError> {
        match (self.plan.stage.phase(), self.plan.stage.state()) {
            (Phase::Execute, State::Complete) | (Phase::Apply, State::Queued) => {}
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => return Ok(None),
        }
        // The work of a subplan is validated with its parent's.
        if self.plan.place.is_some() || self.project.remote.is_none() {
            return Ok(None);
        }
        let Some(head) = self.plan.head_commit.as_deref().map(commit_id).transpose()? else {
            return Ok(None);
        };
        let (repository, branch) = (self.repository.clone(), self.plan.branch());
        let judged = head.clone();
        // A tip with the validated tree adds nothing to it. This happens when a person chose the plan's
        // commits over foreign ones.
        let tip = task::blocking(move || -> Result<Option<CommitId>, GitError> {
            let Some(tip) = repository.branch_tip(&branch)? else { return Ok(None) };
            Ok((repository.tree_of(&tip)? != repository.tree_of(&judged)?).then_some(tip))
        });
        let Some(tip) = tip.await? else { return Ok(None) };
        let commits = self.foreign(vec![self.base()?, head], tip.clone()).await?;
        if commits.is_empty() {
            return Ok(None);
        }
        let command = Command::Reexamine { tip: tip.to_string(), commits };
        Ok(Some(self.engine.issue(self.hold, command, by).await?.plan))
    }
}
