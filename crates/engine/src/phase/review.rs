//! Reviews: each reviewer of the action judges a numbered proposal, which is a commit, in a worktree of its own. What
//! it says counts for that commit and that run alone.

use drydock_domain::{Command, Event, ReviewOpinion, ReviewRun, Reviewer};
use drydock_worktree::CommitId;

use super::agents::{AgentEnd, Errand, Role, Verdict};
use super::leftovers::REVIEW;
use super::scope::{End, Scope};
use crate::error::EngineError;

/// What came of a proposal.
pub(super) enum Reviewed {
    /// Every critical reviewer acknowledged it.
    Agreed(Vec<ReviewRun>),
    /// Some did not, for these reasons.
    Refused(Vec<String>),
    /// The run is over.
    Ended(End),
}

impl Scope<'_> {
    /// Has a proposal reviewed by all reviewers of the action, one after the other.
    pub(super) async fn review(&self, number: usize, commit: &CommitId) -> Result<Reviewed, EngineError> {
        let reviewers = &self.plan.spec.agents.reviewers;
        if reviewers.is_empty() {
            return Ok(Reviewed::Agreed(Vec::new()));
        }
        self.note(Event::Proposed { number, commit: commit.to_string() }).await?;
        let (mut reviews, mut reasons) = (Vec::new(), Vec::new());
        for reviewer in reviewers {
            let opinion = match self.ask_reviewer(reviewer, number, commit).await? {
                Asked::Said(opinion) => opinion,
                Asked::Ended(end) => return Ok(Reviewed::Ended(end)),
            };
            let review = ReviewRun {
                agent: reviewer.agent.clone(),
                critical: reviewer.critical,
                commit: commit.to_string(),
                opinion,
            };
            self.note(Event::Reviewed { number, review: review.clone() }).await?;
            match &review.opinion {
                ReviewOpinion::Refused { reason } | ReviewOpinion::Silent { reason } if review.critical => {
                    reasons.push(format!("{}: {reason}", review.agent));
                }
                ReviewOpinion::Acknowledged
                | ReviewOpinion::Refused { .. }
                | ReviewOpinion::Silent { .. } => {}
            }
            reviews.push(review);
        }
        Ok(if reasons.is_empty() { Reviewed::Agreed(reviews) } else { Reviewed::Refused(reasons) })
    }

    async fn ask_reviewer(
        &self,
        reviewer: &Reviewer,
        number: usize,
        commit: &CommitId,
    ) -> Result<Asked, EngineError> {
        let path = self.directory().join(REVIEW);
        let (place, at) = (path.clone(), commit.clone());
        let checkout = self.git(move |repository| repository.checkout_detached(&place, &at)).await?;
        let errand = Errand {
            proposal: Some((number, commit.as_str())),
            ..Errand::of(&reviewer.agent, Role::Reviewer, &checkout)
        };
        let ended = self.agent(&errand).await?;
        // What a reviewer wrote there is nobody's work.
        self.git(move |repository| repository.checkout_remove(&path)).await?;
        Ok(match ended {
            AgentEnd::Finished { verdict, .. } => Asked::Said(opinion(verdict, number, commit.as_str())),
            // An advisory reviewer that fails or asks must not hold the plan up.
            // That the budget is used up holds for the plan, whoever noticed.
            AgentEnd::Ended(End::Report(report))
                if !reviewer.critical && !matches!(*report, Command::Exhaust { .. }) =>
            {
                Asked::Said(ReviewOpinion::Silent { reason: self.unheard(reviewer, &report).await? })
            }
            AgentEnd::Ended(end) => Asked::Ended(end),
        })
    }

    /// Returns why an advisory reviewer gave no verdict. What it wanted to know is told to people: nobody waits for them.
    async fn unheard(&self, reviewer: &Reviewer, report: &Command) -> Result<String, EngineError> {
        let Command::Ask(_, question) = report else { return Ok("it did not get to a verdict".to_owned()) };
        let (agent, plan, asks) = (&reviewer.agent, &self.plan.id, &question.text);
        let text = format!("reviewer {agent} of {plan} asks, and the plan goes on without it: {asks}");
        self.note(Event::Alert { priority: "low", text }).await?;
        Ok(format!("it asks: {asks}"))
    }
}

/// What asking a reviewer came to.
enum Asked {
    Said(ReviewOpinion),
    Ended(End),
}

/// Reads a verdict. One that names another version than the proposal counts for nothing.
fn opinion(verdict: Option<Verdict>, number: usize, commit: &str) -> ReviewOpinion {
    let Some(verdict) = verdict else {
        return ReviewOpinion::Silent { reason: "it gave no verdict".to_owned() };
    };
    if let Some(version) = &verdict.version
        && *version != number.to_string()
        && (version.len() < COMMIT_CHARS_MIN || !commit.starts_with(version.as_str()))
    {
        let reason = format!("its verdict is about {version}, and not about proposal {number}");
        return ReviewOpinion::Silent { reason };
    }
    let reason = || verdict.reason.clone().unwrap_or_else(|| "it gave no reason".to_owned());
    match verdict.opinion {
        drydock_agent::Opinion::Ack => ReviewOpinion::Acknowledged,
        drydock_agent::Opinion::Refuse => ReviewOpinion::Refused { reason: reason() },
    }
}

/// How much of a commit's id names it.
const COMMIT_CHARS_MIN: usize = 7;

#[cfg(test)]
mod tests {
    use super::{Verdict, opinion};
    use drydock_agent::Opinion;
    use drydock_domain::ReviewOpinion;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    /// Breaks when a yes to another version counts for this one.
    #[test]
    fn a_verdict_counts_for_the_version_it_names() {
        let said = |version: Option<&str>| {
            let verdict =
                Verdict { opinion: Opinion::Ack, version: version.map(str::to_owned), reason: None };
            opinion(Some(verdict), 3, COMMIT) == ReviewOpinion::Acknowledged
        };
        assert!(said(None) && said(Some("3")) && said(Some(COMMIT)) && said(Some("0123456")));
        assert!(!said(Some("2")) && !said(Some("0")) && !said(Some("fedcba9")) && !said(Some("012345")));
        assert!(matches!(opinion(None, 1, COMMIT), ReviewOpinion::Silent { .. }));
    }
}
