//! The one table of error codes. Each has a stable text, the HTTP status it is sent with, and the exit code of a
//! command that ends with it. A code never changes its meaning; new ones are added. An unknown code from a newer
//! server becomes `Other`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Exit codes of the command line.
pub mod exit {
    /// Success.
    pub const OK: u8 = 0;
    /// Failure.
    pub const FAILED: u8 = 1;
    /// Wrong usage or invalid input.
    pub const USAGE: u8 = 2;
    /// Not found.
    pub const NOT_FOUND: u8 = 3;
    /// A conflict with another process, or with the state of the plan.
    pub const CONFLICT: u8 = 4;
    /// Blocked by an invariant or a validation.
    pub const BLOCKED: u8 = 5;
    /// A person must decide.
    pub const UNDECIDED: u8 = 6;
    /// Interrupted from the keyboard.
    pub const INTERRUPTED: u8 = 130;
    /// Terminated by a signal.
    pub const TERMINATED: u8 = 143;
}

macro_rules! codes {
    ($($(#[$of:meta])* $variant:ident = $text:literal $status:literal $exit:ident $title:literal;)+) => {
        /// The kind of a refusal or failure.
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$of])* $variant,)+
            /// A code that this version does not know.
            Other(String),
        }

        impl Code {
            /// All known codes.
            pub const ALL: &'static [Code] = &[$(Code::$variant,)+];

            /// Returns the stable text.
            pub fn text(&self) -> &str {
                match self {
                    $(Code::$variant => $text,)+
                    Code::Other(text) => text,
                }
            }

            /// Returns the HTTP status it is sent with.
            pub fn status(&self) -> u16 {
                match self {
                    $(Code::$variant => $status,)+
                    Code::Other(_) => 500,
                }
            }

            /// Returns the exit code of a command that ends with it.
            pub fn exit_code(&self) -> u8 {
                match self {
                    $(Code::$variant => exit::$exit,)+
                    Code::Other(_) => exit::FAILED,
                }
            }

            /// Returns a short title.
            pub fn title(&self) -> &'static str {
                match self {
                    $(Code::$variant => $title,)+
                    Code::Other(_) => "failed",
                }
            }
        }

        impl From<String> for Code {
            fn from(text: String) -> Self {
                match text.as_str() {
                    $($text => Code::$variant,)+
                    _ => Code::Other(text),
                }
            }
        }
    };
}

