//! Agents in a table, and the result of a check.

use drydock_api::{AgentCheck, AgentEntry, CheckStatus};

use super::columns::{Cell, table};
use super::style::{BAD, CAUTION, GOOD, STRONG, paint, plain};
use super::time::span;

/// The source of a built-in agent that is not configured.
const BUILT_IN: &str = "built_in";

/// Returns true if an agent can be chosen. Built-in agents are always listed, but usable only if their program is
/// installed.
pub(crate) fn is_usable(agent: &AgentEntry) -> bool {
    agent.found || agent.source != BUILT_IN
}

/// Returns a table of agents.
pub(crate) fn list(agents: &[AgentEntry]) -> String {
    let rows = agents.iter().map(|agent| {
        let mark = if agent.default { "default" } else { "" };
        [
            Cell::styled(STRONG, &agent.name),
            Cell::new(mark),
            Cell::new(if agent.source == BUILT_IN { "built in" } else { "configured" }),
            Cell::new(if agent.found { "yes" } else { "no" }),
            Cell::new(&agent.protocol),
            Cell::new(span(i64::try_from(agent.timeout_s).unwrap_or(i64::MAX))),
            Cell::new(&agent.summary),
        ]
    });
    table(["NAME", "", "FROM", "FOUND", "PROTOCOL", "TIME LIMIT", "RUNS"], rows.collect())
}

/// Returns the result of a check.
pub(crate) fn check(check: &AgentCheck) -> String {
    let status = match check.status {
        CheckStatus::Ok => paint(GOOD, "ok"),
        CheckStatus::Warn => paint(CAUTION, "warn"),
        CheckStatus::Error => paint(BAD, "error"),
    };
    let agent = paint(STRONG, &check.agent);
    if check.status == CheckStatus::Error {
        // The error that ends the command has the reason and the hint.
        return format!("{agent}  {status}  ({} ms)\n", check.duration_ms);
    }
    let mut text = format!("{agent}  {status}  {} ({} ms)\n", plain(&check.text), check.duration_ms);
    if let Some(hint) = &check.hint {
        text.push_str(&format!("{}\n", plain(hint)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;

    #[test]
    fn the_default_agent_is_marked_and_a_check_says_how_it_went() {
        let entry = AgentEntry {
            name: "writer".into(),
            protocol: "command".into(),
            summary: "sh -c true".into(),
            timeout_s: 1200,
            source: "configured".into(),
            found: true,
            default: true,
        };
        assert!(
            bare(&list(&[entry]))
                .ends_with("writer  default  configured  yes    command   20 min      sh -c true\n")
        );
        let doubtful = AgentCheck {
            agent: "writer".into(),
            status: CheckStatus::Warn,
            text: "it ended".into(),
            hint: Some("run it by hand".into()),
            duration_ms: 3,
        };
        assert_eq!(bare(&check(&doubtful)), "writer  warn  it ended (3 ms)\nrun it by hand\n");
        // long-day: the error that ends the command has the reason and the hint.
        let failed = AgentCheck { status: CheckStatus::Error, ..doubtful };
        assert_eq!(bare(&check(&failed)), "writer  error  (3 ms)\n");
    }
}
