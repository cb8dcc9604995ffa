//! Judging the work of a run as it would land: joined with what others put on the branch, validated, reviewed, and only
//! then sent to the remote.

use drydock_domain::{Command, Completion, ErrorClass, Publish, ReviewRun, SentBack, ValidationRun};
use drydock_worktree::{Checkout, CommitId, PinOrder, Staged};

use super::review::Reviewed;
use super::scope::{End, Scope, is_checkpoint, kept_as, signature};
use super::validate::Validated;
use crate::error::EngineError;
use crate::sync::Joined;

/// How often what others put on the branch while the work was being judged is taken in.
const JOINS_MAX: usize = 5;

/// What is to be judged.
pub(super) enum Work {
    /// What is in the worktree, whose branch its agent left at `tip`.
    Staged { staged: Staged, tip: CommitId },
    /// What the worktree was made at.
    Joined(CommitId),
}

/// The work of a round, and what was said of it.
pub(super) struct Judged {
    /// The commit that holds it.
    pub(super) head: CommitId,
    /// Whether it holds commits of others too.
    pub(super) joined: bool,
    pub(super) verdict: Verdict,
}

/// What was said of the work.
pub(super) enum Verdict {
    /// The run is over.
    Ended(End),
    /// The agent must mend it.
    SentBack(SentBack, Vec<String>),
}

/// What validations and reviewers said.
enum Opinion {
    Good(Vec<ValidationRun>, Vec<ReviewRun>),
    Not(Verdict),
}

impl Scope<'_> {
    /// Takes in what others put on the branch meanwhile, validates the result, has it reviewed, and sends it to the
    /// remote. What arrives in between is judged too: nothing completes that was not judged as it is.
    pub(super) async fn judge(
        &self,
        checkout: &Checkout,
        work: Work,
        proposals: &mut usize,
    ) -> Result<Judged, EngineError> {
        let mut head = self.take_up(checkout, work).await?;
        let mut others = false;
        let mut joined = self.together().after(checkout, Publish::No).await?;
        for _ in 0..JOINS_MAX {
            match joined {
                Joined::Still => {}
                Joined::Moved(to) => {
                    head = self.without_own_folder(checkout, to).await?;
                    others = true;
                }
                Joined::Diverged(divergence) => {
                    let end = End::Report(Box::new(Command::Diverge(divergence)));
                    return Ok(Judged { head, joined: others, verdict: Verdict::Ended(end) });
                }
            }
            let (validations, reviews) = match self.opinion(&head, proposals).await? {
                Opinion::Good(validations, reviews) => (validations, reviews),
                Opinion::Not(verdict) => return Ok(Judged { head, joined: others, verdict }),
            };
            // What the validations wrote is nobody's work, and must not be in the way of what others did.
            if !validations.is_empty() {
                let (tree, at) = (checkout.clone(), head.clone());
                self.git(move |_| tree.put_back(&at)).await?;
            }
            joined = self.together().after(checkout, Publish::IfAlone).await?;
            if matches!(joined, Joined::Still) {
                let completion = Completion::Executed { head: head.to_string(), validations, reviews };
                let end = End::Report(Box::new(Command::Complete(self.run.clone(), completion)));
                return Ok(Judged { head, joined: others, verdict: Verdict::Ended(end) });
            }
        }
        let text = format!("others moved the branch {JOINS_MAX} times while its work was being judged");
        let verdict = Verdict::Ended(self.failed(ErrorClass::Git, text));
        Ok(Judged { head, joined: others, verdict })
    }

    /// Puts the branch at the work, and returns the commit.
    async fn take_up(&self, checkout: &Checkout, work: Work) -> Result<CommitId, EngineError> {
        let (staged, tip) = match work {
            Work::Staged { staged, tip } => (staged, tip),
            Work::Joined(commit) => return self.without_own_folder(checkout, commit).await,
        };
        let (commit, base) = (staged.commit().clone(), self.base()?);
        // A capture has of that folder what its parent has.
        let clean = *staged.parent() == base;
        self.together().made([commit.to_string()]).await?;
        let (set, plan, run) = (checkout.clone(), self.plan.id.clone(), self.run.clone());
        self.git(move |repository| {
            // Commits of the agent's own are in the capture as far as their files are; they themselves are kept too.
            // Those of an earlier round are drydock's.
            let own =
                || is_checkpoint(&repository, plan.as_str(), &[base.clone(), staged.parent().clone()], &tip);
            if tip != *staged.parent() && !repository.is_ancestor(&tip, staged.commit())? && !own()? {
                let signature = signature(&repository);
                let reason = "the agent made commits of its own";
                let run = Some(run.as_str());
                repository.pin_branch(
                    &PinOrder { plan: plan.as_str(), run, reason, signature: &signature },
                    &tip,
                )?;
            }
            set.branch_to(staged, &tip)
        })
        .await?;
        if clean { Ok(commit) } else { self.without_own_folder(checkout, commit).await }
    }

    async fn opinion(&self, head: &CommitId, proposals: &mut usize) -> Result<Opinion, EngineError> {
        let ended = |end| Ok(Opinion::Not(Verdict::Ended(end)));
        let validations = match self.validate(&self.tree()).await? {
            Validated::Ran(validations) => validations,
            Validated::Stopped => return ended(End::Stopped),
            Validated::OutOfTime => return ended(self.exhausted_with(Some(head.to_string()))),
        };
        let failed: Vec<_> = validations.iter().filter(|run| run.required && !run.passed).collect();
        if !failed.is_empty() {
            let reasons = failed.iter().map(|run| format!("{}: {}", run.name, run.text)).collect();
            return Ok(Opinion::Not(Verdict::SentBack(SentBack::Validation, reasons)));
        }
        *proposals += 1;
        Ok(match self.review(*proposals, head).await? {
            Reviewed::Agreed(reviews) => Opinion::Good(validations, reviews),
            Reviewed::Refused(reasons) => Opinion::Not(Verdict::SentBack(SentBack::Review, reasons)),
            Reviewed::Ended(end) => Opinion::Not(Verdict::Ended(end)),
        })
    }

    /// Takes what others put into `.drydock/` back out: that folder is for drydock and its agents, and never lands.
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
