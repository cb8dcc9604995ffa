//! The questions that drydock asks, with their text and their options.

use serde_json::Value;

use crate::decide::REVERSIONS_MAX;
use crate::{
    Act, Budget, DecisionKind, DecisionOption, InterruptedRun, OptionEffect, POSTPONED_MAX, Phase, Plan,
    PlanSpec, Postponed, Question, RejectedBy, counted,
};

impl Question {
    /// The option of a gate that approves the phase.
    pub const APPROVE: &'static str = "approve";

    /// The option of an agent's question that is answered by the note.
    pub const ANSWERED: &'static str = "answered";

    /// Returns the gate question that a profile asks before a phase.
    pub fn gate(before: Phase, spec: &PlanSpec) -> Question {
        let profile = &spec.profile.name;
        let text = match (before, spec.target.named()) {
            (Phase::Apply, Some(branch)) => {
                format!("Ready to land on {branch} (profile {profile}). Land it?")
            }
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => {
                format!("Ready to start {before} (profile {profile}). Start it?")
            }
        };
        Question {
            kind: DecisionKind::Gate,
            text,
            options: vec![
                option(Question::APPROVE, before.start_label(&spec.target), OptionEffect::Approve),
                option("reject", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": before }),
        }
    }

    /// Returns the question to ask when a phase could not start automatically.
    pub fn held_back(before: Phase, reason: &str) -> Question {
        Question {
            kind: DecisionKind::Gate,
            text: format!("{before} could not start automatically: {reason}. Try again?"),
            options: vec![
                option(Question::APPROVE, "Check again".to_owned(), OptionEffect::Approve),
                option("reject", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": before, "reason": reason }),
        }
    }

    /// Returns the question that blocks a plan after a person stopped the command that ran it.
    pub fn stopped(next: Phase, interruption: Option<&InterruptedRun>) -> Question {
        let restart = interruption.and_then(|one| one.restart.as_ref());
        let from =
            restart.map(|restart| format!(" from checkpoint {}", restart.checkpoint)).unwrap_or_default();
        Question {
            kind: DecisionKind::Gate,
            text: format!("A person stopped {next} at the command line. Continue{from}?"),
            options: vec![
                option(Question::APPROVE, format!("Continue{from}"), OptionEffect::Approve),
                option("reject", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({
                "before": next,
                "stopped": true,
                "checkpoint": restart.map(|restart| restart.checkpoint),
            }),
        }
    }

    /// Returns the question to ask after `times` consecutive interruptions without a new checkpoint.
    pub fn interrupted_often(times: u32, plan: &Plan) -> Question {
        let phase = plan.stage.phase();
        let restart = plan.interruption.as_ref().and_then(|one| one.restart.as_ref());
        let from =
            restart.map(|restart| format!(" from checkpoint {}", restart.checkpoint)).unwrap_or_default();
        let mut options =
            vec![option(Question::APPROVE, format!("Run {phase} again{from}"), OptionEffect::Approve)];
        if restart.is_some() || plan.has_work_so_far() {
            let (commit, replaces) = (plan.began_at().to_owned(), plan.replaces.clone());
            let start = OptionEffect::StartFrom { commit, replaces };
            options.push(option("start_over", "Start over without the work so far".to_owned(), start));
        }
        options.push(option("reject", cancels(), OptionEffect::Cancel));
        Question {
            kind: DecisionKind::Gate,
            text: format!(
                "{phase} was interrupted {times} times in a row without a new checkpoint. Run it again{from}?"
            ),
            options,
            details: serde_json::json!({
                "before": phase,
                "interruptions": times,
                "checkpoint": restart.map(|restart| restart.checkpoint),
            }),
        }
    }

    /// Returns the question that an agent asks. `abort` always cancels, even if the agent gives it another
    /// meaning. An option without an id, or with the id of an earlier option, is left out. If no option
    /// remains, `answered` continues with the person's note.
    pub fn from_agent(text: String, offered: Vec<(String, String)>) -> Question {
        let mut options: Vec<DecisionOption> = Vec::new();
        for (id, label) in offered {
            let known = options.iter().any(|option| option.id == id);
            if !known && !id.trim().is_empty() && id != "abort" {
                options.push(option(&id, label, OptionEffect::Requeue));
            }
        }
        if options.is_empty() {
            let label = "Send answer".to_owned();
            options.push(option(Question::ANSWERED, label, OptionEffect::Requeue));
        }
        options.push(option("abort", cancels(), OptionEffect::Cancel));
        Question { kind: DecisionKind::Agent, text, options, details: Value::Object(Default::default()) }
    }

    /// Returns true if an option needs a note from the person.
    pub fn needs_note(&self, option: &str) -> bool {
        // `answered` is added only if the agent offers no option; `abort` is always present.
        self.kind == DecisionKind::Agent && option == Question::ANSWERED && self.options.len() <= 2
    }

    /// Returns the commit with the work so far, from which the answers continue.
    pub fn work(&self) -> Option<&str> {
        match self.kind {
            // The answers to these start from different commits.
            DecisionKind::Divergence | DecisionKind::Gate => return None,
            DecisionKind::Agent
            | DecisionKind::Permission
            | DecisionKind::ApplyOutcome
            | DecisionKind::Validation
            | DecisionKind::Conflict
            | DecisionKind::Subplans
            | DecisionKind::Review
            | DecisionKind::RateLimit
            | DecisionKind::Budget => {}
        }
        self.options.iter().find_map(|option| match &option.effect {
            OptionEffect::StartFrom { commit, .. } | OptionEffect::Review { commit, .. } => {
                Some(commit.as_str())
            }
            OptionEffect::SetBudget { work, .. } | OptionEffect::Grant { work, .. } => work.as_deref(),
            OptionEffect::Approve
            | OptionEffect::Requeue
            | OptionEffect::WaitUntil(_)
            | OptionEffect::Join(_)
            | OptionEffect::RetryLost
            | OptionEffect::DropLost
            | OptionEffect::Revert
            | OptionEffect::Cancel => None,
        })
    }

    /// Returns the question with a fact that became known after it was asked. The latest fact replaces the
    /// previous one.
    #[must_use]
    pub(crate) fn learning(mut self, fact: &str) -> Question {
        let behind = |fact: &str| format!(" Since then: {fact}");
        if let Some(known) = self.details["since"].as_str().map(behind)
            && let Some(asked) = self.text.strip_suffix(&known)
        {
            self.text = asked.to_owned();
        }
        self.text.push_str(&behind(fact));
        self.details["since"] = serde_json::json!(fact);
        self
    }

    /// Returns the question with answers that make the next run continue from the work so far instead of
    /// starting over.
    #[must_use]
    pub fn going_on_with(mut self, work: &str, plan: &Plan) -> Question {
        for option in &mut self.options {
            let (commit, back) = (work.to_owned(), plan.replaces.clone());
            match &mut option.effect {
                effect @ OptionEffect::Requeue => {
                    *effect = OptionEffect::StartFrom { commit, replaces: back };
                }
                OptionEffect::Grant { work, replaces, .. } => (*work, *replaces) = (Some(commit), back),
                OptionEffect::Approve
                | OptionEffect::StartFrom { .. }
                | OptionEffect::Review { .. }
                | OptionEffect::WaitUntil(_)
                | OptionEffect::SetBudget { .. }
                | OptionEffect::Join(_)
                | OptionEffect::RetryLost
                | OptionEffect::DropLost
                | OptionEffect::Revert
                | OptionEffect::Cancel => {}
            }
        }
        self
    }

    /// Returns the question to ask when a result was sent back to its agent the maximum number of times.
    /// `head` is the work so far, from which another round continues.
    pub fn rounds_used_up(
        kind: RejectedBy,
        rounds: usize,
        reasons: &[String],
        head: &str,
        plan: &Plan,
    ) -> Question {
        let (kind, what) = match kind {
            RejectedBy::Validation => (DecisionKind::Validation, "still fails its validations"),
            RejectedBy::Review => (DecisionKind::Review, "is still refused by its reviewers"),
        };
        let goes_on = OptionEffect::StartFrom { commit: head.to_owned(), replaces: plan.replaces.clone() };
        let mut options = vec![option("another_round", tries_again(plan), goes_on)];
        if plan.reversions < REVERSIONS_MAX {
            let label = Act::Revert.label().to_owned();
            options.push(option("revise_strategy", label, OptionEffect::Revert));
        }
        options.push(option("abort", cancels(), OptionEffect::Cancel));
        Question {
            kind,
            text: format!(
                "After {rounds} rounds the result {what}: {}. What should happen next?",
                reasons.join("; ")
            ),
            options,
            details: serde_json::json!({ "rounds": rounds, "reasons": reasons, "head": head }),
        }
    }

    /// Returns the question to ask when a reviewer gave no valid verdict after all attempts. `head` is the
    /// proposal.
    pub fn no_verdict(reviewer: &str, asked: usize, reason: &str, head: &str, plan: &Plan) -> Question {
        let (commit, replaces) = (head.to_owned(), plan.replaces.clone());
        let again = OptionEffect::Review { commit: commit.clone(), replaces: replaces.clone() };
        let goes_on = OptionEffect::StartFrom { commit, replaces };
        let mut options = vec![
            option("ask_again", format!("Ask {reviewer} again"), again),
            option("another_round", tries_again(plan), goes_on),
        ];
        if plan.reversions < REVERSIONS_MAX {
            options.push(option("revise_strategy", Act::Revert.label().to_owned(), OptionEffect::Revert));
        }
        options.push(option("abort", cancels(), OptionEffect::Cancel));
        Question {
            kind: DecisionKind::Review,
            text: format!(
                "Reviewer {reviewer} was asked {asked} times and gave no valid verdict: {reason}. What should happen next?"
            ),
            options,
            details: serde_json::json!({ "reviewer": reviewer, "asked": asked, "reason": reason, "head": head }),
        }
    }

    /// Returns the question to ask when a plan has used up its budget, or has too little left for its
    /// subplans. `work` is the work so far.
    pub fn budget(plan: &Plan, work: Option<String>) -> Question {
        let (spent, used_up) = (plan.used(), plan.budget.used_up(plan.used()));
        let raised = plan.budget.raised(plan.spec.budget, spent, plan.parts());
        let why = if used_up.is_empty() {
            let (left, pieces) = (plan.left(), plan.parts() - 1);
            let pieces = counted(pieces, "subplan");
            format!("The plan's remaining budget ({left}) is too small for the plan and {pieces}")
        } else {
            format!("The plan has used up its budget: {}", used_up.join(", "))
        };
        let set = |budget| OptionEffect::SetBudget { budget, work: work.clone() };
        Question {
            kind: DecisionKind::Budget,
            text: format!("{why}. Its work is kept. What should happen next?"),
            options: vec![
                option("raise", format!("Continue with {raised}"), set(raised)),
                option("unlimited", "Continue without a limit".to_owned(), set(Budget::UNLIMITED)),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "budget": plan.budget, "spent": spent, "used_up": used_up }),
        }
    }

    /// Returns the question to ask when Execute is complete and changed nothing.
    pub fn nothing_changed() -> Question {
        Question {
            kind: DecisionKind::Gate,
            text: "Execute is complete and changed nothing, so there is nothing to land. What should \
                   happen next?"
                .to_owned(),
            options: vec![
                option("run_again", "Let the agent try again".to_owned(), OptionEffect::Requeue),
                option("finish", "Close without landing".to_owned(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": Phase::Apply, "nothing_changed": true }),
        }
    }

    /// Returns the question to ask when a rate limit is met too often, or lasts longer than a plan waits
    /// without asking.
    pub fn rate_limit(postponed: &Postponed) -> Question {
        let Postponed { until, agent, times, .. } = postponed;
        let what = if *times > POSTPONED_MAX {
            format!(
                "Agent {agent} reached its rate limit {times} times in a row; the next attempt is at {until}"
            )
        } else {
            format!(
                "Agent {agent} reached its rate limit; the next attempt is at {until}, too late to wait without asking"
            )
        };
        let wait = Postponed { times: 0, ..postponed.clone() };
        Question {
            kind: DecisionKind::RateLimit,
            text: format!("{what}. What should happen next?"),
            options: vec![
                option("retry", "Retry now".to_owned(), OptionEffect::Requeue),
                option("wait", format!("Wait until {until}"), OptionEffect::WaitUntil(wait)),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "agent": agent, "until": until.to_string(), "times": times }),
        }
    }

    /// Returns the question to ask when the target's history no longer shows whether a landing happened.
    pub fn apply_outcome(target: &str, from: &str, to: &str) -> Question {
        Question {
            kind: DecisionKind::ApplyOutcome,
            text: format!(
                "{target} was rewritten while {to} was being landed on {from}; it is unknown whether it \
                 landed. Land it again on {target} as it is now?"
            ),
            options: vec![
                option("retry", format!("Land on {target} as it is now"), OptionEffect::Requeue),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "target": target, "from": from, "to": to }),
        }
    }
}

/// Returns the label of every option that cancels the plan.
pub(crate) fn cancels() -> String {
    Act::Cancel.label().to_owned()
}

fn tries_again(plan: &Plan) -> String {
    format!("Let {} try again", plan.spec.agents.execute.as_deref().unwrap_or("the agent"))
}

pub(crate) fn option(id: &str, label: String, effect: OptionEffect) -> DecisionOption {
    DecisionOption { id: id.to_owned(), label, effect }
}
