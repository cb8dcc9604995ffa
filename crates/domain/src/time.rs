//! Points in time as the store keeps them, and their format in text for people.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Microseconds since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Timestamp(i64);

impl Timestamp {
    /// Returns the time `micros` microseconds after 1970-01-01 UTC.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the microseconds since 1970-01-01 UTC.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Returns the time `span` later, or the last representable time.
    pub fn plus(self, span: std::time::Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(span.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Returns the time `ms` milliseconds later, or the last representable time.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms.saturating_mul(1000)))
    }
}

/// Formats as RFC 3339 UTC with seconds, for text. JSON uses another format with more digits.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1_000_000);
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = date(days);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
    }
}

/// Returns the Gregorian date this many days after 1970-01-01. Years are counted from March 1st, so that a
/// leap day is the last day of its year.
fn date(days: i64) -> (i64, i64, i64) {
    const OF_400_YEARS: i64 = 146_097;
    let days = days + 719_468;
    let (era, rest) = (days.div_euclid(OF_400_YEARS), days.rem_euclid(OF_400_YEARS));
    let year = (rest - rest / 1_460 + rest / 36_524 - rest / 146_096) / 365;
    let of_year = rest - (365 * year + year / 4 - year / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::Timestamp;

    #[test]
    fn a_time_reads_as_the_calendar_has_it() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_794_808_440, "2026-11-16T05:54:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(Timestamp::from_micros(seconds * 1_000_000).to_string(), text);
        }
    }
}
