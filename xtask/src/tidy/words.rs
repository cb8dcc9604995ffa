//! Rules about words that must not be in the tree. The words are written in two halves here, so that the rules apply
//! to this file too.

use super::rules::Violation;
use super::source::line_at;
use super::tree::SourceTree;

/// Marks of unfinished work, in any text.
const LATER: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Code that is not written yet, and tests that do not run. Strings and comments are not checked.
const ABSENT: [&str; 3] = ["todo!", "unimplemented!", "#[ignore"];

/// Directories of one machine.
const MACHINE: [&str; 3] = [concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/ho", "me/")];

/// An error in a log line without its causes, which is refused.
const CAUSELESS: &str = concat!("%", "error");

/// The tree has no unfinished work, and every test runs.
pub(crate) fn nothing_is_left_for_later(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.texts() {
        for mark in LATER {
            let marks =
                file.text.match_indices(mark).filter(|&(at, _)| is_whole_word(&file.text, at, mark.len()));
            found.extend(
                marks.map(|(at, _)| Violation::new(&file.path, line_at(&file.text, at), format!("`{mark}`"))),
            );
        }
    }
    for (path, source) in tree.rust() {
        for mark in ABSENT {
            let marks = source.code.match_indices(mark);
            found.extend(
                marks.map(|(at, _)| Violation::new(path, line_at(&source.code, at), format!("`{mark}`"))),
            );
        }
    }
    found
}

/// No text names a directory of a particular machine.
pub(crate) fn no_machine_is_named(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.texts() {
        for path in MACHINE {
            let paths = file.text.match_indices(path).filter(|&(at, _)| starts_a_path(&file.text[..at]));
            found.extend(paths.map(|(at, _)| {
                Violation::new(
                    &file.path,
                    line_at(&file.text, at),
                    format!("`{path}` is a path of one machine"),
                )
            }));
        }
    }
    found
}

/// A log line has an error with its causes.
pub(crate) fn logs_tell_causes(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in tree.production() {
        let code = source.production();
        let bare = code.match_indices(CAUSELESS).filter(|&(at, _)| is_whole_word(code, at, CAUSELESS.len()));
        found.extend(bare.map(|(at, _)| {
            Violation::new(
                path,
                line_at(code, at),
                "the causes of the error are lost; write `error = %error_chain(&error)`",
            )
        }));
    }
    found
}

fn is_whole_word(text: &str, at: usize, length: usize) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    !text[..at].ends_with(is_word) && !text[at + length..].starts_with(is_word)
}

/// Returns true if a path may start after this text instead of continuing it: in `drydock/<plan>/…` none does.
fn starts_a_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || ".-_/*?~>})]$%".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected result if no line is refused.
    const NONE: [usize; 0] = [];

    fn lines(rule: fn(&SourceTree) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
        rule(&SourceTree::of(&[(path, text)])).into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn an_error_without_its_causes_is_refused_in_log_lines() {
        for bare in ["%error", "plan = %id, %error", "error = %error"] {
            let line = format!("fn f() {{ warn!({bare}, \"could not\"); }}");
            assert_eq!(lines(logs_tell_causes, "crates/a/src/x.rs", &line), [1], "{bare}");
            assert_eq!(lines(logs_tell_causes, "crates/a/tests/x.rs", &line), NONE, "{bare}");
        }
        let whole = "fn f() { warn!(error = %error_chain(&error), \"could not\"); }";
        assert_eq!(lines(logs_tell_causes, "crates/a/src/x.rs", whole), NONE);
    }

    #[test]
    fn marks_of_unfinished_work_are_refused_in_any_text() {
        for mark in LATER {
            assert_eq!(lines(nothing_is_left_for_later, "docs/x.md", &format!("fine\n{mark}: more\n")), [2]);
            assert_eq!(lines(nothing_is_left_for_later, "crates/a/src/x.rs", &format!("// {mark}\n")), [1]);
            assert_eq!(lines(nothing_is_left_for_later, "docs/x.md", &format!("MAS{mark}S\n")), NONE);
        }
    }

    #[test]
    fn absent_code_and_tests_that_do_not_run_are_refused() {
        for text in [
            "fn f() { todo!() }",
            "fn f() { unimplemented!() }",
            "#[ignore]\nfn f() {}",
            "#[ignore = \"slow\"]",
        ] {
            assert_eq!(lines(nothing_is_left_for_later, "crates/a/tests/x.rs", text), [1], "{text}");
        }
        assert_eq!(
            lines(nothing_is_left_for_later, "crates/a/src/x.rs", "say(\"todo!\"); // not todo!"),
            NONE
        );
    }

    #[test]
    fn a_directory_of_one_machine_is_refused() {
        for path in MACHINE {
            assert_eq!(lines(no_machine_is_named, "README.md", &format!("\ncd {path}x\n")), [2]);
            assert_eq!(lines(no_machine_is_named, "x.toml", &format!("a = \"{path}x\"\n")), [1]);
            assert_eq!(
                lines(no_machine_is_named, "x.md", &format!("refs/drydock/<plan>{path}x and a{path}b\n")),
                NONE
            );
        }
    }
}
