//! Which failures can pass by themselves.

use crate::ErrorClass;

/// What to expect of the same thing tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outlook {
    /// It may pass.
    MayPass,
    /// The same would happen again.
    Lasting,
}

/// Returns what to expect after a failure of this class.
pub fn outlook(class: ErrorClass) -> Outlook {
    match class {
        ErrorClass::AgentFailed
        | ErrorClass::FailedModel
        | ErrorClass::Stalled
        | ErrorClass::AgentTimedOut
        | ErrorClass::Uncapturable
        | ErrorClass::Git
        | ErrorClass::Filesystem => Outlook::MayPass,
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
        | ErrorClass::Inconsistent => Outlook::Lasting,
    }
}
