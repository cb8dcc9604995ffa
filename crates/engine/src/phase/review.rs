//! Reviews: each reviewer of the action judges a numbered proposal, which is a commit, in its own worktree. A
//! verdict counts only for that commit and that run.

use drydock_domain::{Command, Event, Question, ReviewOpinion, ReviewResult, ReviewerSpec};
use drydock_worktree::CommitId;

use super::agents::{AgentAssignment, AgentEnd, AgentRole, ReviewerVerdict};
use super::leftovers::REVIEW;
use super::scope::{RunContext, RunOutcome};
use crate::error::EngineError;

/// Maximum number of times that a reviewer is asked for a verdict on one proposal.
const ASKED_MAX: usize = 3;

/// The result of reviewing a proposal.
pub(super) enum ReviewOutcome {
    /// Every critical reviewer acknowledged it.
    Agreed(Vec<ReviewResult>),
    /// Critical reviewers refused it, for these reasons.
    Refused(Vec<String>),
    /// The run has ended.
    Ended(RunOutcome),
}

impl RunContext<'_> {
    /// Asks all reviewers of the action about a proposal, one after the other.
    pub(super) async fn review(
        &self,
        number: usize,
        commit: &CommitId,
    ) -> Result<ReviewOutcome, EngineError> {
        let reviewers = &self.plan.spec.agents.reviewers;
        if reviewers.is_empty() {
            return Ok(ReviewOutcome::Agreed(Vec::new()));
        }
        self.emit(Event::Proposed { number, commit: commit.to_string() }).await?;
        let (mut reviews, mut reasons) = (Vec::new(), Vec::new());
        for reviewer in reviewers {
            let review = match self.ask_until_verdict(reviewer, number, commit).await? {
                Ok(review) => review,
                Err(end) => return Ok(ReviewOutcome::Ended(end)),
            };
            match &review.opinion {
                ReviewOpinion::Refused { reason } if review.critical => {
                    reasons.push(format!("{}: {reason}", review.agent));
                }
                ReviewOpinion::Acknowledged
                | ReviewOpinion::Refused { .. }
                | ReviewOpinion::Silent { .. } => {}
            }
            reviews.push(review);
        }
        Ok(if reasons.is_empty() { ReviewOutcome::Agreed(reviews) } else { ReviewOutcome::Refused(reasons) })
    }

    /// Asks a reviewer, and asks again if it gives no verdict. A missing verdict is not about the work, so
    /// the writer has nothing to fix. If a critical reviewer stays silent, a person is asked.
    async fn ask_until_verdict(
        &self,
        reviewer: &ReviewerSpec,
        number: usize,
        commit: &CommitId,
    ) -> Result<Result<ReviewResult, RunOutcome>, EngineError> {
        let mut said = Vec::new();
        let mut asked = 0;
        loop {
            asked += 1;
            let answer = self.ask_reviewer(reviewer, number, commit, &said).await?;
            let (opinion, silent) = match answer {
                ReviewerReply::Said(opinion) => (opinion, None),
                ReviewerReply::NoVerdict(reason) => {
                    (ReviewOpinion::Silent { reason: reason.clone() }, Some(reason))
                }
                ReviewerReply::Ended(end) => return Ok(Err(end)),
            };
            let review = ReviewResult {
                agent: reviewer.agent.clone(),
                critical: reviewer.critical,
                commit: commit.to_string(),
                opinion,
            };
            self.emit(Event::Reviewed { number, review: review.clone() }).await?;
            match silent {
                None => return Ok(Ok(review)),
                Some(reason) if asked < ASKED_MAX => {
                    said = vec![format!(
                        "Your review was not valid: {reason}. Review it again and end with your verdict."
                    )];
                }
                Some(_) if !reviewer.critical => return Ok(Ok(review)),
                Some(reason) => {
                    let question =
                        Question::no_verdict(&reviewer.agent, asked, &reason, commit.as_str(), &self.plan);
                    let ask = Command::Ask(self.run.clone(), question);
                    return Ok(Err(RunOutcome::Report(Box::new(ask))));
                }
            }
        }
    }

    async fn ask_reviewer(
        &self,
        reviewer: &ReviewerSpec,
        number: usize,
        commit: &CommitId,
        said: &[String],
    ) -> Result<ReviewerReply, EngineError> {
        let path = self.directory().join(REVIEW);
        let (place, at) = (path.clone(), commit.clone());
        let checkout = self.git(move |repository| repository.checkout_detached(&place, &at)).await?;
        let errand = AgentAssignment {
            proposal: Some((number, commit.as_str())),
            said,
            ..AgentAssignment::of(&reviewer.agent, AgentRole::Reviewer, &checkout)
        };
        let ended = self.agent(&errand).await?;
        // Files that a reviewer wrote are not part of the work.
        self.git(move |repository| repository.checkout_remove(&path)).await?;
        Ok(match ended {
            AgentEnd::Finished { verdict, .. } => match opinion(verdict, number, commit.as_str()) {
                ReviewOpinion::Silent { reason } => ReviewerReply::NoVerdict(reason),
                opinion => ReviewerReply::Said(opinion),
            },
            // An advisory reviewer that fails or asks must not block the plan. A used-up budget applies to
            // the whole plan, regardless of which agent used it up.
            AgentEnd::Ended(RunOutcome::Report(report))
                if !reviewer.critical && !matches!(*report, Command::Exhaust { .. }) =>
            {
                ReviewerReply::Said(ReviewOpinion::Silent { reason: self.unheard(reviewer, &report).await? })
            }
            AgentEnd::Ended(end) => ReviewerReply::Ended(end),
        })
    }

    /// Returns why an advisory reviewer gave no verdict. Its question, if it asked one, becomes an alert: the
    /// plan does not wait for an answer.
    async fn unheard(&self, reviewer: &ReviewerSpec, report: &Command) -> Result<String, EngineError> {
        let Command::Ask(_, question) = report else { return Ok("it ended without a verdict".to_owned()) };
        let (agent, plan, asks) = (&reviewer.agent, &self.plan.id, &question.text);
        let text = format!(
            "reviewer {agent} of {plan} asked a question, and the plan continues without \
                            it: {asks}"
        );
        self.emit(Event::Alert { priority: "low", text }).await?;
        Ok(format!("it asked: {asks}"))
    }
}

