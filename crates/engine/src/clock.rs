//! The clock for every time that the engine stores or compares. Times that are only displayed or measured are
//! read where they are displayed or measured.

use std::time::{SystemTime, UNIX_EPOCH};

use drydock_domain::Timestamp;

/// Returns the current time of this machine's clock.
#[allow(clippy::disallowed_methods, reason = "this is the one home of the clock that counts")]
pub fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
}

/// Returns 128 random bits from the operating system.
pub(crate) fn random() -> u128 {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes once it has booted");
    u128::from_le_bytes(bytes)
}
