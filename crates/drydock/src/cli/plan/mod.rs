//! `drydock plan`: its definition, and one file per kind of thing done with plans.

mod args;
mod log;
mod look;
mod make;
mod moves;
mod steer;
mod together;

pub(crate) use args::{Plan, run};
