//! Text for people: pure functions from API values to strings, one file per object. The strings always contain
//! colour, which is removed if the output is not a terminal; colour never carries meaning alone. Control characters
//! in text from agents and files are escaped here, so that it cannot control the terminal.

pub(crate) mod action;
pub(crate) mod agent;
pub(crate) mod backup;
pub(crate) mod changeset;
pub(crate) mod checkpoint;
pub(crate) mod columns;
pub(crate) mod decision;
pub(crate) mod diff;
pub(crate) mod doctor;
pub(crate) mod event;
pub(crate) mod explain;
pub(crate) mod gc;
pub(crate) mod graph;
pub(crate) mod invariant;
pub(crate) mod lock;
pub(crate) mod log;
pub(crate) mod next;
pub(crate) mod plan;
pub(crate) mod problem;
pub(crate) mod project;
pub(crate) mod style;
pub(crate) mod time;
pub(crate) mod token;
pub(crate) mod tree;
pub(crate) mod why;
