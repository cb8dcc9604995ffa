//! Drops root's capabilities in the sandbox that do not concern files, such as loading a kernel module,
//! reading the memory of any process, or rebooting.

use std::io;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set};

/// Kept capabilities: those over files and users that are needed to install and test software as root.
const LEFT: CapabilitySet = CapabilitySet::CHOWN
    .union(CapabilitySet::DAC_OVERRIDE)
    .union(CapabilitySet::FOWNER)
    .union(CapabilitySet::FSETID)
    .union(CapabilitySet::KILL)
    .union(CapabilitySet::SETGID)
    .union(CapabilitySet::SETUID)
    .union(CapabilitySet::SETPCAP)
    .union(CapabilitySet::NET_BIND_SERVICE)
    .union(CapabilitySet::SYS_CHROOT)
    .union(CapabilitySet::SETFCAP);

/// Drops root's capabilities for processes that the calling thread starts. Other users have none, and cannot
/// gain any in the sandbox.
pub(super) fn give_up() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for power in CapabilitySet::all().difference(LEFT).iter() {
        match capability_is_in_bounding_set(power) {
            Ok(true) => remove_capability_from_bounding_set(power)?,
            // Already dropped, or not known to this kernel.
            Ok(false) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
