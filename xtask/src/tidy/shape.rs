//! Rules about the shape of a file: its header, its length and that of its functions, the position of its tests, and
//! the content of the root of a crate or module.

use super::items::{Item, items};
use super::rules::Violation;
use super::source::{Tests, closing, line_at, words};
use super::tree::SourceTree;

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 100;

/// Every Rust file starts with its purpose.
pub(crate) fn files_open_with_purpose(tree: &SourceTree) -> Vec<Violation> {
    let unopened = tree.rust().filter(|(_, source)| !source.opening.starts_with("//! "));
    unopened.map(|(path, _)| Violation::new(path, 1, "the file must start with a `//!` paragraph")).collect()
}

/// A file is short enough to read at once; its own tests do not count.
pub(crate) fn files_are_short(tree: &SourceTree) -> Vec<Violation> {
    let long = tree.production().filter(|(_, source)| source.production_lines() > FILE_LINES_MAX);
    let found = long.map(|(path, source)| {
        let lines = source.production_lines();
        Violation::new(
            path,
            FILE_LINES_MAX + 1,
            format!("{lines} lines before the tests; at most {FILE_LINES_MAX}"),
        )
    });
    found.collect()
}

/// A function is short enough to understand as a whole; its lines count from its `fn` to its closing brace.
pub(crate) fn functions_are_short(tree: &SourceTree) -> Vec<Violation> {
    let functions = tree.production().flat_map(|(path, source)| {
        functions(source.production()).into_iter().map(move |function| (path, function))
    });
    let long = functions.filter(|(_, function)| function.lines > FUNCTION_LINES_MAX);
    let found = long.map(|(path, Function { name, line, lines })| {
        Violation::new(path, line, format!("`{name}` has {lines} lines; at most {FUNCTION_LINES_MAX}"))
    });
    found.collect()
}

/// `lib.rs` and `mod.rs` have only modules and exports, so that they read like a table of contents.
pub(crate) fn roots_declare_only(tree: &SourceTree) -> Vec<Violation> {
    let roots = tree.production().filter(|(path, _)| path.ends_with("/lib.rs") || path.ends_with("/mod.rs"));
    let found = roots.flat_map(|(path, source)| {
        let others = items(source.production()).into_iter().filter(|item| !declares(item));
        others.map(move |item| {
            let first = item.text.lines().next().unwrap_or_default();
            Violation::new(
                path,
                item.line,
                format!("lib.rs and mod.rs only declare and export; move this: `{first}`"),
            )
        })
    });
    found.collect()
}

/// Tests are at the end of a file, so that the production code is in one piece.
pub(crate) fn tests_come_last(tree: &SourceTree) -> Vec<Violation> {
    let found = tree.production().filter_map(|(path, source)| match source.tests {
        Tests::Followed { from } => {
            Some(Violation::new(path, from, "code follows the tests; tests must come last"))
        }
        Tests::Last { .. } | Tests::Absent { .. } => None,
    });
    found.collect()
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Returns the functions that have a body.
fn functions(code: &str) -> Vec<Function<'_>> {
    let mut found = Vec::new();
    let mut before: Option<(usize, &str)> = None;
    for (at, word) in words(code) {
        // A function pointer type has a bracket after `fn`, not a name.
        if let Some((start, "fn")) = before
            && code[start + "fn".len()..at].trim().is_empty()
            && let Some(end) = body_end(code, at)
        {
            let line = line_at(code, start);
            found.push(Function { name: word, line, lines: line_at(code, end) - line + 1 });
        }
        before = Some((at, word));
    }
    found
}

/// Returns where the body of the function named at `name` ends; none for a declaration without a body.
fn body_end(code: &str, name: usize) -> Option<usize> {
    let mut at = name;
    loop {
        at += code[at..].find(['(', '[', '{', ';'])?;
        match code.as_bytes()[at] {
            b';' => return None,
            b'{' => return closing(code, at).map(|end| end - 1),
            // Parameters, and types such as `[u8; 32]`, are skipped as a whole.
            _ => at = closing(code, at)?,
        }
    }
}

