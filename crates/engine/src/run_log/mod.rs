//! The log of a run: the output of its agents, validations and reviewers, as lines of JSON in files next to
//! the store.

mod follow;
mod handle;
mod line;
mod reader;
mod segment;
mod sweep;
mod writer;

pub use follow::{FirstLog, LogFollower, LogNews, LogRange, LogSlice, LogStart, LogSummary, RunState};
pub(crate) use handle::RunLog;
pub use line::NOTICE;

#[cfg(test)]
mod tests;
