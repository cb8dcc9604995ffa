//! `cargo xtask tidy`: rules over the tree that neither the compiler nor clippy can check. No file is exempt from a
//! rule; a rule that needs such an exception is wrong. Each file has a few rules, and tests that each rule refuses a
//! bad tree.

mod documents;
mod items;
mod layers;
mod names;
mod places;
mod plain;
mod rules;
mod shape;
mod source;
mod tree;
mod types;
mod words;

pub(crate) use rules::run;