/// Returns true if an item is a module in another file, an import or export, or an inner attribute.
fn declares(item: &Item<'_>) -> bool {
    let rest = item.declaration();
    rest.starts_with("#![") || rest.starts_with("use ") || (rest.starts_with("mod ") && rest.ends_with(';'))
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
    fn a_file_without_purpose_is_refused() {
        assert_eq!(lines(files_open_with_purpose, "crates/a/tests/x.rs", "use x;\n"), [1]);
        assert_eq!(lines(files_open_with_purpose, "crates/a/src/x.rs", "\n//! Late.\n"), [1]);
        assert_eq!(lines(files_open_with_purpose, "crates/a/src/x.rs", "//! Does x.\n"), NONE);
    }

    #[test]
    fn a_long_file_is_refused_and_its_tests_do_not_count() {
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", "// y\n".repeat(100));
        let fits = format!("{}{tests}", "// x\n".repeat(600));
        assert_eq!(lines(files_are_short, "crates/a/src/x.rs", &fits), NONE);
        assert_eq!(lines(files_are_short, "crates/a/src/x.rs", &format!("// one more\n{fits}")), [601]);
        assert_eq!(lines(files_are_short, "xtask/src/x.rs", &"// x\n".repeat(601)), [601]);
        assert_eq!(lines(files_are_short, "crates/a/tests/x.rs", &"// x\n".repeat(900)), NONE);
    }

    #[test]
    fn a_long_function_is_refused_wherever_it_is() {
        let of =
            |lines: usize| format!("fn f(x: [u8; 2]) -> [u8; 2] {{\n{}}}\n", "    a();\n".repeat(lines - 2));
        assert_eq!(lines(functions_are_short, "crates/a/src/x.rs", &of(100)), NONE);
        assert_eq!(lines(functions_are_short, "crates/a/src/x.rs", &of(101)), [1]);
        let method = format!("trait T {{ fn declared(); }}\nimpl T for X {{\n    pub async {}}}\n", of(101));
        assert_eq!(lines(functions_are_short, "crates/a/src/x.rs", &method), [3]);
        let test = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", of(200));
        assert_eq!(lines(functions_are_short, "crates/a/src/x.rs", &test), NONE);
    }

    #[test]
    fn braces_in_literals_and_comments_do_not_end_a_function() {
        let text = format!("fn f() {{\n    a('}}', \"}}\"); // }}\n{}}}\n", "    b();\n".repeat(98));
        assert_eq!(lines(functions_are_short, "crates/a/src/x.rs", &text), [1]);
    }

    #[test]
    fn a_root_that_holds_anything_is_refused() {
        let fine = "//! Root.\n#![cfg(unix)]\n\nmod a;\n#[cfg(test)]\nmod b;\npub(crate) mod c;\npub use \
                    a::{X, y::{Z, W}};\n\
                    pub use {a::Q};\n#[doc(hidden)]\npub use c::V;\n";
        assert_eq!(lines(roots_declare_only, "crates/a/src/lib.rs", fine), NONE);
        for item in [
            "fn f() {}",
            "pub struct S { x: u8 }",
            "impl S {}",
            "pub const N: usize = 3;",
            "mod m { fn f() {} }",
        ] {
            assert_eq!(
                lines(roots_declare_only, "crates/a/src/lib.rs", &format!("mod a;\n{item}\nmod b;\n")),
                [2]
            );
            assert_eq!(lines(roots_declare_only, "xtask/src/x/mod.rs", &format!("mod a;\n{item}\n")), [2]);
            assert_eq!(lines(roots_declare_only, "crates/a/src/other.rs", item), NONE);
        }
    }

    #[test]
    fn code_after_the_tests_is_refused() {
        let text = "//! X.\n#[cfg(test)]\nmod tests {}\nfn late() {}\n";
        assert_eq!(lines(tests_come_last, "crates/a/src/x.rs", text), [2]);
    }
}
