//! The drydock program.

mod config;
mod render;

fn main() {}