codes! {
    /// The object does not exist.
    NotFound = "not_found" 404 NOT_FOUND "not found";
    /// A prefix matches more than one id.
    AmbiguousId = "ambiguous_id" 409 USAGE "the id prefix matches more than one id";
    /// The input was parsed but is not valid.
    Invalid = "invalid" 422 USAGE "invalid";
    /// The input cannot be parsed.
    Unparsable = "unparsable" 400 USAGE "malformed";
    /// The request has no valid token.
    Unauthorized = "unauthorized" 401 FAILED "not authenticated";
    /// The caller may not do this, or not from this origin.
    Forbidden = "forbidden" 403 FAILED "not allowed";
    /// The route does not accept this method.
    MethodNotAllowed = "method_not_allowed" 405 USAGE "method not allowed on this route";
    /// The request is too large.
    TooLarge = "too_large" 413 USAGE "too large";
    /// The request was not received in time.
    TooSlow = "too_slow" 408 FAILED "too slow";
    /// The command line is not valid.
    Usage = "usage" 400 USAGE "invalid usage";
    /// The configuration file is not valid.
    ConfigInvalid = "config_invalid" 422 USAGE "the configuration is not valid";
    /// The name is taken.
    Exists = "exists" 409 CONFLICT "already exists";
    /// Another object needs it.
    InUse = "in_use" 409 CONFLICT "in use";
    /// A backup keeps commits that nothing else has, or an open decision refers to it.
    BackupNeeded = "backup_needed" 409 CONFLICT "the backup is still needed";
    /// An answer restarts from a backup that was deleted.
    BackupGone = "backup_gone" 409 CONFLICT "the backup no longer exists";
    /// Another process holds the lock.
    LockHeld = "lock_held" 409 CONFLICT "the lock is held";
    /// The plan's state does not accept the command.
    WrongState = "wrong_state" 409 CONFLICT "wrong state";
    /// The plan changed after the given revision.
    StaleRevision = "stale_revision" 412 CONFLICT "the revision is stale";
    /// An invariant is violated.
    InvariantBlocked = "invariant_blocked" 423 BLOCKED "blocked by an invariant";
    /// A required validation failed.
    ValidationFailed = "validation_failed" 423 BLOCKED "a required validation failed";
    /// A critical reviewer has not approved the result.
    ReviewMissing = "review_missing" 423 BLOCKED "a required review is missing or refused the work";
    /// The merged result is not acceptable.
    Constrained = "constrained" 423 BLOCKED "the merged result is not acceptable";
    /// The plan changed nothing.
    NothingToApply = "nothing_to_apply" 409 CONFLICT "nothing to apply";
    /// The plan has used up its budget.
    BudgetSpent = "budget_spent" 429 UNDECIDED "the budget is exhausted";
    /// A person must answer first.
    DecisionOpen = "decision_open" 409 UNDECIDED "a person must decide";
    /// The decision was answered or withdrawn.
    DecisionClosed = "decision_closed" 409 CONFLICT "the decision is closed";
    /// The decision has no such option.
    UnknownOption = "unknown_option" 422 USAGE "unknown option";
    /// Drydock recovered from a divergence, and a person has not decided yet how to continue.
    SyncRecovered = "sync_recovered_unacknowledged" 409 UNDECIDED "commits were backed up; a person must decide";
    /// The branch and its remote diverged and were left as they are.
    SyncUnreconciled = "sync_unreconciled" 409 UNDECIDED "the branch and its remote diverged; a person must decide";
    /// The branch could not be synced with its remote.
    SyncFailed = "sync_failed" 409 FAILED "the sync failed";
    /// The idempotency key was used for another request.
    KeyReused = "idempotency_key_reused" 422 USAGE "the key was used for another request";
    /// A request under the same idempotency key is in progress.
    RequestUnderWay = "request_under_way" 409 CONFLICT "the request is still running";
    /// A request under the same idempotency key was interrupted.
    OutcomeUnknown = "request_outcome_unknown" 409 CONFLICT "it is unknown whether the request took effect";
    /// Git cannot use the repository in its current state.
    RepositoryUnusable = "repository_unusable" 422 FAILED "the repository cannot be used";
    /// The agent cannot be started.
    AgentUnusable = "agent_unusable" 422 FAILED "the agent cannot be used";
    /// The plan was reverted too often.
    TooManyReversions = "too_many_reversions" 409 CONFLICT "too many reversions";
    /// A landing was started and its outcome is unknown.
    IntentOpen = "intent_open" 409 CONFLICT "a landing is in progress";
    /// The project's remote does not answer.
    RemoteUnreachable = "remote_unreachable" 503 FAILED "the remote cannot be reached";
    /// The lock was lost during the work.
    LeaseLost = "lease_lost" 409 CONFLICT "the lock was lost";
    /// The phase failed.
    PlanErrored = "plan_errored" 409 FAILED "the phase failed";
    /// The plan was cancelled.
    PlanCancelled = "plan_cancelled" 409 FAILED "the plan was cancelled";
    /// The store does not exist.
    StoreMissing = "store_missing" 503 FAILED "the store is missing";
    /// The store cannot be written.
    StoreReadOnly = "store_read_only" 503 FAILED "the store is read-only";
    /// The disk is full.
    StoreFull = "store_full" 503 FAILED "the store is full";
    /// The store's file is corrupt.
    StoreCorrupt = "store_corrupt" 503 FAILED "the store is corrupt";
    /// The store was made by a newer version.
    StoreNewer = "store_newer" 503 FAILED "the store is newer than this program";
    /// The file is not a drydock store.
    StoreForeign = "store_foreign" 503 FAILED "not a drydock store";
    /// A record in the store is not valid.
    StoreDamaged = "store_damaged" 503 FAILED "a record in the store is invalid";
    /// The store cannot be reached.
    StoreUnavailable = "store_unavailable" 503 FAILED "the store is not available";
    /// Another process holds the store.
    StoreBusy = "store_busy" 503 CONFLICT "the store is busy";
    /// The database of the store cannot do this.
    StoreUnsupported = "store_unsupported" 422 FAILED "not supported by this database";
    /// A test injected a failure into the store.
    StoreInjected = "store_injected" 500 FAILED "a test made the store fail";
    /// The database reported an error that has no code of its own.
    StoreFailed = "store_failed" 500 FAILED "the store failed";
    /// A git command failed.
    GitFailed = "git_failed" 500 FAILED "git failed";
    /// The doctor found an error.
    Unhealthy = "unhealthy" 500 FAILED "a check failed";
    /// No server answers, or not a drydock server.
    ServerUnreachable = "server_unreachable" 503 FAILED "the server cannot be reached";
    /// A bug in drydock.
    Internal = "internal" 500 FAILED "internal error";
    /// Interrupted from the keyboard.
    Interrupted = "interrupted" 499 INTERRUPTED "interrupted";
    /// Terminated by a signal.
    Terminated = "terminated" 499 TERMINATED "terminated";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.text())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Code::from)
    }
}