/// A reviewer's reply.
enum ReviewerReply {
    Said(ReviewOpinion),
    /// It finished without a valid verdict, for this reason.
    NoVerdict(String),
    Ended(RunOutcome),
}

/// Converts a verdict. A verdict that names another version than the proposal does not count.
fn opinion(verdict: Option<ReviewerVerdict>, number: usize, commit: &str) -> ReviewOpinion {
    let Some(verdict) = verdict else {
        return ReviewOpinion::Silent { reason: "it gave no verdict".to_owned() };
    };
    if let Some(version) = &verdict.version
        && *version != number.to_string()
        && (version.len() < COMMIT_CHARS_MIN || !commit.starts_with(version.as_str()))
    {
        let reason = format!("its verdict is about {version}, not about proposal {number}");
        return ReviewOpinion::Silent { reason };
    }
    let reason = || verdict.reason.clone().unwrap_or_else(|| "it gave no reason".to_owned());
    match verdict.opinion {
        drydock_agent::VerdictKind::Ack => ReviewOpinion::Acknowledged,
        drydock_agent::VerdictKind::Refuse => ReviewOpinion::Refused { reason: reason() },
    }
}

/// Minimum length of an abbreviated commit id.
const COMMIT_CHARS_MIN: usize = 7;

#[cfg(test)]
mod tests {
    use super::{ReviewerVerdict, opinion};
    use drydock_agent::VerdictKind;
    use drydock_domain::ReviewOpinion;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// Breaks when an acknowledgement of another version counts for this one.
    #[test]
    fn a_verdict_counts_for_the_version_it_names() {
        let said = |version: Option<&str>| {
            let verdict = ReviewerVerdict {
                opinion: VerdictKind::Ack,
                version: version.map(str::to_owned),
                reason: None,
            };
            opinion(Some(verdict), 3, COMMIT) == ReviewOpinion::Acknowledged
        };
        assert!(said(None) && said(Some("3")) && said(Some(COMMIT)) && said(Some("0123456")));
        assert!(!said(Some("2")) && !said(Some("0")) && !said(Some("fedcba9")) && !said(Some("012345")));
        assert!(matches!(opinion(None, 1, COMMIT), ReviewOpinion::Silent { .. }));
    }
}
