//! The rule about names of files, folders and modules: a name describes the content.

use super::rules::Violation;
use super::source::{line_at, words};
use super::tree::{SourceTree, crate_of};

/// Names that could describe anything.
const EMPTY: [&str; 14] = [
    "util", "utils", "common", "commons", "helper", "helpers", "manager", "managers", "service", "services",
    "data", "info", "misc", "stuff",
];

/// No file, folder or module of a crate has a name without meaning.
pub(crate) fn names_say_something(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in tree.rust().filter(|(path, _)| crate_of(path).is_some()) {
        let parts = path.split('/').map(|part| part.strip_suffix(".rs").unwrap_or(part));
        found.extend(parts.filter_map(empty_word).map(|word| Violation::new(path, 1, complaint(word))));
        let mut before = "";
        for (at, word) in words(&source.code) {
            if before == "mod"
                && let Some(word) = empty_word(word)
            {
                found.push(Violation::new(path, line_at(&source.code, at), complaint(word)));
            }
            before = word;
        }
    }
    found
}

/// Returns the meaningless word in a name such as `git_helpers`.
fn empty_word(name: &str) -> Option<&str> {
    name.split(['_', '-']).find(|word| EMPTY.contains(word))
}

fn complaint(word: &str) -> String {
    format!("`{word}` does not describe the content")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_name_is_refused_as_file_folder_and_module() {
        let bad = [
            ("crates/a/src/util.rs", "//! X.\n"),
            ("crates/a/src/helpers/mod.rs", "//! X.\n"),
            ("crates/a/tests/common.rs", "//! X.\n"),
            ("crates/a/src/git_manager.rs", "//! X.\n"),
            ("crates/a/src/fine.rs", "//! X.\nmod data { }\n"),
        ];
        for file in bad {
            assert_eq!(names_say_something(&SourceTree::of(&[file])).len(), 1, "{file:?}");
        }
        let good = [("crates/a/src/database.rs", "//! X.\nmod information;\nlet data = info;\n")];
        assert_eq!(names_say_something(&SourceTree::of(&good)), []);
    }
}
