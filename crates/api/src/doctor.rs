//! The doctor's report.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// The result of a check.
    CheckStatus {
        /// In order.
        Ok = "ok",
        /// Works, but needs attention.
        Warn = "warn",
        /// Does not work.
        Error = "error",
    }
}

/// The results of all checks.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Doctor {
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The number of expired locks that were not taken over.
    pub stale_locks: u64,
}

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// The name of the check.
    pub name: String,
    /// The result.
    pub status: CheckStatus,
    /// The observation.
    pub text: String,
    /// The next step, if one is needed.
    #[serde(default)]
    pub hint: Option<String>,
}

/// The doctor's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneDoctor {
    /// The report.
    pub doctor: Doctor,
}
