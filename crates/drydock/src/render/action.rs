//! Actions as text: one in full, many in a table.

use drydock_api::{Action, Argument};

use super::columns::{Block, Cell, table};
use super::invariant;
use super::plan::amounts;
use super::project::validation_line;
use super::style::{STRONG, paint, short};

const DESCRIPTION_CHARS_MAX: usize = 70;

/// Returns a table of actions.
pub(crate) fn list(actions: &[Action]) -> String {
    let rows = actions.iter().map(|action| {
        let arguments: Vec<_> = action.arguments.keys().map(String::as_str).collect();
        [
            Cell::styled(STRONG, &action.name),
            Cell::new(arguments.join(", ")),
            Cell::new(short(&action.description, DESCRIPTION_CHARS_MAX)),
        ]
    });
    table(["NAME", "ARGUMENTS", "DESCRIPTION"], rows.collect())
}

/// Returns an action in full.
pub(crate) fn show(action: &Action) -> String {
    let mut block = Block::default()
        .line(paint(STRONG, &action.name))
        .field("task", &action.description)
        .maybe("done when", action.definition_of_done.as_ref())
        .maybe("profile", action.profile.as_ref());
    for (name, argument) in &action.arguments {
        block = block.field("argument", argument_line(name, argument));
    }
    block = block
        .maybe("budget", action.budget.as_ref().map(amounts))
        .maybe("strategize", action.agents.strategize.as_ref())
        .maybe("execute", action.agents.execute.as_ref());
    for reviewer in &action.agents.reviewers {
        let weight = if reviewer.critical { " (critical)" } else { "" };
        block = block.field("reviewer", format!("{}{weight}", reviewer.agent));
    }
    for validation in &action.validations {
        block = block.field("validation", validation_line(validation));
    }
    for rule in &action.invariants {
        block = block.field("invariant", invariant::line(rule));
    }
    block.done()
}

fn argument_line(name: &str, argument: &Argument) -> String {
    let mut line = name.to_owned();
    if argument.required {
        line.push_str(" (required)");
    }
    if let Some(default) = &argument.default {
        line.push_str(&format!(" (default {default:?})"));
    }
    if let Some(description) = &argument.description {
        line.push_str(&format!(": {description}"));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_argument_says_whether_it_must_be_given() {
        let argument = |required, default: Option<&str>, description: Option<&str>| Argument {
            required,
            default: default.map(Into::into),
            description: description.map(Into::into),
        };
        assert_eq!(argument_line("a", &argument(true, None, Some("what"))), "a (required): what");
        assert_eq!(argument_line("a", &argument(false, Some("x"), None)), "a (default \"x\")");
    }
}
