//! `drydock plan`: the definition of its subcommands, and one file per group of them.

mod args;
mod log;
mod look;
mod make;
mod moves;
mod steer;
mod together;

pub(crate) use args::{PlanCommand, run};
