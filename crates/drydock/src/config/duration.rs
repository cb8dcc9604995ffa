//! How long a lock lives, as written: a duration within bounds.

use std::time::Duration;

use jiff::SignedDuration;

const TTL_MIN: Duration = Duration::from_secs(5);
const TTL_MAX: Duration = Duration::from_secs(60 * 60);

/// How long a lock lives without renewal when nothing is configured.
pub(crate) const TTL_DEFAULT: Duration = Duration::from_secs(60);

/// Reads the life of a lock. Shorter than the bounds and a busy machine loses its own locks; longer and nobody can
/// take over from a dead one.
pub(crate) fn lock_ttl(text: &str) -> Result<Duration, String> {
    let parsed: Option<SignedDuration> = text.parse().ok();
    let ttl = parsed.and_then(|duration| Duration::try_from(duration).ok());
    let Some(ttl) = ttl else {
        return Err(format!(
            "ttl = {text:?} is not a duration; write a number and a unit, such as 60s or 5m"
        ));
    };
    if ttl < TTL_MIN || ttl > TTL_MAX {
        return Err(format!("ttl = {text:?} is out of bounds; a lock lives 5s to 1h"));
    }
    Ok(ttl)
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
    }
}
