//! The choices of a strategy: decisions that an agent took, each with the alternatives it considered. Choices
//! form a tree, because one often follows from another.

use serde::{Deserialize, Serialize};

/// Maximum number of choices that a plan stores.
pub const CHOICES_MAX: usize = 200;

/// A decision that an agent took without asking a person.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Choice {
    /// The question that was decided.
    pub question: String,
    /// The chosen option.
    pub chosen: String,
    /// Options that were considered and rejected.
    #[serde(default)]
    pub alternatives: Vec<String>,
    /// Why this option was chosen.
    #[serde(default)]
    pub rationale: Option<String>,
    /// How sure the agent is, from 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub confidence: Option<f64>,
    /// The name by which other choices refer to this one in `under`. Needed only for duplicate questions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The id or the question of the choice that this one follows from. Absent for a choice at the top level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub under: Option<String>,
}

impl Eq for Choice {}

/// Why choices do not form a tree. Positions count from 0, as in JSON paths.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceTreeError {
    /// Two choices have the same id.
    #[error("id {id:?} is already used by choices[{first}]")]
    SameId {
        /// Position of the later choice.
        at: usize,
        /// Position of the earlier choice.
        first: usize,
        /// The duplicate id.
        id: String,
    },
    /// The parent choice does not exist.
    #[error("{under:?} is neither the id nor the question of another choice")]
    Unknown {
        /// Position of the choice.
        at: usize,
        /// The unknown parent.
        under: String,
    },
    /// The choice is its own ancestor.
    #[error("{under:?} leads back to this choice")]
    Circle {
        /// Position of the choice.
        at: usize,
        /// The parent that leads to the cycle.
        under: String,
    },
}

impl ChoiceTreeError {
    /// Returns the JSON path of the invalid field.
    pub fn path(&self) -> String {
        match self {
            ChoiceTreeError::SameId { at, .. } => format!("choices[{at}].id"),
            ChoiceTreeError::Unknown { at, .. } | ChoiceTreeError::Circle { at, .. } => {
                format!("choices[{at}].under")
            }
        }
    }
}

/// A choice and its position in the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed<'a> {
    /// The choice.
    pub choice: &'a Choice,
    /// Position in the list.
    pub at: usize,
    /// Position of its parent choice in the list.
    pub parent: Option<usize>,
}

/// Returns the first reason why the choices do not form a tree, or `None` if they do.
pub fn check_tree(choices: &[Choice]) -> Option<ChoiceTreeError> {
    for (at, choice) in choices.iter().enumerate() {
        let Some(id) = &choice.id else { continue };
        if let Some(first) = choices[..at].iter().position(|earlier| earlier.id.as_ref() == Some(id)) {
            return Some(ChoiceTreeError::SameId { at, first, id: id.clone() });
        }
    }
    for (at, choice) in choices.iter().enumerate() {
        let Some(under) = &choice.under else { continue };
        if parent(choices, at).is_none() {
            return Some(ChoiceTreeError::Unknown { at, under: under.clone() });
        }
        // A path longer than the list contains a cycle.
        let ways = std::iter::successors(Some(at), |at| parent(choices, *at)).take(choices.len() + 1);
        if ways.skip(1).any(|above| above == at) {
            return Some(ChoiceTreeError::Circle { at, under: under.clone() });
        }
    }
    None
}

/// Returns the choices in depth-first order, each with its number such as `2.1`. If the choices do not form a
/// tree, all of them are returned at the top level, so that none is left out.
pub fn outline(choices: &[Choice]) -> Vec<(String, Placed<'_>)> {
    let sound = check_tree(choices).is_none();
    let parents: Vec<_> = (0..choices.len()).map(|at| parent(choices, at).filter(|_| sound)).collect();
    let below = |above: Option<usize>, number: &str| -> Vec<(String, usize)> {
        let own = (0..choices.len()).filter(|at| parents[*at] == above);
        let dot = if number.is_empty() { "" } else { "." };
        let mut found: Vec<_> =
            own.enumerate().map(|(nth, at)| (format!("{number}{dot}{}", nth + 1), at)).collect();
        found.reverse();
        found
    };
    let (mut open, mut read) = (below(None, ""), Vec::with_capacity(choices.len()));
    while let Some((number, at)) = open.pop() {
        open.extend(below(Some(at), &number));
        read.push((number, Placed { choice: &choices[at], at, parent: parents[at] }));
    }
    read
}

