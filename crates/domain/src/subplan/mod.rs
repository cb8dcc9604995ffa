//! Subplans: the parts that a strategy splits a task into, the order in which they run and join, and the
//! effect of their results on the parent. Everything here is a function of stored values; the engine reads
//! and acts.

mod birth;
mod fanout;
mod graph;
mod outlook;
mod question;
mod rules;
mod schedule;
#[cfg(test)]
mod tests;

pub use birth::{Birth, Inherited, NewChild};
pub(crate) use birth::{born, handed_on};
pub use fanout::{
    FailureRecord, Fanout, Fate, Lands, Mends, MergeStrategy, OnFailure, Piece, PieceTask, Place, Side, Turn,
};
pub use graph::{FanoutError, arrange};
pub use outlook::{Outlook, outlook};
pub use question::{Clashed, Clashing, Marks};
pub use rules::{Holding, Inheritance};
pub use schedule::{Acts, News, Seen};
