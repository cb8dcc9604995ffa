//! A plan's choices and subplans as a tree.

use drydock_api::{NumberedChoice, Tree};
use jiff::Timestamp;

use super::plan::colour_of as colour;
use super::style::{FAINT, STRONG, paint, plain, short};
use super::time::ago;

const TASK_CHARS_MAX: usize = 80;
const DEPTH_MAX: usize = 64;

/// Returns the tree with the choices, their alternatives and reasons, and the progress of each subplan.
pub(crate) fn tree(tree: &Tree, now: Timestamp) -> String {
    let mut text = String::new();
    branch(tree, now, ["", ""], 0, &mut text);
    text
}

/// Writes one plan and everything below it. `first` is the prefix of its own line, `rest` the prefix of all others.
fn branch(tree: &Tree, now: Timestamp, [first, rest]: [&str; 2], depth: usize, text: &mut String) {
    text.push_str(&format!("{first}{}\n", head(tree, now)));
    for one in &tree.choices {
        choice(one, rest, text);
    }
    if depth >= DEPTH_MAX {
        return;
    }
    let last = tree.subplans.len().saturating_sub(1);
    for (at, subplan) in tree.subplans.iter().enumerate() {
        let (turn, down) = if at == last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        let before = [format!("{rest}{turn}"), format!("{rest}{down}")];
        branch(subplan, now, before.each_ref().map(String::as_str), depth + 1, text);
    }
}

fn head(tree: &Tree, now: Timestamp) -> String {
    let stage = format!("{}/{}", tree.phase, tree.state);
    let mut parts = Vec::new();
    parts.extend(tree.name.as_deref().map(|name| paint(STRONG, name)));
    parts.push(if tree.plan.is_empty() { "not created yet".to_owned() } else { paint(STRONG, &tree.plan) });
    match (tree.fate.as_deref(), tree.plan.is_empty()) {
        (Some(fate @ ("joined" | "dropped" | "handed" | "earlier" | "ready")), _) => {
            parts.push(paint(colour(tree.state), &format!("{stage}, {fate}")));
        }
        (_, false) => parts.push(paint(colour(tree.state), &stage)),
        (Some(fate), true) => parts.push(fate.to_owned()),
        (None, true) => {}
    }
    if tree.name.is_some() {
        parts.extend(tree.agent.as_deref().map(|agent| paint(FAINT, agent)));
        parts.extend(tree.updated_at.as_deref().map(|at| paint(FAINT, &ago(at, now))));
    }
    parts.push(plain(&short(&tree.task, TASK_CHARS_MAX)).into_owned());
    parts.extend(tree.waits_for.as_deref().map(|what| paint(FAINT, &format!("(waiting for {what})"))));
    parts.retain(|part| !part.is_empty());
    parts.join("  ")
}

fn choice(choice: &NumberedChoice, indent: &str, text: &mut String) {
    let sure = choice.confidence.map(|sure| format!(" ({:.0} % sure)", sure * 100.0)).unwrap_or_default();
    let number = format!("{}.", choice.number);
    let indent = format!("{indent}  {}", "  ".repeat(choice.number.matches('.').count()));
    let inner = " ".repeat(number.len() + 1);
    text.push_str(&format!("{indent}{number} {}\n", plain(&choice.question)));
    text.push_str(&format!("{indent}{inner}chosen: {}{sure}\n", paint(STRONG, &choice.chosen)));
    if !choice.alternatives.is_empty() {
        let others = format!("not {}", choice.alternatives.join(", "));
        text.push_str(&format!("{indent}{inner}{}\n", paint(FAINT, &others)));
    }
    if let Some(rationale) = &choice.rationale {
        text.push_str(&format!("{indent}{inner}reason: {}\n", plain(rationale)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{Phase, State};

    #[test]
    fn choices_and_subplans_are_set_in_below_their_plan() {
        let leaf = |plan: &str, choices| Tree {
            plan: plan.into(),
            task: "t".into(),
            phase: Phase::Execute,
            state: State::Queued,
            choices,
            subplans: vec![],
            name: None,
            fate: None,
            after: vec![],
            agent: None,
            waits_for: None,
            created_at: None,
            updated_at: None,
        };
        let choice = NumberedChoice {
            number: "1".into(),
            question: "Which?".into(),
            chosen: "a".into(),
            alternatives: vec!["b".into()],
            rationale: Some("it is small".into()),
            confidence: Some(0.8),
            ..NumberedChoice::default()
        };
        let below = NumberedChoice {
            number: "1.1".into(),
            question: "How?".into(),
            chosen: "b".into(),
            ..NumberedChoice::default()
        };
        let mut below_it = leaf("pln-2", vec![]);
        below_it.name = Some("docs".into());
        below_it.fate = Some("open".into());
        below_it.agent = Some("writer".into());
        below_it.waits_for = Some("code".into());
        let whole = Tree { subplans: vec![below_it], ..leaf("pln-1", vec![choice, below]) };
        assert_eq!(
            bare(&tree(&whole, Timestamp::UNIX_EPOCH)),
            "pln-1  execute/queued  t\n  1. Which?\n     chosen: a (80 % sure)\n     not b\n     reason: it is small\n    \
             1.1. How?\n         chosen: b\n└─ docs  pln-2  execute/queued  writer  t  (waiting for code)\n"
        );
    }
}
