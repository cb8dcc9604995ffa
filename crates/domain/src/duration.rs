//! Durations as people write them: `500ms`, `30s`, `20m`, `2h`, `1m 30s`. All configuration keys share this
//! grammar; each key checks its own bounds.

use std::time::Duration;

use jiff::SignedDuration;

/// Parses a duration. Returns `None` if the text is invalid or negative. The largest unit is the hour.
pub fn duration(text: &str) -> Option<Duration> {
    let read: SignedDuration = text.parse().ok()?;
    Duration::try_from(read).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails if a notation that one configuration key accepts is rejected by another.
    #[test]
    fn whatever_was_ever_taken_is_taken() {
        for (text, ms) in [
            ("500ms", 500),
            ("30s", 30_000),
            ("020m", 1_200_000),
            ("2h", 7_200_000),
            ("1m 30s", 90_000),
            ("1m30s", 90_000),
            ("1.5h", 5_400_000),
            ("5 s", 5_000),
            ("PT1M30S", 90_000),
            ("0s", 0),
            ("999999999999h", 3_599_999_999_996_400_000),
        ] {
            assert_eq!(duration(text), Some(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for text in ["", "5", "s", "-1s", "1d", "soon", "99999999999999999h", "99999999999999999999999s"] {
            assert_eq!(duration(text), None, "{text}");
        }
    }
}
