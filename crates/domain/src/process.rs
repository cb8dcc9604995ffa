//! Which process something belongs to, and when it is proven that this process is gone. The facts are read
//! elsewhere and judged here.

use serde::{Deserialize, Serialize};

/// Identifies one process among all, on any machine and at any time. A part that could not be read is absent, and
/// then nothing is proven by it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProcessIdentity {
    /// The machine's name.
    pub host: String,
    /// The process, by its number in its namespace.
    pub pid: u32,
    /// Names one start of the machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<String>,
    /// The namespace in which the number counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid_namespace: Option<String>,
    /// When it started, in the kernel's ticks since the machine started: numbers are used again, these are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<u64>,
}

/// What there is at the number of a process now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtPid {
    /// No process, or one that has ended and only waits to be noticed.
    Nothing,
    /// A process that started then.
    Started(u64),
    /// A process of which no more is known.
    Unreadable,
}

impl ProcessIdentity {
    /// Returns the identity of a process of which only the machine and number are known.
    pub fn unproven(host: impl Into<String>, pid: u32) -> Self {
        Self { host: host.into(), pid, boot: None, pid_namespace: None, started: None }
    }

    /// Says whether this process can be looked for by its number where `here` is: on the same machine since the same
    /// start, in the same namespace. Machines that share a name differ in their start, as one machine does after a
    /// restart. The two cases look the same, so neither is proof.
    pub fn is_visible_to(&self, here: &ProcessIdentity) -> bool {
        fn same<T: PartialEq>(left: &Option<T>, right: &Option<T>) -> bool {
            left.is_some() && left == right
        }
        self.host == here.host
            && same(&self.boot, &here.boot)
            && same(&self.pid_namespace, &here.pid_namespace)
            && self.started.is_some()
    }

    /// Says whether this process is proven to be gone, by what one that runs `here` found at its number.
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

    /// S1.7: breaks when a process counts as gone that may be alive, or when one that is gone is not known to be.
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
