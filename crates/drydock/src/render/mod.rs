//! Text for people: pure functions from wire values to strings, one file per object. Colour is always in the string
//! and taken out when it is printed to something that is not a terminal; it never carries meaning alone. Text that
//! comes from agents and files is made harmless here, so that it cannot steer a terminal.

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
