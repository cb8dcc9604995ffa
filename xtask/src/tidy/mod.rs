//! `cargo xtask tidy`: rules over the tree that neither the compiler nor clippy can hold. There is no list of
//! exceptions; a rule that needs one is a wrong rule. Each file holds a few rules and shows each a tree it must refuse.

mod documents;
mod layers;
mod names;
mod places;
mod rules;
mod shape;
mod source;
mod tree;
mod words;

pub(crate) use rules::run;
