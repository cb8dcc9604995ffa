//! The command line: one file per group of commands. A command sends requests through the client of `drydock_api`, to
//! a server or to the router in this process, and returns a report. Printing, envelopes and exit codes are the same
//! for all commands and also live here.

mod action;
mod agent;
mod args;
mod backend;
mod backup;
mod bearer;
mod changeset;
mod checkpoint;
mod confirm;
mod decision;
mod demo;
mod doctor;
mod envelope;
mod events;
mod follow;
mod gc;
mod ground;
mod inside;
mod interrupt;
mod invariant;
mod lock;
mod log;
mod manual;
mod mcp;
mod outcome;
mod plan;
mod progress;
mod project;
mod report;
mod repository;
mod run;
mod schema;
mod screen;
mod serve;
mod session;
mod start;
mod store;
mod tail;
mod token;

pub(crate) use backend::{Backend, DriveOutcome};
pub(crate) use interrupt::Interrupts;
pub(crate) use start::main;
