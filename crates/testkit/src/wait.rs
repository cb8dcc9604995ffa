//! Waits for a condition. Tests never sleep for a duration; they name a condition and a limit.

use std::thread::sleep;
use std::time::{Duration, Instant};

const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(20);

/// Calls `probe` until it returns a value, and returns that. Panics with the name `what` after `limit`.
///
/// The probe is called once more after the limit, so that a stall of the machine is not blamed on the code.
#[track_caller]
pub fn until<T>(what: &str, limit: Duration, probe: impl FnMut() -> Option<T>) -> T {
    match poll(limit, probe) {
        Some(found) => found,
        None => panic!("waited {limit:?} for {what}, which did not happen"),
    }
}

/// Calls `probe` until it returns a value, or returns none after `limit`.
pub fn poll<T>(limit: Duration, mut probe: impl FnMut() -> Option<T>) -> Option<T> {
    let started = Instant::now();
    let mut pause = PAUSE_MIN;
    loop {
        let last = started.elapsed() >= limit;
        match probe() {
            Some(found) => return Some(found),
            None if last => return None,
            None => sleep(pause),
        }
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_what_the_probe_found() {
        let mut asked = 0;
        let found = until("the third question", Duration::from_secs(5), || {
            asked += 1;
            (asked == 3).then_some("found")
        });
        assert_eq!((found, asked), ("found", 3));
    }

    #[test]
    #[should_panic(expected = "for a bus that never comes, which did not happen")]
    fn waiting_in_vain_names_what_was_waited_for() {
        until("a bus that never comes", Duration::from_millis(5), || None::<()>);
    }
}
