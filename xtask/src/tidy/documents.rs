//! Rules about documents: decision records are numbered and listed, and links resolve.

use super::rules::Violation;
use super::tree::{SourceTree, Text};

const DECISIONS: &str = "docs/decisions/";
const DECISIONS_LIST: &str = "docs/decisions/README.md";

/// The number of digits at the start of a decision record's name.
const NUMBER_DIGITS: usize = 4;

/// Each decision record has a unique number in its name, and a line in the list.
pub(crate) fn decisions_are_listed(tree: &SourceTree) -> Vec<Violation> {
    let inside = |file: &&Text| file.path.starts_with(DECISIONS) && file.path != DECISIONS_LIST;
    let decisions: Vec<&Text> = tree.texts().filter(inside).collect();
    let list = tree.texts().find(|file| file.path == DECISIONS_LIST).map_or("", |file| file.text.as_str());
    let mut found = Vec::new();
    for decision in &decisions {
        let name = &decision.path[DECISIONS.len()..];
        let mut complain = |text: &str| found.push(Violation::new(&decision.path, 1, text));
        match number(name) {
            None => complain("a decision must be named `0000-in-a-few-words.md`, with its own number"),
            Some(own) => {
                let same = |other: &&&Text| number(&other.path[DECISIONS.len()..]) == Some(own);
                if decisions.iter().filter(same).count() > 1 {
                    complain("another decision has this number");
                }
            }
        }
        if !list.contains(&format!("]({name})")) {
            complain("the decision is not listed in docs/decisions/README.md");
        }
    }
    found
}

/// Relative links in documents lead to a file or directory of the tree.
pub(crate) fn links_resolve(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for file in tree.texts().filter(|file| file.path.ends_with(".md")) {
        for (line, target) in links(&file.text) {
            if !resolve(&file.path, target).is_some_and(|path| tree.has(&path)) {
                found.push(Violation::new(
                    &file.path,
                    line,
                    format!("the target of the link `{target}` does not exist"),
                ));
            }
        }
    }
    found
}

fn number(name: &str) -> Option<&str> {
    let (number, words) = name.strip_suffix(".md")?.split_once('-')?;
    let numbered = number.len() == NUMBER_DIGITS && number.bytes().all(|byte| byte.is_ascii_digit());
    let worded = words.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
    (numbered && worded && !words.is_empty()).then_some(number)
}

/// Returns the targets of relative links with their lines, except those in code.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let targets = inline_targets(line).into_iter().chain(defined_target(line));
            found.extend(targets.filter(|target| is_relative(target)).map(|target| (index + 1, target)));
        }
    }
    found
}

/// Returns the targets of `[text](target)`.
fn inline_targets(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for (at, mark) in line.match_indices("](") {
        let in_code = line[..at].matches('`').count() % 2 == 1;
        let rest = &line[at + mark.len()..];
        if let Some(end) = rest.find(')').filter(|_| !in_code) {
            // A title may follow after a space.
            found.extend(rest[..end].split_whitespace().next());
        }
    }
    found
}

/// Returns the target of a `[name]: target` line.
fn defined_target(line: &str) -> Option<&str> {
    let (name, target) = line.strip_prefix('[')?.split_once("]: ")?;
    (!name.contains(']')).then(|| target.split_whitespace().next()).flatten()
}

fn is_relative(target: &str) -> bool {
    !target.starts_with('#') && !target.contains("://") && !target.starts_with("mailto:")
}

/// Returns the path that a link leads to, or none if it leaves the tree.
fn resolve(from: &str, target: &str) -> Option<String> {
    let target = target.split('#').next().unwrap_or_default();
    let mut names: Vec<&str> = from.split('/').collect();
    names.pop();
    for name in target.split('/') {
        match name {
            "" | "." => {}
            ".." => _ = names.pop()?,
            name => names.push(name),
        }
    }
    Some(names.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_without_number_or_listing_is_refused() {
        let refused = |files: &[(&str, &str)]| decisions_are_listed(&SourceTree::of(files)).len();
        let list = (DECISIONS_LIST, "- [0001](0001-use-git.md)\n- [x](use-git.md)\n- [1](0001-use-sql.md)\n");
        assert_eq!(refused(&[list, ("docs/decisions/0001-use-git.md", "")]), 0);
        assert_eq!(refused(&[list, ("docs/decisions/0002-other.md", "")]), 1, "not listed");
        assert_eq!(refused(&[list, ("docs/decisions/use-git.md", "")]), 1, "no number");
        let twice = [list, ("docs/decisions/0001-use-git.md", ""), ("docs/decisions/0001-use-sql.md", "")];
        assert_eq!(refused(&twice), 2, "one number for two");
        assert_eq!(refused(&[("docs/decisions/0001-use-git.md", "")]), 1, "no list at all");
    }

    #[test]
    fn a_link_that_leads_nowhere_is_refused() {
        let text = "[a](b.md) [c](../README.md#part) [d](https://x.y/z) [e](#part) [f](../src) `[g](none)`\n\
                    ```\n[h](none)\n```\n[i](none.md \"title\")\n[j](../../out.md)\n[k]: nowhere.md\n[l]: b.md\n";
        let tree =
            SourceTree::of(&[("docs/a.md", text), ("docs/b.md", ""), ("README.md", ""), ("src/x.rs", "")]);
        let lines: Vec<usize> = links_resolve(&tree).into_iter().map(|found| found.line).collect();
        assert_eq!(lines, [5, 6, 7]);
    }
}
