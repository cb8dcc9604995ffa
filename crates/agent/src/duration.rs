//! Durations as people write them in configuration: `500ms`, `30s`, `20m`, `2h`.

use std::time::Duration;

/// Parses a whole number followed by `ms`, `s`, `m` or `h`; zero is refused because every limit must let something happen.
pub(crate) fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || {
        format!("{text:?} is not a duration; write a whole number and a unit, such as 500ms, 30s, 20m or 2h")
    };
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit_ms = match unit {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        _ => return Err(wrong()),
    };
    match number.checked_mul(unit_ms) {
        Some(0) => Err(format!("{text:?} is no time at all; the shortest duration is 1ms")),
        Some(total_ms) => Ok(Duration::from_millis(total_ms)),
        None => Err(format!("{text:?} is longer than can be counted")),
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
        assert_eq!(parse("20m"), Ok(Duration::from_secs(1_200)));
        assert_eq!(parse("2h"), Ok(Duration::from_secs(7_200)));
    }

    #[test]
    fn anything_else_is_refused_by_name() {
        for text in
            ["", "5", "s", "1.5s", "-1s", "5 s", "0s", "1d", "99999999999999999h", "99999999999999999999999s"]
        {
            let error = parse(text).expect_err(text);
            assert!(error.contains(&format!("{text:?}")), "{error}");
        }
    }
}
