//! Rules about where code may be: SQL in the store, processes in the crates that manage them.

use super::rules::Violation;
use super::source::{closing, line_at};
use super::tree::{SourceTree, crate_of};

const SQL_HOMES: [&str; 2] = ["store", "xtask"];
const PROCESS_HOMES: [&str; 4] = ["agent", "worktree", "testkit", "xtask"];

/// SQL text appears only in the store and in tests.
pub(crate) fn sql_is_in_the_store(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in tree.production().filter(|(path, _)| is_away_from(path, &SQL_HOMES)) {
        let statements = source.production_strings().filter(|literal| is_sql(&literal.text));
        found.extend(
            statements.map(|literal| Violation::new(path, literal.line, "SQL belongs to crates/store")),
        );
    }
    found
}

/// Processes are started only in the crates that manage them, and in tests.
pub(crate) fn processes_start_in_their_crates(tree: &SourceTree) -> Vec<Violation> {
    let mut found = Vec::new();
    for (path, source) in tree.production().filter(|(path, _)| is_away_from(path, &PROCESS_HOMES)) {
        let code = source.production();
        found.extend(process_commands(code).into_iter().map(|at| {
            Violation::new(
                path,
                line_at(code, at),
                "processes are started by crates/agent, and git by crates/worktree",
            )
        }));
    }
    found
}

fn is_away_from(path: &str, homes: &[&str]) -> bool {
    crate_of(path).is_some_and(|name| !homes.contains(&name))
}

/// Recognises statements by their upper-case keywords; prose has other words around `update`.
pub(crate) fn is_sql(text: &str) -> bool {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect();
    let pair = |one: &str, two: &str| words.windows(2).any(|seen| seen == [one, two]);
    let update = words.iter().position(|&word| word == "UPDATE");
    words.contains(&"SELECT")
        || pair("INSERT", "INTO")
        || pair("DELETE", "FROM")
        || pair("CREATE", "TABLE")
        || update.is_some_and(|at| words[at..].contains(&"SET"))
}

/// Returns where the code names the `Command` of a `process` module: in a path, or in a group of imports. A `Command`
/// of another module, such as clap's, is ignored.
fn process_commands(code: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, mark) in code.match_indices("process::") {
        let rest = &code[at + mark.len()..];
        let named =
            if rest.starts_with('{') { &rest[..closing(rest, 0).unwrap_or(rest.len())] } else { word(rest) };
        if named.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|name| name == "Command") {
            found.push(at);
        }
    }
    found
}

fn word(text: &str) -> &str {
    &text[..text.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(rule: fn(&SourceTree) -> Vec<Violation>, path: &str, text: &str) -> bool {
        !rule(&SourceTree::of(&[(path, text)])).is_empty()
    }

    #[test]
    fn sql_outside_the_store_is_refused() {
        let statements = [
            r#"const Q: &str = "SELECT 1";"#,
            "const Q: &str = r#\"\n  SELECT\n x FROM y\"#;",
            r#"run("INSERT INTO plans VALUES ($1)")"#,
            r#"run("UPDATE plans p SET x = 1")"#,
            r#"run("WITH x AS (DELETE FROM plans)")"#,
            r#"run("CREATE TABLE plans (id)")"#,
        ];
        for text in statements {
            assert!(refused(sql_is_in_the_store, "crates/engine/src/x.rs", text), "{text}");
            assert!(!refused(sql_is_in_the_store, "crates/store/src/x.rs", text));
            assert!(!refused(sql_is_in_the_store, "crates/engine/tests/x.rs", text));
        }
        let prose = r#"say("update the plan and set it; nothing to SELECTIVELY keep")"#;
        assert!(!refused(sql_is_in_the_store, "crates/engine/src/x.rs", prose));
    }

    #[test]
    fn starting_a_process_outside_its_crates_is_refused() {
        let ways = [
            "use std::process::Command;",
            "use tokio::process::{Child, Command as Program};",
            "fn f() { std::process::Command::new(x); }",
            "use std::{fs, process::{ExitCode, Command}};",
        ];
        for text in ways {
            assert!(refused(processes_start_in_their_crates, "crates/drydock/src/x.rs", text), "{text}");
            assert!(!refused(processes_start_in_their_crates, "crates/agent/src/x.rs", text));
            let test = format!("#[cfg(test)]\nmod tests {{\n{text}\n}}\n");
            assert!(!refused(processes_start_in_their_crates, "crates/drydock/src/x.rs", &test));
        }
        for text in ["use clap::Command;\nfn f() { Command::new(x); }", "use std::process::ExitCode;"] {
            assert!(!refused(processes_start_in_their_crates, "crates/drydock/src/x.rs", text), "{text}");
        }
    }
}
