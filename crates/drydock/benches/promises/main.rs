//! The figures that the product promises, as ratios measured in one run. `cargo xtask bench` runs this.
//!
//! Absolute times differ from machine to machine and from minute to minute; each figure here is compared with
//! something bare that runs in turns with it: a plain commit, `git --version`, `git worktree add`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program that prints a table and may give up")]

mod commits;
mod lists;
mod measure;
mod seed;
mod start;
mod sync;
mod trees;

use measure::Table;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let asked = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let mut table = Table::default();
    if asked("start") {
        start::run(&mut table);
    }
    if asked("worktree") {
        trees::run(&mut table);
    }
    if asked("sync") {
        sync::run(&mut table);
    }
    if asked("commits") {
        runtime.block_on(commits::run(&mut table));
    }
    if asked("lists") {
        runtime.block_on(lists::run(&mut table));
    }
    println!("\n{table}");
}
