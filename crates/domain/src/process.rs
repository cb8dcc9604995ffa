//! Process identity: identifies the process that holds something, and decides when that process is proven to
//! be gone. Other crates read the facts; this file only compares them.

use serde::{Deserialize, Serialize};

/// Identifies one process among all, on any machine and at any time. A part that could not be read is absent,
/// and then proves nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The host name.
    pub host: String,
    /// The process id within its pid namespace.
    pub pid: u32,
    /// Identifies one boot of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The pid namespace of the process id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
    /// The start time in kernel ticks since boot. Process ids are reused, start times are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
}

/// The process found at a process id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPid {
    /// None, or a zombie that has not been reaped.
    Nothing,
    /// A process with this start time.
    Started(u64),
    /// A process whose start time could not be read.
    Unreadable,
}

impl ProcessIdentity {
    /// Returns an identity with only the host and process id known, which proves nothing.
    pub fn unproven(host: impl Into<String>, pid: u32) -> Self {
        Self { host: host.into(), pid, boot: None, pid_namespace: None, started: None }
    }

    /// Returns true if a process with identity `here` can look this process up by its process id: same host,
    /// same boot and same pid namespace. A different boot id with the same host name may be another machine
    /// or a reboot of this one. These two cases cannot be distinguished, so neither is proof.
    pub fn is_visible_to(&self, here: &ProcessIdentity) -> bool {
        fn same<T: PartialEq>(left: &Option<T>, right: &Option<T>) -> bool {
            left.is_some() && left == right
        }
        self.host == here.host
            && same(&self.boot, &here.boot)
            && same(&self.pid_namespace, &here.pid_namespace)
            && self.started.is_some()
    }

    /// Returns true if this process is proven to be gone, given the process that `here` found at its process
    /// id.
    pub fn is_gone(&self, here: &ProcessIdentity, found: AtPid) -> bool {
        self.is_visible_to(here)
            && match found {
                AtPid::Nothing => true,
                AtPid::Started(at) => self.started != Some(at),
                AtPid::Unreadable => false,
            }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity() -> ProcessIdentity {
        ProcessIdentity {
            host: "here".to_owned(),
            pid: 7,
            boot: Some("b".to_owned()),
            pid_namespace: Some("pid:[1]".to_owned()),
            started: Some(100),
        }
    }

    /// S1.7: fails if a process that may be alive counts as gone, or if one that is gone is not detected.
    #[test]
    fn only_what_can_be_looked_for_is_proven_gone() {
        let (holder, here) = (identity(), ProcessIdentity { pid: 8, started: Some(200), ..identity() });
        assert!(holder.is_gone(&here, AtPid::Nothing));
        assert!(holder.is_gone(&here, AtPid::Started(150)), "its number was used again");
        assert!(!holder.is_gone(&here, AtPid::Started(100)));
        assert!(!holder.is_gone(&here, AtPid::Unreadable));
        for unlike in [
            ProcessIdentity { host: "there".to_owned(), ..identity() },
            ProcessIdentity { boot: Some("c".to_owned()), ..identity() },
            ProcessIdentity { boot: None, ..identity() },
            ProcessIdentity { pid_namespace: Some("pid:[2]".to_owned()), ..identity() },
            ProcessIdentity { pid_namespace: None, ..identity() },
            ProcessIdentity { started: None, ..identity() },
            ProcessIdentity::unproven("here", 7),
        ] {
            assert!(!unlike.is_gone(&here, AtPid::Nothing), "{unlike:?}");
        }
        let blind = ProcessIdentity { pid_namespace: None, ..here };
        assert!(!ProcessIdentity { pid_namespace: None, ..holder }.is_gone(&blind, AtPid::Nothing));
    }
}
