//! Failures that an agent reports as text. Many agents end a turn normally although their model failed. A
//! report is recognised only by the configured prefixes (`failure_patterns`), because a model that writes
//! about errors has not failed.

use std::sync::Arc;

use serde::Deserialize;

use crate::ending::Ending;
use crate::failure::ModelFailure;
use crate::limit::Resets;

const TOO_MANY_REQUESTS: &str = "429";
const UNAUTHORIZED: [&str; 2] = ["401", "403"];
/// Phrases of services and agents, in lower case.
const LIMIT_WORDS: [&str; 4] = ["rate limit", "rate_limit", "too many requests", "usage limit"];
const AUTH_WORDS: [&str; 6] =
    ["unauthorized", "authenticat", "api key", "api-key", "not logged in", "please run /login"];

/// Prefixes of the lines in which an agent reports that its model failed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Vec<String>")]
pub(crate) struct FailurePatterns(Arc<[String]>);

impl TryFrom<Vec<String>> for FailurePatterns {
    type Error = String;

    fn try_from(patterns: Vec<String>) -> Result<Self, String> {
        match patterns.iter().find(|pattern| pattern.trim().is_empty()) {
            Some(_) => Err("failure_patterns: an empty pattern would match every message".to_owned()),
            None => Ok(Self(patterns.into())),
        }
    }
}

impl FailurePatterns {
    /// Returns true if a text begins like a report.
    pub(crate) fn begin(&self, text: &str) -> bool {
        let text = text.trim_start();
        self.0.iter().any(|pattern| text.starts_with(pattern.as_str()))
    }

    /// Returns the last report among the lines, with the lines that follow it.
    pub(crate) fn report<'a>(&self, lines: impl Iterator<Item = &'a str>) -> Option<String> {
        let lines: Vec<&str> = lines.filter(|line| !line.trim().is_empty()).collect();
        let from = lines.iter().rposition(|line| self.begin(line))?;
        Some(lines[from..].join("\n"))
    }
}

/// Returns the ending of a run in which the agent reported a failure.
pub(crate) fn reported(report: &str, tail: String) -> Ending {
    // Do not repeat the report in the tail.
    let tail = if tail.trim() == report.trim() { String::new() } else { tail };
    let first = report.lines().next().unwrap_or_default().trim();
    // The lines after the first may be about anything, so a rate limit mentioned only there does not make the
    // plan wait.
    match cause(first).or_else(|| cause(report)) {
        Some(Cause::Limit) if cause(first) == Some(Cause::Limit) => {
            Ending::RateLimited { resets: Resets::Unknown }
        }
        cause => {
            let cause = match cause {
                Some(Cause::Auth) => ModelFailure::Auth,
                Some(Cause::Limit) | None => ModelFailure::Service,
            };
            Ending::ModelFailed { cause, reason: format!("reported that its model failed: {first}"), tail }
        }
    }
}

/// Returns true if an error text is about a key or a login.
pub(crate) fn is_about_auth(text: &str) -> bool {
    cause(text) == Some(Cause::Auth)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    Limit,
    Auth,
}

/// Reads the cause of a report: an HTTP status as a separate number, otherwise phrases.
fn cause(report: &str) -> Option<Cause> {
    let text = report.to_lowercase();
    let has_number =
        |wanted: &str| text.split(|letter: char| !letter.is_ascii_alphanumeric()).any(|word| word == wanted);
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has_number(TOO_MANY_REQUESTS) || says(&LIMIT_WORDS) {
        Some(Cause::Limit)
    } else if UNAUTHORIZED.into_iter().any(has_number) || says(&AUTH_WORDS) {
        Some(Cause::Auth)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns() -> FailurePatterns {
        FailurePatterns::try_from(vec!["Ran into this error".to_owned(), "API Error".to_owned()]).unwrap()
    }

    /// Breaks when a report is not recognised, or a text that only mentions one is.
    #[test]
    fn a_report_begins_a_line_and_nothing_else_is_one() {
        let report = |text: &str| patterns().report(text.lines());
        let said = "Ran into this error: 401.\n\nPlease retry.";
        assert_eq!(report(said).as_deref(), Some("Ran into this error: 401.\nPlease retry."));
        assert_eq!(report("done\n  API Error: 500").as_deref(), Some("  API Error: 500"));
        assert_eq!(report("I fixed the text \"Ran into this error\"."), None);
        assert_eq!(FailurePatterns::default().report(said.lines()), None);
        assert!(FailurePatterns::try_from(vec![" ".to_owned()]).is_err());
    }

    /// Breaks when a rate limit is not recognised, or a wrong key is treated as one.
    #[test]
    fn the_cause_is_read_from_the_report() {
        for (report, read) in [
            ("Ran into this error: Authentication error: Status: 401 Unauthorized", Some(Cause::Auth)),
            ("Not logged in · Please run /login", Some(Cause::Auth)),
            ("Ran into this error: Rate limit exceeded: retry later", Some(Cause::Limit)),
            ("ERROR: exceeded retry limit, last status: 429 Too Many Requests", Some(Cause::Limit)),
            ("API Error: 500 {\"type\":\"api_error\",\"request_id\":\"req_14290\"}", None),
            ("Ran into this error: Server error: 503", None),
        ] {
            assert_eq!(cause(report), read, "{report}");
        }
    }

    /// Breaks when a plan waits for a limit that is only mentioned after the first line of a report.
    #[test]
    fn a_limit_is_read_from_the_first_line_of_a_report() {
        let ending = reported("API Error: 429 busy\nPlease retry.", String::new());
        assert!(matches!(ending, Ending::RateLimited { .. }), "{ending:?}");
        let ending = reported("API Error: 500\nI added a test of the rate limit, status 429.", String::new());
        assert!(matches!(ending, Ending::ModelFailed { cause: ModelFailure::Service, .. }), "{ending:?}");
    }
}
