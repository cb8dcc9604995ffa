//! Agents that people have, from their own packages, against a model of ours: `cargo xtask test --agents`.
//!
//! This target is no part of `cargo test`, because the agents must be installed first.
#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "../it/world.rs"]
#[allow(dead_code, unused_macros, reason = "the other tests need more of it")]
#[macro_use]
mod world;

mod codex;
mod desk;
mod failing;
mod goose;
