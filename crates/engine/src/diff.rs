//! The diff of a plan: of its result, or, before there is a result, of its latest checkpoint. A question
//! about work must let the person see that work before it is a result.

use drydock_domain::{Plan, PlanId, RunId, SNAPSHOTS, State, trailer};
use drydock_worktree::{CommitId, GitError, Repository};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::phase::commit_id;
use crate::task;

/// How many of the newest checkpoints are searched for one of the current work.
const LOOKED_THROUGH_MAX: usize = 20;

/// The changes of a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanDiff {
    /// The patch.
    pub text: String,
    /// How many files the patch touches.
    pub files: u64,
    /// How many lines the patch adds.
    pub lines_added: u64,
    /// How many lines the patch deletes.
    pub lines_deleted: u64,
    /// The commit that the diff shows; `None` if there is no work yet.
    pub of: Option<DiffSource>,
}

/// The commit whose changes a diff shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffSource {
    /// The role of the commit.
    pub kind: DiffSourceKind,
    /// The commit id.
    pub commit: String,
    /// The ref of the checkpoint, if the commit is one.
    pub reference: Option<String>,
    /// The first line of the commit message.
    pub label: String,
    /// Whether an earlier run than the plan's latest wrote the commit.
    pub earlier_run: bool,
}

/// The role of the commit whose changes a diff shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffSourceKind {
    /// The result of Execute.
    Result,
    /// The commit from which the next run restarts.
    GoesOn,
    /// The latest checkpoint.
    Snapshot,
}

impl Engine {
    /// Returns the changes of a plan: its result, or the work so far.
    pub async fn plan_diff(&self, plan: &Plan) -> Result<PlanDiff, EngineError> {
        let (base, named) = (commit_id(&plan.base_commit)?, self.named(plan).await?);
        let from = plan.work_from.as_deref().map(commit_id).transpose()?;
        let project = self.project(plan.spec.project.as_str()).await?;
        let repository = self.repository(&project).await?;
        let (id, landed, run) = (plan.id.clone(), landed_commit(plan)?, plan.run.clone());
        task::blocking(move || {
            if let Some(landed) = landed
                && let Some(diff) = diff_landed(&repository, &id, &landed)?
            {
                return Ok(diff);
            }
            let kept = snapshots(&repository, &id)?;
            let shown = match named {
                Some(named) => Some(named),
                None => so_far(&repository, &base, from, &kept)?,
            };
            let Some((kind, commit)) = shown else { return Ok(PlanDiff::default()) };
            let reference = kept.into_iter().find(|(_, kept)| *kept == commit).map(|(name, _)| name);
            let mut diff = diff_of(&repository, &base, kind, &commit, reference)?;
            let by = repository.commit_head(&commit)?.run;
            if let Some(of) = diff.of.as_mut().filter(|of| of.kind != DiffSourceKind::Result) {
                of.earlier_run = by.is_some() && by.as_deref() != run.as_ref().map(RunId::as_str);
            }
            Ok(diff)
        })
        .await
    }

    /// Returns the commit that the plan names: its result, the commit from which the next run restarts, or
    /// the commit that the open question is about.
    async fn named(&self, plan: &Plan) -> Result<Option<(DiffSourceKind, CommitId)>, EngineError> {
        if let Some(head) = &plan.head_commit {
            return Ok(Some((DiffSourceKind::Result, commit_id(head)?)));
        }
        let work = match (&plan.take_up, plan.pending_decision()) {
            (Some(commit), _) => Some(commit.clone()),
            (None, Some(_)) => {
                let snapshot = self.store().plan_snapshot(&plan.id).await?;
                let pending = snapshot.and_then(|snapshot| snapshot.pending);
                pending.and_then(|open| open.question.work().map(str::to_owned))
            }
            (None, None) => None,
        };
        work.map(|commit| Ok((DiffSourceKind::GoesOn, commit_id(&commit)?))).transpose()
    }
}

/// Returns the commit by which a plan landed. The changes of a subplan are part of its parent's landing.
fn landed_commit(plan: &Plan) -> Result<Option<CommitId>, EngineError> {
    let landed = plan.landed_commit.as_deref().filter(|_| plan.place.is_none());
    landed.filter(|_| plan.stage.state() == State::Applied).map(commit_id).transpose()
}

/// Returns the changes of a landing: after it, the plan's own commits are not kept. Returns `None` if the
/// repository does not have the commit, or if the commit is not the plan's, because a plan without changes
/// lands nothing.
fn diff_landed(
    repository: &Repository,
    plan: &PlanId,
    landed: &CommitId,
) -> Result<Option<PlanDiff>, EngineError> {
    if !repository.commit_exists(landed)? {
        return Ok(None);
    }
    let Some(before) = repository.first_parent(landed)? else { return Ok(None) };
    if repository.has_foreign_commits(std::slice::from_ref(&before), landed, &trailer(plan.as_str()))? {
        return Ok(None);
    }
    diff_of(repository, &before, DiffSourceKind::Result, landed, None).map(Some)
}

fn diff_of(
    repository: &Repository,
    base: &CommitId,
    kind: DiffSourceKind,
    commit: &CommitId,
    reference: Option<String>,
) -> Result<PlanDiff, EngineError> {
    let stat = repository.stat(base, commit)?;
    let patch = repository.patch(base, commit)?;
    let label = repository.commit_head(commit)?.subject;
    Ok(PlanDiff {
        text: String::from_utf8_lossy(&patch).into_owned(),
        files: stat.files,
        lines_added: stat.lines_added,
        lines_deleted: stat.lines_deleted,
        of: Some(DiffSource { kind, commit: commit.to_string(), reference, label, earlier_run: false }),
    })
}

/// Returns the newest checkpoint that descends from the start of the current runs, or that start if there is
/// no such checkpoint. Other checkpoints belong to work that a person rolled back, so they cannot become the
/// plan's result.
fn so_far(
    repository: &Repository,
    base: &CommitId,
    from: Option<CommitId>,
    kept: &[(String, CommitId)],
) -> Result<Option<(DiffSourceKind, CommitId)>, GitError> {
    let begins = from.as_ref().unwrap_or(base);
    for (_, commit) in kept.iter().rev().take(LOOKED_THROUGH_MAX) {
        // The commit at which the run started is not its own work (page B7).
        if commit != begins && repository.is_ancestor(begins, commit)? {
            return Ok(Some((DiffSourceKind::Snapshot, commit.clone())));
        }
    }
    Ok(from.filter(|from| from != base).map(|from| (DiffSourceKind::GoesOn, from)))
}

/// Returns the checkpoints of a plan, oldest first.
pub(crate) fn snapshots(repository: &Repository, plan: &PlanId) -> Result<Vec<(String, CommitId)>, GitError> {
    let mut refs = repository.refs(&format!("{SNAPSHOTS}{plan}/"))?;
    refs.sort_by_key(|(name, _)| name.rsplit('/').next().and_then(|number| number.parse::<u64>().ok()));
    Ok(refs)
}