impl schemars::JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Code".into()
    }

    /// A string with the known codes as examples, because a newer server may have more.
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let known: Vec<_> = Code::ALL.iter().map(Code::text).collect();
        schemars::json_schema!({ "type": "string", "description": "The stable code", "examples": known })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_code_reads_back_from_its_own_text() {
        let texts: HashSet<_> = Code::ALL.iter().map(Code::text).collect();
        assert_eq!(texts.len(), Code::ALL.len(), "two codes share a text");
        for code in Code::ALL {
            assert_eq!(Code::from(code.text().to_owned()), *code);
        }
    }

    /// code 8.3: breaks if docs/errors.md lacks a code. `DRYDOCK_WRITE_DOCS=1 cargo test -p drydock-api` regenerates
    /// it.
    #[test]
    fn the_documented_table_is_this_one() {
        let mut made = "# Error codes\n\nEach error has one of these codes: `code` of an HTTP problem, `error.code` of the command line with `--json`. A code never \
                        changes its meaning; new ones are added.\nThis page is made from `crates/api/src/code.rs`.\n\n\
                        | code | HTTP status | exit code | meaning |\n|---|---|---|---|\n"
            .to_owned();
        for code in Code::ALL {
            made += &format!("| `{code}` | {} | {} | {} |\n", code.status(), code.exit_code(), code.title());
        }
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors.md");
        if std::env::var_os("DRYDOCK_WRITE_DOCS").is_some() {
            std::fs::write(&kept, &made).unwrap();
        }
        assert_eq!(std::fs::read_to_string(kept).unwrap_or_default(), made);
    }

    #[test]
    fn a_code_of_a_newer_server_is_kept_as_it_came() {
        let code: Code = serde_json::from_str("\"from_the_future\"").unwrap();
        assert_eq!((code.text(), code.exit_code()), ("from_the_future", exit::FAILED));
        assert_eq!(serde_json::to_string(&code).unwrap(), "\"from_the_future\"");
    }

    #[test]
    fn the_documented_exit_codes_hold() {
        for (code, status, exit) in [
            (Code::NotFound, 404, 3),
            (Code::Invalid, 422, 2),
            (Code::Unauthorized, 401, 1),
            (Code::Forbidden, 403, 1),
            (Code::LockHeld, 409, 4),
            (Code::StaleRevision, 412, 4),
            (Code::InvariantBlocked, 423, 5),
            (Code::DecisionOpen, 409, 6),
            (Code::SyncRecovered, 409, 6),
            (Code::SyncUnreconciled, 409, 6),
            (Code::SyncFailed, 409, 1),
            (Code::StoreBusy, 503, 4),
            (Code::StoreFull, 503, 1),
            (Code::Interrupted, 499, 130),
        ] {
            assert_eq!((code.status(), code.exit_code()), (status, exit), "{code}");
        }
    }
}
