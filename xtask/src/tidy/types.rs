//! The rule about type names: one name is one type in the whole workspace. It sees structs, enums, unions, traits and
//! aliases at item level, and enums in the body of a macro call. Types inside functions, trait and impl bodies,
//! and tests have their own scope and are skipped.

use std::collections::BTreeMap;

use super::items::{Item, items};
use super::rules::Violation;
use super::source::{closing, line_at, words};
use super::tree::SourceTree;

/// Names that two types may share. `domain` and `api` both define the words of the contract because their times, ids
/// or data differ in JSON; `Traces` has one definition with the feature `otel` and one without it.
const DEFINED_TWICE: [&str; 15] = [
    "Action",
    "Changeset",
    "Decision",
    "DecisionOption",
    "DecisionStatus",
    "Event",
    "Invariant",
    "Lock",
    "Offer",
    "Plan",
    "Project",
    "Resolution",
    "Token",
    "Traces",
    "Validation",
];

/// Enums that `api` defines again with the same variants. They leave this list when `api` re-exports the definition of
/// the other crate.
const TO_RE_EXPORT: [&str; 9] = [
    "ChangeOp",
    "ChangesetState",
    "DecisionOrder",
    "LockScope",
    "OnDivergence",
    "Phase",
    "State",
    "TokenKind",
    "TokenState",
];

/// Programs that only tests start.
const TEST_PROGRAMS: &str = "crates/testkit/src/bin/";

/// A type name is defined once in the workspace. The finding is at the first definition and lists all of them.
pub(crate) fn types_are_defined_once(tree: &SourceTree) -> Vec<Violation> {
    let mut places: BTreeMap<&str, Vec<(&str, usize)>> = BTreeMap::new();
    for (path, source) in tree.production().filter(|(path, _)| !path.starts_with(TEST_PROGRAMS)) {
        for definition in definitions(source.production(), 1) {
            places.entry(definition.name).or_default().push((path, definition.line));
        }
    }
    let repeated = places.into_iter().filter(|(name, places)| places.len() > permitted(name));
    let found = repeated.map(|(name, mut places)| {
        places.sort_unstable();
        let listed: Vec<String> = places.iter().map(|(path, line)| format!("{path}:{line}")).collect();
        let text = format!(
            "`{name}` is defined {} times, at most {}: {}",
            listed.len(),
            permitted(name),
            listed.join(", ")
        );
        let (path, line) = places[0];
        Violation::new(path, line, text)
    });
    found.collect()
}

fn permitted(name: &str) -> usize {
    if DEFINED_TWICE.contains(&name) || TO_RE_EXPORT.contains(&name) { 2 } else { 1 }
}

/// The definition of a type.
struct TypeDefinition<'a> {
    name: &'a str,
    line: usize,
}

/// Returns the types that the outermost items define, and those in modules with a body.
fn definitions(code: &str, first_line: usize) -> Vec<TypeDefinition<'_>> {
    let mut found = Vec::new();
    for item in items(code).into_iter().filter(|item| !is_for_tests(item)) {
        let declaration = item.declaration();
        let attributes = item.text.len() - declaration.len();
        let line_of = |at: usize| first_line + item.line + line_at(item.text, attributes + at) - 2;
        if let Some((at, name)) = defined_name(declaration) {
            found.push(TypeDefinition { name, line: line_of(at) });
        } else if declaration.starts_with("mod ")
            && let Some(open) = declaration.find('{')
        {
            let end = closing(declaration, open).unwrap_or(declaration.len());
            found.extend(definitions(&declaration[open + 1..end - 1], line_of(open)));
        }
    }
    found
}

fn is_for_tests(item: &Item<'_>) -> bool {
    let attributes = item.text.len() - item.declaration().len();
    item.text[..attributes].contains("#[cfg(test)]")
}

/// Returns the name of the type that an item defines, with its offset.
fn defined_name(declaration: &str) -> Option<(usize, &str)> {
    let mut words = words(declaration).skip_while(|(_, word)| *word == "unsafe");
    let (start, keyword) = words.next()?;
    let (at, name) = match keyword {
        "struct" | "enum" | "union" | "trait" | "type" => words.next()?,
        _ => return macro_name(declaration),
    };
    // `union` is a keyword only directly before a name.
    declaration[start + keyword.len()..at].trim().is_empty().then_some((at, name))
}

