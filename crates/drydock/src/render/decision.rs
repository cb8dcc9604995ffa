//! Decisions as text: one with its options and their effects, many in a table.

use drydock_api::{Decision, DecisionStatus};
use drydock_domain::counted;
use jiff::Timestamp;
use serde_json::Value;

use super::columns::{Block, Cell, table};
use super::style::{BUSY, CAUTION, FAINT, STRONG, paint, short};
use super::time::ago;

const QUESTION_CHARS_MAX: usize = 70;

/// Returns a table of decisions.
pub(crate) fn list(decisions: &[Decision], now: Timestamp) -> String {
    let rows = decisions.iter().map(|decision| {
        [
            Cell::styled(STRONG, &decision.id),
            Cell::styled(colour(decision.status), decision.status.name()),
            Cell::new(&decision.plan),
            Cell::new(&decision.kind),
            Cell::new(ago(&decision.created_at, now)),
            Cell::new(short(&decision.question, QUESTION_CHARS_MAX)),
        ]
    });
    table(["ID", "STATUS", "PLAN", "KIND", "ASKED", "QUESTION"], rows.collect())
}

/// Returns a decision with its options.
pub(crate) fn show(decision: &Decision, now: Timestamp) -> String {
    let head = paint(STRONG, &decision.id);
    let status = paint(colour(decision.status), decision.status.name());
    let mut block = Block::default()
        .line(format!("{head}  {status}"))
        .field("question", &decision.question)
        .field("kind", &decision.kind)
        .field("plan", format!("{} ({})", decision.plan, decision.phase))
        .field("asked", ago(&decision.created_at, now));
    for (name, line) in details(decision) {
        block = block.field(name, line);
    }
    for option in &decision.options {
        block = block.field("option", format!("{}: {}", option.id, option.label));
    }
    if let Some(answer) = &decision.resolution {
        let when = ago(&answer.at, now);
        block = block
            .field("answered", format!("{} by {} {when}", answer.option, answer.by))
            .maybe("note", answer.note.as_ref());
    }
    if decision.status == DecisionStatus::Open {
        let options: Vec<_> = decision.options.iter().map(|option| option.id.as_str()).collect();
        let answer = format!("drydock decision resolve {} --option {}", decision.id, options.join("|"));
        block = block.field("answer", answer);
    }
    block.done()
}

/// Returns the details that a person needs to answer, as names and lines.
pub(crate) fn details(decision: &Decision) -> Vec<(&str, String)> {
    let Value::Object(details) = &decision.details else { return Vec::new() };
    let told = details.iter().filter(|(name, _)| !is_for_programs(name));
    told.flat_map(|(name, value)| lines(value).into_iter().map(|line| (name.as_str(), line))).collect()
}

/// Returns true for a detail that repeats another one in a form for programs.
fn is_for_programs(name: &str) -> bool {
    name.ends_with("_total")
        || matches!(name, "discarded_commits" | "backup_commit" | "remote_commit" | "match")
}

/// Returns a detail as lines for people: none for an empty value, one per item of a list.
fn lines(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::String(text) => vec![text.clone()],
        Value::Array(items) => items.iter().flat_map(lines).collect(),
        Value::Object(parts) => match (parts.get("id"), parts.get("subject"), parts.get("author")) {
            (Some(Value::String(id)), Some(Value::String(subject)), Some(Value::String(author))) => {
                vec![format!("{} {subject} ({author})", id.get(..10).unwrap_or(id))]
            }
            _ => match parts.get("path").and_then(Value::as_str) {
                Some(path) => file(path, parts),
                None => named(parts).into_iter().collect(),
            },
        },
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
    }
}

/// Returns a file of a conflict: its path and kind, and both sides of each place.
fn file(path: &str, parts: &serde_json::Map<String, Value>) -> Vec<String> {
    let said = |name: &str| parts.get(name).and_then(Value::as_str).unwrap_or_default();
    let hunks = parts.get("hunks").and_then(Value::as_array);
    let Some(hunks) = hunks else { return vec![path.to_owned()] };
    // If there are hunks, they show the conflict. Otherwise git's message describes it.
    let about = if hunks.is_empty() { format!(": {}", said("text").trim()) } else { String::new() };
    let mut told = vec![format!("{path} ({}){about}", said("kind").replace('_', " "))];
    for hunk in hunks {
        told.push(format!("  line {}, joined so far:", hunk["line"]));
        told.extend(side(&hunk["parent"]));
        told.push("  from the subplan:".to_owned());
        told.extend(side(&hunk["child"]));
    }
    let more = parts.get("left_out").and_then(Value::as_u64).filter(|more| *more > 0);
    told.extend(more.map(|more| format!("  and {}", counted(more, "more place"))));
    told
}

fn side(text: &Value) -> Vec<String> {
    match text.as_str().unwrap_or_default() {
        "" => vec!["    (nothing)".to_owned()],
        text => text.lines().map(|line| format!("    {line}")).collect(),
    }
}

/// Returns the parts of an object with their names in one line, or none if all parts are empty.
fn named(parts: &serde_json::Map<String, Value>) -> Option<String> {
    let told = parts.iter().flat_map(|(name, value)| {
        lines(value).into_iter().map(|line| format!("{} {line}", name.replace('_', " ")))
    });
    Some(told.collect::<Vec<_>>().join(", ")).filter(|line| !line.is_empty())
}

fn colour(status: DecisionStatus) -> anstyle::Style {
    match status {
        DecisionStatus::Open => CAUTION,
        DecisionStatus::Resolved => BUSY,
        DecisionStatus::Withdrawn => FAINT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{DecisionOption, Phase};

    #[test]
    fn an_open_decision_says_how_to_answer_it() {
        let option = |id: &str| DecisionOption {
            id: id.into(),
            label: format!("do {id}"),
            effect: id.into(),
            needs_note: false,
        };
        let decision = Decision {
            id: "dec-1".into(),
            plan: "pln-1".into(),
            phase: Phase::Execute,
            run: None,
            kind: "gate".into(),
            question: "May it?".into(),
            options: vec![option("approve"), option("reject")],
            status: DecisionStatus::Open,
            resolution: None,
            details: serde_json::json!({"before": "apply", "n": 2}),
            created_at: "2026-03-10T11:57:00Z".into(),
        };
        let text = bare(&show(&decision, "2026-03-10T12:00:00Z".parse().unwrap()));
        for said in [
            "dec-1  open\n",
            "  question    May it?\n",
            "  before      apply\n",
            "  option      reject: do reject\n",
            "  answer      drydock decision resolve dec-1 --option approve|reject\n",
        ] {
            assert!(text.contains(said), "{said:?} is missing in\n{text}");
        }
    }

    /// Breaks if a conflict is shown without its files and hunks.
    #[test]
    fn a_conflict_is_shown_with_its_files_and_hunks() {
        let marked = serde_json::json!({"path": "a.txt", "kind": "add_add", "text": "both added it", "left_out": 2,
            "hunks": [{"line": 3, "parent": "one\n", "child": ""}]});
        let binary = serde_json::json!({"path": "b.bin", "kind": "binary", "text": "cannot merge", "left_out": 0, "hunks": []});
        let told = lines(&Value::Array(vec![marked, binary, serde_json::json!({"path": "c.txt"})]));
        assert_eq!(
            told,
            [
                "a.txt (add add)",
                "  line 3, joined so far:",
                "    one",
                "  from the subplan:",
                "    (nothing)",
                "  and 2 more places",
                "b.bin (binary): cannot merge",
                "c.txt",
            ]
        );
    }
}