/// Inserts a choice, or replaces the earlier choice with the same id, or with the same question and parent.
/// The replaced choice keeps its position. The latest answer to a question is the valid one, and a repeated
/// choice is stored once.
pub fn put(choices: &mut Vec<Choice>, choice: Choice) {
    let same = |known: &Choice| match (&known.id, &choice.id) {
        (Some(known), Some(new)) => known == new,
        (Some(_) | None, Some(_) | None) => known.question == choice.question && known.under == choice.under,
    };
    match choices.iter_mut().find(|known| same(known)) {
        Some(known) => *known = choice,
        None => choices.push(choice),
    }
}

/// Finds the parent of a choice: by id, otherwise by question. Earlier choices are preferred, nearest first.
fn parent(choices: &[Choice], at: usize) -> Option<usize> {
    let under = choices[at].under.as_ref()?;
    let others = || (0..at).rev().chain(at + 1..choices.len());
    others()
        .find(|other| choices[*other].id.as_ref() == Some(under))
        .or_else(|| others().find(|other| choices[*other].question == *under))
}

#[cfg(test)]
mod tests {
    use super::{Choice, ChoiceTreeError, check_tree, outline, put};

    fn choice(question: &str, id: Option<&str>, under: Option<&str>) -> Choice {
        let (id, under) = (id.map(str::to_owned), under.map(str::to_owned));
        Choice { question: question.into(), chosen: "x".into(), id, under, ..Choice::default() }
    }

    fn numbers(choices: &[Choice]) -> Vec<String> {
        outline(choices)
            .iter()
            .map(|(number, placed)| format!("{number} {}", placed.choice.question))
            .collect()
    }

    /// Fails if a branch is lost, the order is wrong, or a flat list is no longer flat.
    #[test]
    fn choices_are_read_as_a_tree_whatever_their_order() {
        let flat = [choice("a", None, None), choice("b", None, None)];
        assert_eq!(numbers(&flat), ["1 a", "2 b"]);
        let tree = [
            choice("leaf", None, Some("mid")),
            choice("top", Some("t"), None),
            choice("mid", None, Some("t")),
            choice("other", None, None),
            choice("late", None, Some("top")),
        ];
        assert_eq!(check_tree(&tree), None);
        assert_eq!(numbers(&tree), ["1 top", "1.1 mid", "1.1.1 leaf", "1.2 late", "2 other"]);
        let chain: Vec<_> = (0..200)
            .map(|n| choice(&n.to_string(), None, (n > 0).then(|| (n - 1).to_string()).as_deref()))
            .collect();
        assert_eq!((check_tree(&chain), outline(&chain).len()), (None, 200));
    }

    /// Fails if an invalid tree is not detected, is reported at the wrong path, or hides choices.
    #[test]
    fn what_is_no_tree_is_named_and_still_shown() {
        let unknown = [choice("a", None, None), choice("b", None, Some("z"))];
        assert_eq!(check_tree(&unknown).map(|tangle| tangle.path()), Some("choices[1].under".into()));
        let itself = [choice("a", None, Some("a"))];
        assert!(matches!(check_tree(&itself), Some(ChoiceTreeError::Unknown { at: 0, .. })));
        let circle = [choice("r", None, None), choice("a", None, Some("b")), choice("b", None, Some("a"))];
        assert!(matches!(check_tree(&circle), Some(ChoiceTreeError::Circle { at: 1, .. })));
        let twice = [choice("a", Some("i"), None), choice("b", Some("i"), None)];
        assert!(matches!(check_tree(&twice), Some(ChoiceTreeError::SameId { at: 1, first: 0, .. })));
        for tangled in [&unknown[..], &itself, &circle, &twice] {
            assert_eq!(outline(tangled).len(), tangled.len());
        }
    }

    /// Fails if the same question under another parent counts as a repetition, or if a repetition is stored
    /// twice.
    #[test]
    fn the_last_word_on_a_question_counts() {
        let mut choices = Vec::new();
        for said in [
            choice("a", None, None),
            choice("b", None, Some("a")),
            choice("b", None, None),
            Choice { chosen: "y".into(), ..choice("a", None, None) },
        ] {
            put(&mut choices, said);
        }
        let seen: Vec<_> =
            choices.iter().map(|choice| (choice.question.as_str(), choice.chosen.as_str())).collect();
        assert_eq!(seen, [("a", "y"), ("b", "x"), ("b", "x")]);
    }
}
