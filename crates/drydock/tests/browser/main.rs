//! The page in a real browser: `cargo xtask test` installs Debian's chromium and its driver, and runs this target by
//! name. It is no part of `cargo test`, because the browser must be there first.
#![allow(clippy::unwrap_used, reason = "a test may stop")]

#[path = "../it/world.rs"]
#[allow(dead_code, unused_macros, reason = "the other tests need more of it")]
#[macro_use]
mod world;

#[path = "../it/shared.rs"]
#[allow(dead_code, reason = "the other tests need more of it")]
mod shared;

mod access;
mod branching;
mod breaking;
mod browser;
mod keyboard;
mod large;
mod printing;
mod proxy;
mod scene;
mod signing;
mod steering;
mod story;
mod widths;
mod windows;
