//! The reasons for refusing a command. A refusal is an answer, not an error: the plan is unchanged.

use crate::{Authority, DecisionId, Enforcement, Event, Phase, PlanId, RunId, State, ValidationResult};

/// Why a command was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The plan's stage does not accept the command.
    #[error("cannot {command} a plan that is {phase}/{state}")]
    WrongStage {
        /// The command.
        command: &'static str,
        /// The plan's phase.
        phase: Phase,
        /// The plan's state.
        state: State,
    },
    /// The caller's authority is not sufficient.
    #[error("authority {} is not sufficient to {command} a plan", authority.name())]
    NotAllowed {
        /// The command.
        command: &'static str,
        /// The caller's authority.
        authority: Authority,
    },
    /// Invariants do not hold, or could not be checked.
    #[error("{}", blocked_text(.0))]
    Blocked(Enforcement),
    /// A person must answer first.
    #[error("decision {decision} must be answered before {command}")]
    Undecided {
        /// The command.
        command: &'static str,
        /// The open decision.
        decision: DecisionId,
    },
    /// The report comes from a run that is not the plan's current one.
    #[error("run {given} is not the current run of the plan")]
    StaleRun {
        /// The run that reported.
        given: RunId,
        /// The plan's current run.
        current: Option<RunId>,
    },
    /// The decision is not the one that the plan waits for.
    #[error("decision {0} is no longer open")]
    DecisionClosed(DecisionId),
    /// The decision has no such option.
    #[error("decision {decision} has no option {option:?} (options: {})", offered.join(", "))]
    UnknownOption {
        /// The decision.
        decision: DecisionId,
        /// The given option.
        option: String,
        /// The valid options.
        offered: Vec<String>,
    },
    /// The answer must be a text, and it is empty.
    #[error("the answer to decision {0} is empty")]
    EmptyAnswer(DecisionId),
    /// There is nothing to apply.
    #[error("the plan changed nothing, so there is nothing to apply")]
    NothingChanged,
    /// The plan has used up its budget.
    #[error("the plan has used up its budget: {}", used_up.join(", "))]
    BudgetSpent {
        /// The exhausted resources, as text.
        used_up: Vec<String>,
        /// The decision that asks how to continue, once it is open.
        decision: Option<DecisionId>,
    },
    /// Required validations have not passed.
    #[error("required validations failed: {}", names(.0))]
    Unvalidated(Vec<ValidationResult>),
    /// Critical reviewers have not acknowledged the result.
    #[error("not acknowledged by {}", .0.join(", "))]
    Unreviewed(Vec<String>),
    /// The plan went back to Strategize too often.
    #[error("revert limit reached: at most {max} per plan")]
    TooManyReversions {
        /// The limit.
        max: u32,
    },
    /// A subplan may not start before its parent gives it its turn.
    #[error("the subplan must wait until its parent {parent} starts it")]
    NotCalled {
        /// The parent.
        parent: PlanId,
    },
    /// The plan's subplans have not all ended.
    #[error("the plan's subplans have not all finished")]
    SubplansOpen,
    /// A landing has started and its end is not recorded yet.
    #[error("a landing of the plan has started and its result is not recorded yet")]
    IntentOpen,
}

impl Refusal {
    /// Returns the events to store for this refusal.
    pub fn events(&self) -> Vec<Event> {
        match self {
            Refusal::Blocked(enforcement) => vec![Event::InvariantBlocked(enforcement.clone())],
            Refusal::UnknownOption { decision, option, .. } => {
                vec![Event::Alert {
                    priority: "low",
                    text: format!("decision {decision} was answered with the unknown option {option:?}"),
                }]
            }
            Refusal::DecisionClosed(decision) => vec![Event::Alert {
                priority: "low",
                text: format!("decision {decision} was answered but is no longer open"),
            }],
            Refusal::WrongStage { .. }
            | Refusal::NotAllowed { .. }
            | Refusal::EmptyAnswer(_)
            | Refusal::Undecided { .. }
            | Refusal::StaleRun { .. }
            | Refusal::NothingChanged
            | Refusal::BudgetSpent { .. }
            | Refusal::Unvalidated(_)
            | Refusal::Unreviewed(_)
            | Refusal::TooManyReversions { .. }
            | Refusal::NotCalled { .. }
            | Refusal::SubplansOpen
            | Refusal::IntentOpen => Vec::new(),
        }
    }
}

fn blocked_text(enforcement: &Enforcement) -> String {
    let lines: Vec<_> = enforcement.blocking().iter().map(|finding| finding.describe()).collect();
    format!("{} is blocked: {}", enforcement.at, lines.join("; "))
}

fn names(runs: &[ValidationResult]) -> String {
    runs.iter().map(|run| run.name.as_str()).collect::<Vec<_>>().join(", ")
}
