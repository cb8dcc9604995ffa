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

use measure::Table;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let asked = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    if let Ok(path) = std::env::var(server::BARE) {
        return runtime.block_on(server::bare(&path));
    }
    let mut table = Table::default();
    if asked("start") {
        start::run(&mut table);
    }
    if asked("worktree") {
        trees::run(&mut table);
    }
    if asked("crowds") {
        crowds::run(&mut table);
    }
    if asked("connections") {
        fleet::run(&mut table);
    }
    if asked("sync") {
        sync::run(&mut table);
    }
    if asked("commits") {
        runtime.block_on(commits::run(&mut table));
    }
    if asked("subplans") {
        runtime.block_on(fans::run(&mut table));
    }
    if asked("lists") {
        runtime.block_on(lists::run(&mut table));
    }
    if asked("page") {
        runtime.block_on(page::run(&mut table));
    }
    if asked("server") {
        runtime.block_on(server::run(&mut table));
    }
    println!("\n{table}");
}
