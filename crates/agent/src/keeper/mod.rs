//! The process between drydock and the programs it starts: no process of a run outlives its keeper, and no
//! keeper outlives its drydock.

mod keep;
mod limits;
pub(crate) mod orphans;
pub(crate) mod processes;
pub(crate) mod wire;

pub(crate) use keep::SWEEP_PATIENCE;
pub use keep::run_keeper;
pub use orphans::{adopt_orphans, reap_orphans};
