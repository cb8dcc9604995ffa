//! Times as text: relative and absolute.

use drydock_domain::counted;
use jiff::Timestamp;

/// Returns how long before `now` a timestamp of the API was, or the text itself if it is not a timestamp.
pub(crate) fn ago(at: &str, now: Timestamp) -> String {
    let Ok(time) = at.parse::<Timestamp>() else { return at.to_owned() };
    let seconds = now.as_second() - time.as_second();
    match seconds {
        -2..=2 => "just now".to_owned(),
        ..-2 => format!("in {}", span(-seconds)),
        2_592_000.. => at.split('T').next().unwrap_or(at).to_owned(),
        _ => format!("{} ago", span(seconds)),
    }
}

/// Returns a timestamp of the API to the second, in UTC.
pub(crate) fn moment(at: &str) -> String {
    at.parse::<Timestamp>()
        .map_or_else(|_| at.to_owned(), |time| time.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// Returns a number of seconds in the largest unit that fits.
pub(crate) fn span(seconds: i64) -> String {
    match seconds {
        ..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..172_800 => format!("{} h", seconds / 3_600),
        172_800.. => counted(seconds / 86_400, "day"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_in_the_unit_that_fits() {
        let now: Timestamp = "2026-03-10T12:00:00Z".parse().unwrap();
        for (at, said) in [
            ("2026-03-10T11:59:59.5Z", "just now"),
            ("2026-03-10T11:59:30Z", "30 s ago"),
            ("2026-03-10T11:57:00Z", "3 min ago"),
            ("2026-03-09T12:00:00Z", "24 h ago"),
            ("2026-03-06T12:00:00Z", "4 days ago"),
            ("2025-03-06T12:00:00Z", "2025-03-06"),
            ("2026-03-10T12:00:40Z", "in 40 s"),
            ("noon", "noon"),
        ] {
            assert_eq!(ago(at, now), said, "{at}");
        }
    }
}
