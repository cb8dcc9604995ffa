//! The figures that the product promises, as ratios measured in one run. `cargo xtask bench` runs this.
//!
//! Absolute times differ from machine to machine and from minute to minute; each figure here is compared with
//! something bare that runs in turns with it: a plain commit, `git --version`, `git worktree add`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table and may give up")]

#[path = "../../tests/browser/browser.rs"]
#[allow(dead_code, reason = "the tests need more of it")]
mod browser;
mod commits;
mod crowds;
mod fans;
mod fleet;
mod lists;
mod measure;
mod page;
mod seed;
mod server;
mod start;
mod sync;
mod trees;

use std::process::ExitCode;

use measure::Table;

/// The name of a measurement and the function that runs it.
type Part<'a> = (&'static str, &'a dyn Fn(&mut Table));

fn main() -> ExitCode {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Ok(path) = std::env::var(server::BARE) {
        runtime.block_on(server::bare(&path));
        return ExitCode::SUCCESS;
    }
    let parts: [Part<'_>; 10] = [
        ("start", &start::run),
        ("worktree", &trees::run),
        ("crowds", &crowds::run),
        ("connections", &fleet::run),
        ("sync", &sync::run),
        ("commits", &|table| runtime.block_on(commits::run(table))),
        ("subplans", &|table| runtime.block_on(fans::run(table))),
        ("lists", &|table| runtime.block_on(lists::run(table))),
        ("page", &|table| runtime.block_on(page::run(table))),
        ("server", &|table| runtime.block_on(server::run(table))),
    ];
    let mut table = Table::new(std::io::stdout());
    for (name, measure) in parts {
        if wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str())) {
            table.part(name, measure);
        }
    }
    println!("\n{table}");
    if table.failed().is_empty() {
        return ExitCode::SUCCESS;
    }
    println!("failed: {}", table.failed().join(", "));
    ExitCode::FAILURE
}
