//! Parses durations and checks their bounds: the TTL of a lock, the timeout of a hook.

use std::time::Duration;

const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(60 * 60);

/// The default TTL of a lock.
pub(crate) const TTL_DEFAULT: Duration = Duration::from_secs(60);

const HOOK_MIN: Duration = Duration::from_secs(1);
const HOOK_MAX: Duration = Duration::from_secs(5 * 60);

/// The default timeout of one delivery to a hook.
pub(crate) const HOOK_DEFAULT: Duration = Duration::from_secs(10);

/// Parses the timeout of one delivery to a hook.
pub(crate) fn hook_timeout(text: &str) -> Result<Duration, String> {
    let timeout = duration("timeout", text)?;
    if timeout < HOOK_MIN || timeout > HOOK_MAX {
        return Err(format!("timeout = {text:?} is out of range; use 1s to 5m"));
    }
    Ok(timeout)
}

/// Parses the TTL of a lock. With a TTL below the minimum, a busy machine loses its own locks. With one above the
/// maximum, taking over from a dead process takes too long.
pub(crate) fn lock_ttl(text: &str) -> Result<Duration, String> {
    let ttl = duration("ttl", text)?;
    if ttl < TTL_MIN || ttl > TTL_MAX {
        return Err(format!("ttl = {text:?} is out of range; use 5s to 1h"));
    }
    Ok(ttl)
}

fn duration(key: &str, text: &str) -> Result<Duration, String> {
    drydock_domain::duration(text).ok_or_else(|| {
        format!("{key} = {text:?} is not a duration; write a number and a unit, such as 60s or 5m")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_life_within_bounds_is_read() {
        for (text, seconds) in [("5s", 5), ("60s", 60), ("5m", 300), ("1h", 3600), ("1m 30s", 90)] {
            assert_eq!(lock_ttl(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for text in ["", "60", "4s", "4999ms", "61m", "-5s", "soon"] {
            assert!(lock_ttl(text).expect_err(text).contains(&format!("{text:?}")));
        }
        for text in ["", "10", "999ms", "301s", "-5s"] {
            assert!(hook_timeout(text).expect_err(text).contains(&format!("{text:?}")));
        }
        assert_eq!(hook_timeout("2m"), Ok(Duration::from_secs(120)));
    }
}
