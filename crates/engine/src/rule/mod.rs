//! Checks of invariants: facts about a plan, expressions over them, and commands.

mod enforce;
mod expression;
mod facts;
mod measure;
mod schema;

pub(crate) use enforce::{CommitRange, effective_for};
pub(crate) use expression::refuse_unusable;
pub use schema::{RuleFact, rule_facts};