/// Returns the type that a macro defines, as in `words! { Name { … } }`. A name in parentheses is not one, because the
/// macro may only implement something for it.
fn macro_name(declaration: &str) -> Option<(usize, &str)> {
    let (path, called) = declaration.split_once('!')?;
    let is_path = path.chars().all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    let body = called.trim_start().strip_prefix('{')?;
    let content = Item { text: body.trim_start(), line: 1 }.declaration();
    let (_, name) = words(content).next().filter(|(at, _)| *at == 0)?;
    let is_defined = content[name.len()..].trim_start().starts_with('{');
    (is_path && name.starts_with(char::is_uppercase) && is_defined)
        .then_some((declaration.len() - content.len(), name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(files: &[(&str, &str)]) -> Vec<String> {
        types_are_defined_once(&SourceTree::of(files)).iter().map(Violation::to_string).collect()
    }

    fn is_refused(one: &str, other: &str) -> bool {
        !refused(&[("crates/a/src/x.rs", one), ("crates/b/src/y.rs", other)]).is_empty()
    }

    #[test]
    fn a_type_with_two_definitions_is_refused_with_all_places() {
        let files = [
            ("crates/b/src/y.rs", "//! Y.\n\n#[derive(Debug)]\npub(crate) enum Entry { A }\n"),
            ("crates/a/src/x.rs", "//! X.\nstruct Entry;\nstruct Other { x: u8 }\n"),
            ("xtask/src/z.rs", "//! Z.\nmod inner {\n    pub type Entry = u8;\n}\n"),
        ];
        let expected = "crates/a/src/x.rs:2: `Entry` is defined 3 times, at most 1: crates/a/src/x.rs:2, \
                        crates/b/src/y.rs:4, xtask/src/z.rs:3";
        assert_eq!(refused(&files), [expected]);
    }

    #[test]
    fn every_kind_of_type_is_seen() {
        for definition in [
            "struct Entry(u8);",
            "pub struct Entry<'a, T> where T: X<[u8; 2]> { x: &'a T }",
            "#[derive(Debug)]\n#[serde(x = \"y\")]\npub(in crate::a) enum Entry { A, B { c: u8 } }",
            "union Entry { a: u8 }",
            "pub unsafe trait Entry {}",
            "type Entry<T> = Box<T>;",
            "const A: B = B { c: 1 };\nstruct Entry;",
            "use a::{b, c};\npub use d::{e};\nstruct Entry;",
            "fn f() -> [u8; 2] { [0; 2] }\nimpl X { fn g() {} }\nstruct Entry;",
            "words! {\n    #[doc(hidden)]\n    Entry {\n        A = \"a\",\n    }\n}",
            "crate::words! { Entry { A = \"a\", } }",
        ] {
            assert!(is_refused("struct Entry;", definition), "{definition}");
        }
        assert!(!refused(&[("crates/a/src/x.rs", "struct Entry;\nmod a { enum Entry {} }")]).is_empty());
    }

    #[test]
    fn types_with_their_own_scope_are_not_compared() {
        for other in [
            "fn f() { struct Entry; }",
            "impl Iterator for X { type Entry = u8; }",
            "trait X { type Entry; }",
            "struct Entries;",
            "use a::Entry;",
            "impl Entry { }",
            "macro_rules! m { ($name:ident) => { struct $Entry; }; }",
            "codes! { Entry = 1; }",
            "object_name!(Entry);",
            "union!(Entry);",
            "// struct Entry;\nconst X: &str = \"struct Entry;\";",
            "#[derive(Debug)]\n#[cfg(test)]\nstruct Entry;",
            "#[cfg(test)]\nmod tests {\n    struct Entry;\n}",
        ] {
            assert!(!is_refused("struct Entry;", other), "{other}");
        }
        for path in [
            "crates/a/tests/y.rs",
            "crates/a/src/tests/y.rs",
            "crates/a/benches/y.rs",
            "crates/testkit/src/bin/y.rs",
        ] {
            assert!(
                refused(&[("crates/a/src/x.rs", "struct Entry;"), (path, "struct Entry;")]).is_empty(),
                "{path}"
            );
        }
    }

    #[test]
    fn a_listed_name_may_have_two_definitions_and_not_three() {
        for name in DEFINED_TWICE {
            let text = format!("struct {name};");
            let files =
                ["crates/a/src/x.rs", "crates/b/src/x.rs", "crates/c/src/x.rs"].map(|path| (path, &*text));
            assert!(refused(&files[..2]).is_empty(), "{name}");
            assert_eq!(refused(&files).len(), 1, "{name}");
        }
    }
}
