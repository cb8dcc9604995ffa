//! Decisions: questions to a person, with the plan, phase and run they belong to. They are opened in the same
//! commit as the state that asks, and every option says what it will do.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::decide::REVERSIONS_MAX;
use crate::{
    Act, Budget, DecisionId, GrantTerms, Interruption, Name, POSTPONED_MAX, Phase, Piece, Plan, PlanId,
    Postponed, RunId, Side, Spec, Timestamp,
};

/// A question to a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// The plan that asks.
    pub plan: PlanId,
    /// The phase it asks in.
    pub phase: Phase,
    /// The run it asks for, if one had started.
    pub run: Option<RunId>,
    /// What is asked.
    pub question: Question,
    /// Whether it still waits.
    pub status: DecisionStatus,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// What is asked, and what can be answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// What kind of question.
    pub kind: DecisionKind,
    /// The question itself.
    pub text: String,
    /// The answers that are possible.
    pub options: Vec<DecisionOption>,
    /// What a person needs to know to answer.
    pub details: Value,
}

/// What kind of question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// May the next phase start?
    Gate,
    /// An agent asks.
    Agent,
    /// May an agent use a tool?
    Permission,
    /// The branch and its remote have diverged.
    Divergence,
    /// It cannot be told whether a landing happened.
    ApplyOutcome,
    /// The result fails its validations however often the agent mends it.
    Validation,
    /// The result of a subplan conflicts with what has joined.
    Conflict,
    /// Subplans came to nothing.
    Subplans,
    /// The reviewers do not agree however often the agent mends the result.
    Review,
    /// An agent's rate limit is met too often, or lasts too long to wait for unasked.
    RateLimit,
    /// The plan has used up its budget.
    Budget,
}

impl DecisionKind {
    /// Returns the name used in JSON and in the store.
    pub fn name(self) -> &'static str {
        match self {
            DecisionKind::Gate => "gate",
            DecisionKind::Agent => "agent",
            DecisionKind::Permission => "permission",
            DecisionKind::Divergence => "divergence",
            DecisionKind::ApplyOutcome => "apply_outcome",
            DecisionKind::Validation => "validation",
            DecisionKind::Conflict => "conflict",
            DecisionKind::Subplans => "subplans",
            DecisionKind::Review => "review",
            DecisionKind::RateLimit => "rate_limit",
            DecisionKind::Budget => "budget",
        }
    }
}

/// One possible answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionOption {
    /// What is typed to choose it.
    pub id: String,
    /// What it means.
    pub label: String,
    /// What it does.
    pub effect: OptionEffect,
}

/// What an answer does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OptionEffect {
    /// The next phase may start.
    Approve,
    /// The phase starts anew, with the answer as feedback.
    Requeue,
    /// The phase starts anew on this commit; in Apply, on another than was judged, Execute does.
    StartFrom {
        /// Where the new run begins.
        commit: String,
        /// Where the remote is that the branch shall replace, when the person says so.
        replaces: Option<String>,
    },
    /// The phase starts again on this commit without a writer: its validations run and its reviewers are asked again.
    Review {
        /// The proposal.
        commit: String,
        /// The tip of the remote that the branch is to replace.
        replaces: Option<String>,
    },
    /// A permission is recorded, and the phase starts again, on the work so far if there is any.
    Grant {
        /// The request that is granted or refused.
        terms: GrantTerms,
        /// The commit that keeps the work.
        work: Option<String>,
        /// The tip of the remote that the branch is to replace.
        replaces: Option<String>,
    },
    /// The phase starts anew when this time has come.
    WaitUntil(Postponed),
    /// The plan may use this much, and its phase starts anew, on the work so far where there is some.
    SetBudget {
        /// What it may use.
        budget: Budget,
        /// The commit that keeps the work.
        work: Option<String>,
    },
    /// The result of a subplan is settled like this.
    Join(JoinHow),
    /// The subplans that came to nothing are tried anew.
    RetryLost,
    /// The plan goes on without them.
    DropLost,
    /// The plan goes back to Strategize, with the answer as feedback.
    Revert,
    /// The plan is cancelled.
    Cancel,
}

impl OptionEffect {
    /// Returns the name used in JSON.
    pub fn name(&self) -> &'static str {
        match self {
            OptionEffect::Approve => "approve",
            OptionEffect::Requeue => "requeue",
            OptionEffect::Grant { .. } => "grant",
            OptionEffect::StartFrom { .. } => "start_from",
            OptionEffect::Review { .. } => "review",
            OptionEffect::WaitUntil(_) => "wait_until",
            OptionEffect::SetBudget { .. } => "set_budget",
            OptionEffect::Join(_) => "join",
            OptionEffect::RetryLost => "retry_lost",
            OptionEffect::DropLost => "drop_lost",
            OptionEffect::Revert => "revert",
            OptionEffect::Cancel => "cancel",
        }
    }
}

