//! The list of rules, their findings, and the test that applies them to the tree.

use std::fmt;
use std::path::Path;

use super::tree::SourceTree;
use super::{documents, layers, names, places, plain, shape, types, words};
use crate::say::{self, CommandError};

/// A rule: checks the tree and returns its findings.
pub(crate) type TreeRule = fn(&SourceTree) -> Vec<Violation>;

const RULES: &[(&str, TreeRule)] = &[
    ("files start with their purpose", shape::files_open_with_purpose),
    ("files are short", shape::files_are_short),
    ("functions are short", shape::functions_are_short),
    ("lib.rs and mod.rs only declare and export", shape::roots_declare_only),
    ("tests come last", shape::tests_come_last),
    ("names describe their content", names::names_say_something),
    ("a type name is defined once", types::types_are_defined_once),
    ("crates depend downwards", layers::crates_depend_downwards),
    ("SQL is in the store", places::sql_is_in_the_store),
    ("processes start in their crates", places::processes_start_in_their_crates),
    ("logs contain causes", words::logs_tell_causes),
    ("nothing is left for later", words::nothing_is_left_for_later),
    ("no paths of one machine", words::no_machine_is_named),
    ("prose is plain", plain::prose_is_plain),
    ("decisions are numbered and listed", documents::decisions_are_listed),
    ("links have targets", documents::links_resolve),
];

/// A place where a rule is violated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) text: String,
}

impl Violation {
    pub(crate) fn new(path: &str, line: usize, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, text: text.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.text)
    }
}

/// Prints every finding, and fails if there is one.
pub(crate) fn run(root: &Path, args: &[String]) -> Result<(), CommandError> {
    if let Some(unknown) = args.first() {
        return Err(CommandError::usage(format!("unknown option of `tidy`: `{unknown}`")));
    }
    let complaints = check(root).map_err(CommandError::failed)?;
    complaints.iter().for_each(|complaint| say::answer(complaint));
    match complaints.len() {
        0 => Ok(()),
        found => Err(CommandError::failed(format!(
            "{found} violations of the {} rules about the source tree",
            RULES.len()
        ))),
    }
}

fn check(root: &Path) -> Result<Vec<String>, String> {
    let tree =
        SourceTree::read(root).map_err(|error| format!("could not read {}: {error}", root.display()))?;
    let named = RULES.iter().flat_map(|(name, rule)| rule(&tree).into_iter().map(move |found| (name, found)));
    Ok(named.map(|(name, found)| format!("{found} [{name}]")).collect())
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_tree_is_tidy() {
        let complaints = super::check(&crate::root()).unwrap();
        assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
    }
}
