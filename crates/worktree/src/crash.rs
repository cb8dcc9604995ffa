//! Places where a test lets the process die, as a power cut would: `DRYDOCK_CRASH_AT=sync.files` dies at the first
//! passage of that place, `sync.files:3` at the third. Only in builds with debug assertions.

#[cfg(debug_assertions)]
pub(crate) fn hit(point: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    let Ok(asked) = std::env::var("DRYDOCK_CRASH_AT") else { return };
    let (name, nth) = asked.split_once(':').unwrap_or((asked.as_str(), "1"));
    if name == point && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == nth.parse().unwrap_or(1) {
        std::process::abort();
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn hit(_point: &str) {}