/// How a result that conflicts is settled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinHow {
    /// One side is taken where both changed the same place.
    Take {
        /// Whose result.
        piece: Name,
        /// Which side.
        side: Side,
    },
    /// It is left out.
    Drop {
        /// Whose result.
        piece: Name,
    },
    /// An agent resolves it, as a piece of its own.
    Hand {
        /// Whose result.
        piece: Name,
        /// The piece that does it.
        by: Box<Piece>,
    },
}

impl JoinHow {
    pub(crate) fn piece(&self) -> &Name {
        match self {
            JoinHow::Take { piece, .. } | JoinHow::Drop { piece } | JoinHow::Hand { piece, .. } => piece,
        }
    }
}

/// Whether a decision still waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionStatus {
    /// It does.
    Open,
    /// A person answered.
    Resolved(Resolution),
    /// Its cause is gone.
    Withdrawn {
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}

impl DecisionStatus {
    /// Returns the name used in JSON and in the store.
    pub fn name(&self) -> &'static str {
        match self {
            DecisionStatus::Open => "open",
            DecisionStatus::Resolved(_) => "resolved",
            DecisionStatus::Withdrawn { .. } => "withdrawn",
        }
    }
}

/// What a person answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resolution {
    /// The chosen option.
    pub option: String,
    /// What the person added.
    pub note: Option<String>,
    /// Who answered.
    pub by: String,
    /// From where, e.g. `command line`.
    #[serde(default)]
    pub via: String,
    /// When.
    pub at: Timestamp,
}

/// An answer that a person gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// To which decision.
    pub decision: DecisionId,
    /// Which option.
    pub option: String,
    /// What the person adds.
    pub note: Option<String>,
}

/// Who sends a result back to the agent that made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SentBack {
    /// Its validations.
    Validation,
    /// Its reviewers.
    Review,
}

/// What a transition does to a decision record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionChange {
    /// Writes a new one.
    Open(Decision),
    /// Adds to the open one the facts learnt since it was asked.
    Amend(Decision),
    /// Closes the open one with an answer.
    Resolve(DecisionId, Resolution),
    /// Closes the open one without an answer.
    Withdraw {
        /// Which one.
        id: DecisionId,
        /// Why.
        reason: String,
        /// When.
        at: Timestamp,
    },
}

impl Question {
    /// The option of a gate that lets the phase start.
    pub const APPROVE: &'static str = "approve";

    /// The option of an agent's question that the note answers.
    pub const ANSWERED: &'static str = "answered";

