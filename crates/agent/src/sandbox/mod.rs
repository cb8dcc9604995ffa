//! Where a run may write and read, and its resource limits: the configuration, and the kernel's enforcement.

mod calls;
mod kernel;
mod policy;
mod powers;
mod resources;
mod size;

pub(crate) use kernel::{Cage, confine};
pub use kernel::{Landlock, landlock};
pub(crate) use policy::{Floor, describe};
pub use policy::{Reads, Sandbox, SandboxMode};
pub use resources::Resource;
pub(crate) use resources::{Resources, WrittenResources};
pub use size::Size;
