//! One action that a plan accepts: its command, label, effect, and the line to type.

use crate::{DecisionId, Phase, PlanId, Target, shell_word};

/// Something that can be done with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// What.
    pub act: Act,
    /// The label of its button.
    pub label: String,
    /// Its effect.
    pub effect: String,
    /// What must be given with it.
    pub needs: Vec<Need>,
    /// The reason to give, where the plan's own record has one.
    pub reason: Option<String>,
}

/// What can be done with a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Ask for a phase.
    Move(Phase),
    /// Answer the open decision.
    Answer {
        /// The decision.
        decision: DecisionId,
        /// The option.
        option: String,
    },
    /// Try the phase again.
    Retry,
    /// Take the work of the failed run for the result.
    Accept,
    /// Go back to Strategize.
    Revert,
    /// Go back to an earlier state of the work.
    RollBack,
    /// Make the draft in the worktree the strategy.
    Adopt,
    /// Add guidance.
    Prompt,
    /// Bring the branch and its remote together.
    Sync,
    /// Free the plan from a process that is gone.
    TakeOver,
    /// End the plan.
    Cancel,
}

/// What must be given with an act.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The checkpoint to go back to.
    Checkpoint,
    /// A strategy draft in the worktree.
    Draft,
    /// The guidance.
    Text,
    /// The answer in words.
    Note,
}

impl Act {
    /// Returns its name: the verb of `drydock plan` and the last part of its route, or `resolve` for an answer.
    pub fn name(&self) -> &'static str {
        match self {
            Act::Move(phase) => phase.name(),
            Act::Answer { .. } => "resolve",
            Act::Retry => "retry",
            Act::Accept => "accept",
            Act::Revert => "revert",
            Act::RollBack => "rollback",
            Act::Adopt => "adopt",
            Act::Prompt => "prompt",
            Act::Sync => "sync",
            Act::TakeOver => "takeover",
            Act::Cancel => "cancel",
        }
    }
}

impl Act {
    /// Returns the label of its button. An answer is labelled by its option.
    pub fn label(&self) -> &'static str {
        match self {
            Act::Move(Phase::Strategize) => "Start planning",
            Act::Move(Phase::Execute) => "Start work",
            Act::Move(Phase::Apply) => "Land",
            Act::Answer { .. } => "Answer",
            Act::Retry => "Retry",
            Act::Accept => "Accept as it is",
            Act::Revert => "Plan again",
            Act::RollBack => "Roll back",
            Act::Adopt => "Adopt draft",
            Act::Prompt => "Add guidance",
            Act::Sync => "Sync",
            Act::TakeOver => "Take over",
            Act::Cancel => "Cancel plan",
        }
    }
}

impl Phase {
    /// Returns the label of the button that lets this phase start.
    pub(crate) fn start_label(self, target: &Target) -> String {
        match (self, target.named()) {
            (Phase::Apply, Some(branch)) => format!("Land on {branch}"),
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => Act::Move(self).label().to_owned(),
        }
    }
}

impl Need {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Need::Checkpoint => "checkpoint",
            Need::Draft => "draft",
            Need::Text => "text",
            Need::Note => "note",
        }
    }
}

impl Offer {
    /// Returns what to type, if that is all that is needed: a line to paste has no placeholder.
    pub fn line(&self, plan: &PlanId) -> Option<String> {
        match self.needs.as_slice() {
            [] | [Need::Draft] => {}
            [..] => return None,
        }
        let mut line = match &self.act {
            Act::Answer { decision, option } => {
                format!("drydock decision resolve {decision} {}", typed("option", option))
            }
            act => format!("drydock plan {} {plan}", act.name()),
        };
        if let Some(reason) = &self.reason {
            line = format!("{line} {}", typed("reason", reason));
        }
        Some(line)
    }
}

/// Returns how an option of a command and its value are typed: a value may have spaces, or look like an option.
fn typed(name: &str, value: &str) -> String {
    let glue = if value.starts_with('-') { "=" } else { " " };
    format!("--{name}{glue}{}", shell_word(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Breaks when a value cannot be pasted as it is printed.
    #[test]
    fn an_option_is_printed_as_it_is_typed() {
        assert_eq!(typed("option", "restore_local"), "--option restore_local");
        assert_eq!(typed("option", "the red one"), "--option 'the red one'");
        assert_eq!(typed("option", "--left"), "--option=--left");
        assert_eq!(typed("option", "don't"), r"--option 'don'\''t'");
    }
}
