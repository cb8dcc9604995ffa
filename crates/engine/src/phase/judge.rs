//! Judges the work of a run in the form that would land: synced with commits that others added to the branch,
//! validated, reviewed, and only then pushed to the remote.

use drydock_domain::{
    Command, Completion, ErrorClass, Publish, RejectedBy, Remains, ReviewResult, ValidationResult,
};
use drydock_worktree::{BackupRequest, Checkout, CommitId, Staged};

use super::review::ReviewOutcome;
use super::scope::{RunContext, RunOutcome, is_checkpoint, kept_as, signature};
use super::validate::ValidationOutcome;
use crate::error::EngineError;
use crate::sync::AfterRunSync;

/// Maximum number of times that commits added to the branch during judging are taken in.
const JOINS_MAX: usize = 5;

/// The work to judge.
pub(super) enum WorkToJudge {
    /// The captured worktree, and the commit at which the agent left the branch.
    Staged { staged: Staged, tip: CommitId },
    /// The commit at which the worktree was created.
    Joined(CommitId),
}

/// The work of a round, and the result of judging it.
pub(super) struct JudgedWork {
    /// The commit that contains the work.
    pub(super) head: CommitId,
    /// True if it also contains commits of others.
    pub(super) joined: bool,
    pub(super) verdict: JudgeOutcome,
}

/// The result of judging the work.
pub(super) enum JudgeOutcome {
    /// The run has ended.
    Ended(RunOutcome),
    /// The work goes back to the agent to be fixed, for these reasons.
    SentBack(RejectedBy, Vec<String>),
}

/// The result of validations and reviews.
enum Judgement {
    Good(Vec<ValidationResult>, Vec<ReviewResult>),
    Not(JudgeOutcome),
}

impl RunContext<'_> {
    /// Syncs the branch, validates the result, has it reviewed, and pushes it to the remote. Commits that
    /// arrive in between are judged too: only the exact commit that was judged completes.
    pub(super) async fn judge(
        &self,
        checkout: &Checkout,
        work: WorkToJudge,
        proposals: &mut usize,
    ) -> Result<JudgedWork, EngineError> {
        let mut head = self.take_up(checkout, work).await?;
        let mut others = false;
        let mut joined = self.together().sync_after(checkout, Publish::No).await?;
        for _ in 0..JOINS_MAX {
            match joined {
                AfterRunSync::Still => {}
                AfterRunSync::Moved(to) => {
                    head = self.without_own_folder(checkout, to).await?;
                    others = true;
                }
                AfterRunSync::Diverged(divergence) => {
                    let end = RunOutcome::Report(Box::new(Command::Diverge(divergence)));
                    return Ok(JudgedWork { head, joined: others, verdict: JudgeOutcome::Ended(end) });
                }
            }
            let (validations, reviews) = match self.opinion(&head, proposals).await? {
                Judgement::Good(validations, reviews) => (validations, reviews),
                Judgement::Not(verdict) => return Ok(JudgedWork { head, joined: others, verdict }),
            };
            // Files written by validations are not part of the work, and must not block the sync with commits
            // of others.
            if !validations.is_empty() {
                let (tree, at) = (checkout.clone(), head.clone());
                self.git(move |_| tree.put_back(&at)).await?;
            }
            joined = self.together().sync_after(checkout, Publish::IfAlone).await?;
            if matches!(joined, AfterRunSync::Still) {
                let completion = Completion::Executed { head: head.to_string(), validations, reviews };
                let end = RunOutcome::Report(Box::new(Command::Complete(self.run.clone(), completion)));
                return Ok(JudgedWork { head, joined: others, verdict: JudgeOutcome::Ended(end) });
            }
        }
        let text = format!(
            "others moved the branch {JOINS_MAX} times while its work was validated and \
                            reviewed"
        );
        let verdict = JudgeOutcome::Ended(self.failed(ErrorClass::Git, text));
        Ok(JudgedWork { head, joined: others, verdict })
    }

    /// Moves the branch to the work and returns the commit.
    async fn take_up(&self, checkout: &Checkout, work: WorkToJudge) -> Result<CommitId, EngineError> {
        let (staged, tip) = match work {
            WorkToJudge::Staged { staged, tip } => (staged, tip),
            WorkToJudge::Joined(commit) => return self.without_own_folder(checkout, commit).await,
        };
        let (commit, base) = (staged.commit().clone(), self.base()?);
        // A capture contains `.drydock/` as its parent has it, so a capture on top of the base is clean.
        let clean = *staged.parent() == base;
        self.together().made([commit.to_string()]).await?;
        let (set, plan, run) = (checkout.clone(), self.plan.id.clone(), self.run.clone());
        self.git(move |repository| {
            // The capture contains the files of commits that the agent made itself, but not the commits, so
            // those are backed up. Commits of an earlier round were made by drydock and need no backup.
            let own =
                || is_checkpoint(&repository, plan.as_str(), &[base.clone(), staged.parent().clone()], &tip);
            if tip != *staged.parent() && !repository.is_ancestor(&tip, staged.commit())? && !own()? {
                let signature = signature(&repository);
                let reason = "the agent made commits itself";
                let run = Some(run.as_str());
                repository.backup_branch(
                    &BackupRequest { plan: plan.as_str(), run, reason, signature: &signature },
                    &tip,
                )?;
            }
            set.branch_to(staged, &tip)
        })
        .await?;
        if clean { Ok(commit) } else { self.without_own_folder(checkout, commit).await }
    }

    async fn opinion(&self, head: &CommitId, proposals: &mut usize) -> Result<Judgement, EngineError> {
        let ended = |end| Ok(Judgement::Not(JudgeOutcome::Ended(end)));
        let validations = match self.validate(&self.tree()).await? {
            ValidationOutcome::Ran(validations) => validations,
            ValidationOutcome::Stopped => return ended(RunOutcome::Stopped),
            ValidationOutcome::OutOfTime => {
                return ended(self.exhausted_with(Remains::Result(Some(head.to_string()))));
            }
        };
        let failed: Vec<_> = validations.iter().filter(|run| run.required && !run.passed).collect();
        if !failed.is_empty() {
            let reasons = failed.iter().map(|run| format!("{}: {}", run.name, run.text)).collect();
            return Ok(Judgement::Not(JudgeOutcome::SentBack(RejectedBy::Validation, reasons)));
        }
        *proposals += 1;
        Ok(match self.review(*proposals, head).await? {
            ReviewOutcome::Agreed(reviews) => Judgement::Good(validations, reviews),
            ReviewOutcome::Refused(reasons) => {
                Judgement::Not(JudgeOutcome::SentBack(RejectedBy::Review, reasons))
            }
            ReviewOutcome::Ended(end) => Judgement::Not(JudgeOutcome::Ended(end)),
        })
    }

    /// Removes changes that others made in `.drydock/`: that folder is for drydock and its agents, and never
    /// lands.
    async fn without_own_folder(&self, checkout: &Checkout, head: CommitId) -> Result<CommitId, EngineError> {
        let (base, checkout) = (self.base()?, checkout.clone());
        let message = kept_as("Leave out .drydock", self.plan.id.as_str());
        let from = head.clone();
        let clean = self
            .git(move |repository| {
                let author = signature(&repository);
                repository.without_own_folder(&base, &from, &message, &author)
            })
            .await?;
        if clean != head {
            self.together().made([clean.to_string()]).await?;
            let to = clean.clone();
            self.git(move |_| checkout.branch_set(&to)).await?;
        }
        Ok(clean)
    }
}
