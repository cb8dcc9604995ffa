//! A plan's choices and sub-plans as a tree.

use drydock_api::{Choice, Tree};

use super::plan::colour;
use super::style::{FAINT, STRONG, paint, plain, short};

const TASK_CHARS_MAX: usize = 80;
const DEPTH_MAX: usize = 64;

/// Returns the tree with what was chosen, what was not, and why.
pub(crate) fn tree(tree: &Tree) -> String {
    let mut text = String::new();
    branch(tree, 0, &mut text);
    text
}

fn branch(tree: &Tree, depth: usize, text: &mut String) {
    let indent = "  ".repeat(depth);
    let stage = format!("{}/{}", tree.phase, tree.state);
    let head = [paint(STRONG, &tree.plan), paint(colour(tree.state), &stage)].join("  ");
    text.push_str(&format!("{indent}{head}  {}\n", plain(&short(&tree.task, TASK_CHARS_MAX))));
    for one in &tree.choices {
        choice(one, &indent, text);
    }
    if depth < DEPTH_MAX {
        tree.subplans.iter().for_each(|subplan| branch(subplan, depth + 1, text));
    }
}

fn choice(choice: &Choice, indent: &str, text: &mut String) {
    let sure = choice.confidence.map(|sure| format!(" ({:.0} % sure)", sure * 100.0)).unwrap_or_default();
    text.push_str(&format!("{indent}  ? {}\n", plain(&choice.question)));
    text.push_str(&format!("{indent}    took {}{sure}\n", paint(STRONG, &choice.chosen)));
    if !choice.alternatives.is_empty() {
        let others = format!("not {}", choice.alternatives.join(", "));
        text.push_str(&format!("{indent}    {}\n", paint(FAINT, &others)));
    }
    if let Some(rationale) = &choice.rationale {
        text.push_str(&format!("{indent}    because {}\n", plain(rationale)));
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
        };
        let choice = Choice {
            question: "Which?".into(),
            chosen: "a".into(),
            alternatives: vec!["b".into()],
            rationale: Some("it is small".into()),
            confidence: Some(0.8),
        };
        let whole = Tree { subplans: vec![leaf("pln-2", vec![])], ..leaf("pln-1", vec![choice]) };
        assert_eq!(
            bare(&tree(&whole)),
            "pln-1  execute/queued  t\n  ? Which?\n    took a (80 % sure)\n    not b\n    because it is small\n  \
             pln-2  execute/queued  t\n"
        );
    }
}
