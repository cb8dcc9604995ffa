//! `cargo xtask tidy`: rules over the tree that neither the compiler nor clippy can check. There is no list of
//! exceptions; a rule that needs one is a wrong rule. Each file has a few rules, and tests that each rule refuses a
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
mod words;

pub(crate) use rules::run;
