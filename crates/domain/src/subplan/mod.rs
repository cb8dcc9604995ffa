//! Subplans: the pieces a strategy is cut into, in which order they run and join, and what their ends mean for the
//! plan that asked for them. All of it is a function of stored values; looking and doing is the engine's.

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
