//! Parses time limits in the configuration. A limit must be at least 1 ms.

use std::time::Duration;

/// Parses a limit. Durations below a millisecond are rejected, because no run could do anything within them.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    match drydock_domain::duration(text) {
        None => Err(format!(
            "{text:?} is not a duration; write a number and a unit, such as 500ms, 30s, 20m or 2h"
        )),
        Some(read) if read.as_millis() == 0 => {
            Err(format!("{text:?} is too short; the shortest duration is 1ms"))
        }
        Some(read) => Ok(read),
    }
}

#[cfg(test)]
mod tests {
    use super::parse;
    use std::time::Duration;

    #[test]
    fn each_unit_is_read_as_written() {
        assert_eq!(parse("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(parse("30s"), Ok(Duration::from_secs(30)));
        assert_eq!(parse("1m 30s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for text in ["", "5", "s", "-1s", "0s", "1us", "1d", "99999999999999999h", "99999999999999999999999s"]
        {
            let error = parse(text).expect_err(text);
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
