//! Invariants as text, in a table and in a line.

use drydock_api::{Invariant, Rule};

use super::columns::{Cell, table};
use super::style::STRONG;

/// Returns a table of invariants.
pub(crate) fn list(invariants: &[Invariant]) -> String {
    let rows = invariants.iter().map(|invariant| {
        let locked = if invariant.locked { "locked" } else { "" };
        [
            Cell::styled(STRONG, &invariant.name),
            Cell::new(&invariant.scope),
            Cell::new(phases(invariant)),
            Cell::new(locked),
            Cell::new(rule(invariant)),
        ]
    });
    table(["NAME", "SCOPE", "BEFORE", "", "RULE"], rows.collect())
}

/// Returns an invariant in a line.
pub(crate) fn line(invariant: &Invariant) -> String {
    format!("{} before {}: {}", invariant.name, phases(invariant), rule(invariant))
}

fn phases(invariant: &Invariant) -> String {
    invariant.at.iter().map(|phase| phase.name()).collect::<Vec<_>>().join(",")
}

fn rule(invariant: &Invariant) -> String {
    match &invariant.rule {
        Rule::Cel(expression) => format!("cel {expression}"),
        Rule::Command(command) => format!("command {command}"),
        Rule::Text(text) => format!("{text} (for agents; not checked automatically)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::Phase;

    #[test]
    fn words_for_agents_are_shown_as_not_checked() {
        let invariant = Invariant {
            name: "kind".into(),
            scope: "global".into(),
            rule: Rule::Text("be kind".into()),
            at: vec![Phase::Execute, Phase::Apply],
            locked: true,
        };
        assert!(line(&invariant).contains("not checked automatically"));
        assert!(bare(&list(&[invariant])).contains("kind  global  execute,apply  locked  be kind"));
    }
}
