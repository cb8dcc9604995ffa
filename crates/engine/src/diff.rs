//! What a plan changes: its result, and as long as there is none the work that is kept. A person who is asked about
//! work must be able to see it before it is a result.

use drydock_domain::{Plan, PlanId, RunId, SNAPSHOTS, State, trailer};
use drydock_worktree::{CommitId, GitError, Repository};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::phase::commit_id;
use crate::task;

/// How many of the newest snapshots are looked through for one of the work that goes on.
const LOOKED_THROUGH_MAX: usize = 20;

/// What a plan changes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlanDiff {
    /// The patch.
    pub text: String,
    /// How many files it touches.
    pub files: u64,
    /// How many lines it adds.
    pub lines_added: u64,
    /// How many lines it deletes.
    pub lines_deleted: u64,
    /// Whose changes these are; nothing as long as no work is kept.
    pub of: Option<DiffOf>,
}

/// Whose changes a diff shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiffOf {
    /// What it is.
    pub kind: DiffKind,
    /// Its commit.
    pub commit: String,
    /// The ref that keeps it, where that is a snapshot.
    pub reference: Option<String>,
    /// The first line of its message.
    pub label: String,
    /// Whether it is the work of an earlier run than the plan's latest.
    pub earlier_run: bool,
}

/// What the commit is whose changes a diff shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiffKind {
    /// The result of Execute.
    Result,
    /// The work that a run goes on with.
    GoesOn,
    /// The latest snapshot.
    Snapshot,
}

impl Engine {
    /// Returns what a plan changes: its result, or the work so far.
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
            if let Some(of) = diff.of.as_mut().filter(|of| of.kind != DiffKind::Result) {
                of.earlier_run = by.is_some() && by.as_deref() != run.as_ref().map(RunId::as_str);
            }
            Ok(diff)
        })
        .await
    }

    /// Returns the commit that the plan itself names: its result, what the next run goes on with, or what the open
    /// question is about.
    async fn named(&self, plan: &Plan) -> Result<Option<(DiffKind, CommitId)>, EngineError> {
        if let Some(head) = &plan.head_commit {
            return Ok(Some((DiffKind::Result, commit_id(head)?)));
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
        work.map(|commit| Ok((DiffKind::GoesOn, commit_id(&commit)?))).transpose()
    }
}

/// Returns the commit by which a plan landed. The changes of a subplan are part of its parent's landing.
fn landed_commit(plan: &Plan) -> Result<Option<CommitId>, EngineError> {
    let landed = plan.landed_commit.as_deref().filter(|_| plan.place.is_none());
    landed.filter(|_| plan.stage.state() == State::Applied).map(commit_id).transpose()
}

/// Returns the changes of a landing, after which the plan's own commits are not kept. None if the commit is not in this
/// repository or not the plan's: a plan without changes lands nothing.
fn diff_landed(
    repository: &Repository,
    plan: &PlanId,
    landed: &CommitId,
) -> Result<Option<PlanDiff>, EngineError> {
    if !repository.commit_exists(landed)? {
        return Ok(None);
    }
    let Some(before) = repository.first_parent(landed)? else { return Ok(None) };
    if repository.others_wrote(std::slice::from_ref(&before), landed, &trailer(plan.as_str()))? {
        return Ok(None);
    }
    diff_of(repository, &before, DiffKind::Result, landed, None).map(Some)
}

fn diff_of(
    repository: &Repository,
    base: &CommitId,
    kind: DiffKind,
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
        of: Some(DiffOf { kind, commit: commit.to_string(), reference, label, earlier_run: false }),
    })
}

/// Returns the newest snapshot of what the runs of now begin at, or that itself where there is none. Snapshots of other
/// beginnings, which a person went back from, are not what the plan would come to.
fn so_far(
    repository: &Repository,
    base: &CommitId,
    from: Option<CommitId>,
    kept: &[(String, CommitId)],
) -> Result<Option<(DiffKind, CommitId)>, GitError> {
    let begins = from.as_ref().unwrap_or(base);
    for (_, commit) in kept.iter().rev().take(LOOKED_THROUGH_MAX) {
        // Where the run started is not its own work (page B7).
        if commit != begins && repository.is_ancestor(begins, commit)? {
            return Ok(Some((DiffKind::Snapshot, commit.clone())));
        }
    }
    Ok(from.filter(|from| from != base).map(|from| (DiffKind::GoesOn, from)))
}

/// Returns the snapshots of a plan, oldest first.
pub(crate) fn snapshots(repository: &Repository, plan: &PlanId) -> Result<Vec<(String, CommitId)>, GitError> {
    let mut refs = repository.refs(&format!("{SNAPSHOTS}{plan}/"))?;
    refs.sort_by_key(|(name, _)| name.rsplit('/').next().and_then(|number| number.parse::<u64>().ok()));
    Ok(refs)
}
