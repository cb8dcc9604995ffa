//! What root loses in the sandbox: the powers that work beside files, such as loading a module into the kernel, reading
//! the memory of any process, or restarting the machine.

use std::io;

use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capability_is_in_bounding_set, remove_capability_from_bounding_set};

/// What is left: the powers over files and users that installing and testing software as root takes.
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

/// Takes root's powers from what the calling thread starts. Nobody else has any, and none can gain some in the sandbox.
pub(super) fn give_up() -> io::Result<()> {
    if !geteuid().is_root() {
        return Ok(());
    }
    for power in CapabilitySet::all().difference(LEFT).iter() {
        match capability_is_in_bounding_set(power) {
            Ok(true) => remove_capability_from_bounding_set(power)?,
            // Not there, or not known to this kernel.
            Ok(false) | Err(Errno::INVAL) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
