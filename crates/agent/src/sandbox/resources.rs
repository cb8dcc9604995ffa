//! Resource limits of one run. The keeper counts memory and processes over the whole run; open files are
//! limited per process by the system.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::size::Size;

/// More than any build needs, and few enough that the machine stays usable while they are killed.
const PROCESSES_DEFAULT_MAX: u64 = 4096;
/// The smallest limits under which a shell still starts.
const MEMORY_MIN: u64 = 64 * 1024 * 1024;
const FILES_MIN: u64 = 64;

/// A resource whose limit was exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Memory, in bytes.
    Memory,
    /// Number of living processes.
    Processes,
}

impl fmt::Display for Resource {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(match self {
            Self::Memory => "bytes of memory",
            Self::Processes => "processes",
        })
    }
}

/// Resource limits of one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Resources {
    pub(crate) memory_max: Option<u64>,
    pub(crate) processes_max: u64,
    pub(crate) files_max: Option<u64>,
}

impl Default for Resources {
    fn default() -> Self {
        Self { memory_max: None, processes_max: PROCESSES_DEFAULT_MAX, files_max: None }
    }
}

/// Configured limits, in `[sandbox]` for all runs and in `[agents.NAME]` for one agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct RawResources {
    pub(crate) memory_max: Option<u64>,
    pub(crate) processes_max: Option<u64>,
    pub(crate) files_max: Option<u64>,
}

impl RawResources {
    /// Checks configured limits, and returns which one is not valid.
    pub(crate) fn checked(
        memory_max: Option<Size>,
        processes_max: Option<u64>,
        files_max: Option<u64>,
    ) -> Result<Self, String> {
        let memory_max = memory_max.map(|size| size.0);
        if memory_max.is_some_and(|bytes| bytes < MEMORY_MIN) {
            return Err("memory_max must be at least 64MiB: with less, no program starts".into());
        }
        if processes_max == Some(0) {
            return Err("processes_max must be at least 1".into());
        }
        if files_max.is_some_and(|files| files < FILES_MIN) {
            return Err(format!("files_max must be at least {FILES_MIN}"));
        }
        Ok(Self { memory_max, processes_max, files_max })
    }

    /// Returns `under`, overridden by the configured limits.
    pub(crate) fn over(self, under: Resources) -> Resources {
        Resources {
            memory_max: self.memory_max.or(under.memory_max),
            processes_max: self.processes_max.unwrap_or(under.processes_max),
            files_max: self.files_max.or(under.files_max),
        }
    }
}
