//! One action that a plan accepts: its command, its label, its effect, and the command line to type.

use crate::{DecisionId, Phase, PlanId, Target, shell_word};

/// An action that a plan accepts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The action.
    pub act: Act,
    /// The label of its button.
    pub label: String,
    /// Its effect, as text.
    pub effect: String,
    /// Additional input that the action needs.
    pub needs: Vec<Need>,
    /// A reason to send with the action, if the stored plan provides one.
    pub reason: Option<String>,
}

/// The kind of action.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// Start a phase.
    Move(Phase),
    /// Answer the open decision.
    Answer {
        /// The decision.
        decision: DecisionId,
        /// The id of the option.
        option: String,
    },
    /// Retry the phase.
    Retry,
    /// Accept the work of the failed run as the result.
    Accept,
    /// Go back to Strategize.
    Revert,
    /// Go back to an earlier state of the work.
    RollBack,
    /// Adopt the strategy draft in the worktree.
    Adopt,
    /// Add guidance.
    Prompt,
    /// Sync the branch with its remote.
    Sync,
    /// Free the plan from a process that is gone.
    TakeOver,
    /// Cancel the plan.
    Cancel,
}

/// Additional input that an action needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// The checkpoint to go back to.
    Checkpoint,
    /// A strategy draft in the worktree.
    Draft,
    /// The text of the guidance.
    Text,
    /// The answer as text.
    Note,
}

impl Act {
    /// Returns the name: the verb of `drydock plan` and the last part of the route, or `resolve` for an
    /// answer.
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
    /// Returns the label of the button. The label of an answer comes from its option.
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
    /// Returns the label of the button that starts this phase.
    pub(crate) fn start_label(self, target: &Target) -> String {
        match (self, target.named()) {
            (Phase::Apply, Some(branch)) => format!("Land on {branch}"),
            (Phase::Strategize | Phase::Execute | Phase::Apply, _) => Act::Move(self).label().to_owned(),
        }
    }
}

impl Need {
    /// Returns the name used in JSON.
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
    /// Returns the command line to type, or `None` if the action needs more input. The line has no
    /// placeholders, so that it can be pasted.
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

/// Formats a command-line option. Quotes a value with spaces, and uses `=` before a value that looks like an
/// option.
fn typed(name: &str, value: &str) -> String {
    let glue = if value.starts_with('-') { "=" } else { " " };
    format!("--{name}{glue}{}", shell_word(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a printed option cannot be pasted into a shell.
    #[test]
    fn an_option_is_printed_as_it_is_typed() {
        assert_eq!(typed("option", "restore_local"), "--option restore_local");
        assert_eq!(typed("option", "the red one"), "--option 'the red one'");
        assert_eq!(typed("option", "--left"), "--option=--left");
        assert_eq!(typed("option", "don't"), r"--option 'don'\''t'");
    }
}
