//! Classifies failures as temporary or permanent.

use crate::ErrorClass;

/// Whether a retry can succeed without other changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transience {
    /// A retry may succeed.
    MayPass,
    /// A retry would fail in the same way.
    Lasting,
}

/// Classifies a failure.
pub fn outlook(class: ErrorClass) -> Transience {
    match class {
        ErrorClass::AgentFailed
        | ErrorClass::FailedModel
        | ErrorClass::Stalled
        | ErrorClass::AgentTimedOut
        | ErrorClass::Uncapturable
        | ErrorClass::Git
        | ErrorClass::Filesystem => Transience::MayPass,
        ErrorClass::AgentMissing
        | ErrorClass::FailedAuth
        | ErrorClass::Refused
        | ErrorClass::ForbiddenChange
        | ErrorClass::StrategyInvalid
        | ErrorClass::ValidationFailed
        | ErrorClass::TargetDirty
        | ErrorClass::Diverged
        | ErrorClass::ResetFailed
        | ErrorClass::SubplanFailed
        | ErrorClass::SubplanConflict
        | ErrorClass::Inconsistent => Transience::Lasting,
    }
}
