//! What the doctor found.

use serde::{Deserialize, Serialize};

use crate::word::words;

words! {
    /// How a check came out.
    CheckStatus {
        /// Fine.
        Ok = "ok",
        /// Works, but somebody should know.
        Warn = "warn",
        /// Does not work.
        Error = "error",
    }
}

/// What all checks found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Doctor {
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// How many locks ran out without anybody taking them over.
    pub stale_locks: u64,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Check {
    /// What was checked.
    pub name: String,
    /// How it came out.
    pub status: CheckStatus,
    /// What was found.
    pub text: String,
    /// What to do about it.
    #[serde(default)]
    pub hint: Option<String>,
}

/// The doctor's report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct OneDoctor {
    /// The report.
    pub doctor: Doctor,
}
