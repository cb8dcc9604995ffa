//! Points where tests let the process crash, as in a power failure, or stall. `DRYDOCK_CRASH_AT=sync.files`
//! aborts when that point is first reached, `sync.files:3` the third time. `DRYDOCK_STALL_AT=sync.files:path`
//! waits there until the path exists. Compiled only with debug assertions.

#[cfg(debug_assertions)]
pub(crate) fn hit(point: &str) {
    use std::sync::atomic::{AtomicU32, Ordering};
    static PASSED: AtomicU32 = AtomicU32::new(0);
    if let Ok(asked) = std::env::var("DRYDOCK_CRASH_AT") {
        let (name, nth) = asked.split_once(':').unwrap_or((asked.as_str(), "1"));
        if name == point && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == nth.parse().unwrap_or(1) {
            std::process::abort();
        }
    }
    if let Ok(asked) = std::env::var("DRYDOCK_STALL_AT")
        && let Some((name, path)) = asked.split_once(':')
        && name == point
    {
        while !std::path::Path::new(path).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }
}

#[cfg(not(debug_assertions))]
pub(crate) fn hit(_point: &str) {}
