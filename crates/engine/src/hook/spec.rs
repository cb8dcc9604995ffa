//! The definition of a hook: its event filter and its means of delivery. The binary reads the configuration.

use std::os::unix::ffi::OsStringExt;
use std::str::FromStr;
use std::time::Duration;

use drydock_domain::{Name, StoredEvent};
use serde_json::Value;

use super::address::WebhookUrl;

/// The kind of events that have a priority.
const ALERT: &str = "alert";

/// The hooks of one engine.
#[derive(Debug, Clone)]
pub struct Hooks {
    /// The hooks, with unique names.
    pub list: Vec<Hook>,
    /// Converts an event to its JSON, in the form that every interface uses.
    pub shape: fn(StoredEvent) -> Value,
}

/// A receiver of events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    /// The name of the hook. The store keeps its position in the feed under this name.
    pub name: Name,
    /// The event filter.
    pub wants: HookFilter,
    /// The means of delivery.
    pub means: HookKind,
    /// The timeout of one delivery.
    pub timeout: Duration,
}

/// The event filter of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFilter {
    /// The kinds of events.
    pub events: Vec<Pattern>,
    /// The lowest priority of alerts; other events have no priority.
    pub min_priority: Priority,
}

/// The means of delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookKind {
    /// Starts a program with the event on its standard input.
    Command {
        /// The program and its arguments.
        argv: Vec<String>,
        /// The environment variables that are passed on to the program.
        pass_env: Vec<String>,
    },
    /// Posts the event to an address.
    Webhook {
        /// The address.
        address: WebhookUrl,
        /// The environment variable that holds the key of the signature.
        secret_env: Option<String>,
    },
}

/// The priority of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// For information.
    Low,
    /// Needs a person's attention now.
    High,
}

/// A pattern for event kinds: one kind, a family such as `plan.*`, or all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// This kind.
    Exact(String),
    /// Every kind that starts with this word and a dot.
    Family(String),
    /// Every kind.
    Any,
}

/// A text that is not a valid pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} names no events; use a kind such as \"alert\", a family such as \"plan.*\", or \"*\"")]
pub struct PatternError(String);

impl Hook {
    /// Returns the key of the signature, if its variable is set.
    pub(super) fn secret(&self) -> Option<Vec<u8>> {
        let variable = self.secret_env()?;
        std::env::var_os(variable).map(OsStringExt::into_vec).filter(|secret| !secret.is_empty())
    }

    /// Returns the variable of a configured secret that is not set.
    pub(super) fn missing_secret(&self) -> Option<&str> {
        self.secret_env().filter(|_| self.secret().is_none())
    }

    fn secret_env(&self) -> Option<&str> {
        match &self.means {
            HookKind::Webhook { secret_env, .. } => secret_env.as_deref(),
            HookKind::Command { .. } => None,
        }
    }
}

impl FromStr for Pattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let is_words = |text: &str| {
            let is_word = |word: &str| {
                !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
            };
            text.split('.').all(is_word)
        };
        match text.strip_suffix(".*") {
            _ if text == "*" => Ok(Pattern::Any),
            Some(family) if is_words(family) => Ok(Pattern::Family(family.to_owned())),
            None if is_words(text) => Ok(Pattern::Exact(text.to_owned())),
            Some(_) | None => Err(PatternError(text.to_owned())),
        }
    }
}

impl Pattern {
    /// Returns true if the pattern matches a kind.
    pub fn means(&self, kind: &str) -> bool {
        match self {
            Pattern::Any => true,
            Pattern::Exact(meant) => meant == kind,
            Pattern::Family(family) => {
                kind.strip_prefix(family.as_str()).is_some_and(|rest| rest.starts_with('.'))
            }
        }
    }
}

impl HookFilter {
    /// Returns true if an event matches the filter.
    pub(super) fn include(&self, event: &StoredEvent) -> bool {
        let urgent = event.kind != ALERT || priority(event) >= self.min_priority;
        urgent && self.events.iter().any(|pattern| pattern.means(&event.kind))
    }
}

/// An alert without a priority counts as high, so it reaches every hook: one alert too many is better than a
/// missed one.
fn priority(alert: &StoredEvent) -> Priority {
    match alert.details.get("priority").and_then(Value::as_str) {
        Some("low") => Priority::Low,
        Some(_) | None => Priority::High,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use drydock_domain::Timestamp;
    use serde_json::json;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_means_a_kind_a_family_or_all() {
        for (text, kind, meant) in [
            ("alert", "alert", true),
            ("alert", "alerts", false),
            ("decision.opened", "decision.opened", true),
            ("decision.opened", "decision.resolved", false),
            ("plan.*", "plan.created", true),
            ("plan.*", "plan", false),
            ("plan.*", "planning.created", false),
            ("sync.*", "sync.fetch_failed", true),
            ("*", "anything", true),
        ] {
            assert_eq!(pattern(text).means(kind), meant, "{text} and {kind}");
        }
        for text in ["", "plan.", ".*", "plan*", "*.created", "Plan.created", "plan .x", "plan.*.x", "**"] {
            assert!(text.parse::<Pattern>().is_err(), "{text}");
        }
    }

    #[test]
    fn only_alerts_are_chosen_by_their_priority() {
        let event = |kind: &str, details| StoredEvent {
            seq: 1,
            at: Timestamp::from_micros(0),
            kind: kind.to_owned(),
            plan: None,
            run: None,
            revision: None,
            details,
        };
        let high = HookFilter { events: vec![Pattern::Any], min_priority: Priority::High };
        assert!(!high.include(&event("alert", json!({ "priority": "low" }))));
        assert!(high.include(&event("alert", json!({ "priority": "high" }))));
        assert!(high.include(&event("alert", json!({}))));
        assert!(high.include(&event("plan.created", json!({ "priority": "low" }))));
    }
}
