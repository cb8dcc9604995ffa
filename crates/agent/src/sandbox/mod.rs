//! Where a run may write and read, and its resource limits: the configuration, and the kernel's enforcement.

mod calls;
mod kernel;
mod policy;
mod powers;
mod resources;
mod size;

pub use kernel::{Landlock, landlock};
pub(crate) use kernel::{SandboxPaths, confine};
pub(crate) use policy::{Floor, describe};
pub use policy::{Reads, Sandbox, SandboxMode};
pub use resources::Resource;
pub(crate) use resources::{RawResources, Resources};
pub use size::Size;