    /// Returns the question that a profile asks before a phase.
    pub fn gate(before: Phase, spec: &Spec) -> Question {
        let profile = &spec.profile.name;
        Question {
            kind: DecisionKind::Gate,
            text: format!("May {before} start? The profile {profile} asks before it."),
            options: vec![
                option(Question::APPROVE, before.start_label(&spec.target), OptionEffect::Approve),
                option("reject", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": before }),
        }
    }

    /// Returns the question to ask when a phase could not begin by itself.
    pub fn held_back(before: Phase, reason: &str) -> Question {
        Question {
            kind: DecisionKind::Gate,
            text: format!("{before} could not begin by itself: {reason}. Try again?"),
            options: vec![
                option(Question::APPROVE, "Check again".to_owned(), OptionEffect::Approve),
                option("reject", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": before, "reason": reason }),
        }
    }

    /// Returns the question that holds a plan for the person who stopped the command that drove it.
    pub fn stopped(next: Phase, interruption: Option<&Interruption>) -> Question {
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

    /// Returns the question to ask when runs were interrupted `times` in a row and none left a new checkpoint.
    pub fn interrupted_often(times: u32, plan: &Plan) -> Question {
        let phase = plan.stage.phase();
        let restart = plan.interruption.as_ref().and_then(|one| one.restart.as_ref());
        let from =
            restart.map(|restart| format!(" from checkpoint {}", restart.checkpoint)).unwrap_or_default();
        let mut options =
            vec![option(Question::APPROVE, format!("Run {phase} again{from}"), OptionEffect::Approve)];
        if restart.is_some() {
            let (commit, replaces) = (plan.base_commit.clone(), plan.replaces.clone());
            let start = OptionEffect::StartFrom { commit, replaces };
            options.push(option("start_over", "Start over from the base".to_owned(), start));
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

    /// Returns the question that an agent asks. `abort` always cancels, whatever the agent means by it; an option
    /// without an id, or with one that stands twice, is left out; with none left, `answered` goes on with the note.
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

    /// Says whether an option needs a note from the person.
    pub fn needs_note(&self, option: &str) -> bool {
        // Offered where the agent offers nothing; `abort` is always there.
        self.kind == DecisionKind::Agent && option == Question::ANSWERED && self.options.len() <= 2
    }

    /// Returns the work so far that the question is about: the commit on which its answers go on.
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

    /// Returns the question with the facts learnt since it was asked; the latest fact replaces an earlier one.
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

    /// Returns the question with answers that let the next run go on with the work so far, where it was to begin anew.
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

    /// Returns the question to ask when a result was sent back to its agent as often as it may be. `head` is the work
    /// so far, on which another round goes on.
    pub fn rounds_used_up(
        kind: SentBack,
        rounds: usize,
        reasons: &[String],
        head: &str,
        plan: &Plan,
    ) -> Question {
        let (kind, what) = match kind {
            SentBack::Validation => (DecisionKind::Validation, "still fails its validations"),
            SentBack::Review => (DecisionKind::Review, "is still refused by its reviewers"),
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
                "After {rounds} rounds the result {what}: {}. How shall it go on?",
                reasons.join("; ")
            ),
            options,
            details: serde_json::json!({ "rounds": rounds, "reasons": reasons, "head": head }),
        }
    }

    /// Returns the question to ask when a reviewer gave no valid verdict after all attempts. `head` is the proposal.
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

    /// Returns the question to ask when a plan has used up its budget, or has too little left for its pieces. `work` is
    /// the work so far.
    pub fn budget(plan: &Plan, work: Option<String>) -> Question {
        let (spent, used_up) = (plan.used(), plan.budget.used_up(plan.used()));
        let raised = plan.budget.raised(plan.spec.budget, spent, plan.parts());
        let why = if used_up.is_empty() {
            let (left, pieces) = (plan.left(), plan.parts() - 1);
            format!(
                "What is left of the plan's budget, {left}, is too little for itself and {pieces} subplans"
            )
        } else {
            format!("The plan has used up its budget: {}", used_up.join(", "))
        };
        let set = |budget| OptionEffect::SetBudget { budget, work: work.clone() };
        Question {
            kind: DecisionKind::Budget,
            text: format!("{why}. Its work is kept. How shall it go on?"),
            options: vec![
                option("raise", format!("Continue with {raised}"), set(raised)),
                option("unlimited", "Continue without a limit".to_owned(), set(Budget::UNLIMITED)),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "budget": plan.budget, "spent": spent, "used_up": used_up }),
        }
    }

    /// Returns the question to ask when Execute is over and nothing was changed.
    pub fn nothing_changed() -> Question {
        Question {
            kind: DecisionKind::Gate,
            text: "Execute is complete and nothing was changed, so there is nothing to land. How shall it go on?".to_owned(),
            options: vec![
                option("run_again", "Let the agent try again".to_owned(), OptionEffect::Requeue),
                option("finish", "Close without landing".to_owned(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "before": Phase::Apply, "nothing_changed": true }),
        }
    }

    /// Returns the question to ask when a rate limit is met too often, or lasts longer than is waited for unasked.
    pub fn rate_limit(postponed: &Postponed) -> Question {
        let Postponed { until, agent, times, .. } = postponed;
        let what = if *times > POSTPONED_MAX {
            format!(
                "Agent {agent} met its rate limit {times} times in a row; it is said to be over at {until}"
            )
        } else {
            format!(
                "The rate limit of agent {agent} is over at {until}, which is later than is waited for unasked"
            )
        };
        let wait = Postponed { times: 0, ..postponed.clone() };
        Question {
            kind: DecisionKind::RateLimit,
            text: format!("{what}. How shall it go on?"),
            options: vec![
                option("retry", "Retry now".to_owned(), OptionEffect::Requeue),
                option("wait", format!("Wait until {until}"), OptionEffect::WaitUntil(wait)),
                option("abort", cancels(), OptionEffect::Cancel),
            ],
            details: serde_json::json!({ "agent": agent, "until": until.to_string(), "times": times }),
        }
    }

    /// Returns the question to ask when the target's history no longer tells whether a landing happened.
    pub fn apply_outcome(target: &str, from: &str, to: &str) -> Question {
        Question {
            kind: DecisionKind::ApplyOutcome,
            text: format!(
                "{target} was rewritten while {to} was being landed on {from}; it cannot be told whether it \
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

/// The label of every answer that ends the plan.
pub(crate) fn cancels() -> String {
    Act::Cancel.label().to_owned()
}

fn tries_again(plan: &Plan) -> String {
    format!("Let {} try again", plan.spec.agents.execute.as_deref().unwrap_or("the agent"))
}

pub(crate) fn option(id: &str, label: String, effect: OptionEffect) -> DecisionOption {
    DecisionOption { id: id.to_owned(), label, effect }
}
