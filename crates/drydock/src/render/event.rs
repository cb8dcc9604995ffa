//! Events as text: each as a sentence, and as a line of the feed.

use drydock_api::Event;
use drydock_domain::{counted, dollars};
use jiff::Timestamp;
use serde_json::Value;

use super::style::{FAINT, paint, plain, short};
use super::time::moment;

const SENTENCE_CHARS_MAX: usize = 160;
/// The maximum number of lines shown of one output event.
const OUTPUT_LINES_MAX: usize = 20;

/// The keys that describe an agent event, most specific first.
const TELLING: [&str; 6] = ["text", "label", "question", "message", "reason", "how"];

/// Returns an event as a line of the feed.
pub(crate) fn line(event: &Event) -> String {
    format!("{}  {}\n", head(event), plain(&sentence(event)))
}

/// Returns an event as lines for `--follow`.
pub(crate) fn lines(event: &Event) -> String {
    let head = head(event);
    detail_lines(event).iter().map(|said| format!("{head}  {}\n", plain(said))).collect()
}

fn head(event: &Event) -> String {
    let at = event
        .at
        .parse::<Timestamp>()
        .map_or_else(|_| event.at.clone(), |at| at.strftime("%Y-%m-%d %H:%M:%S").to_string());
    let plan = event.plan.as_deref().unwrap_or("-");
    let head = paint(FAINT, &format!("{:>6}  {at}  {plan}", event.seq));
    format!("{head}  {}", plain(&event.kind))
}

/// Returns an event as lines: a sentence, and each line of agent output up to the limit.
pub(crate) fn detail_lines(event: &Event) -> Vec<String> {
    if event.kind != "agent.output" {
        return vec![sentence(event)];
    }
    let written = texts(&event.data["lines"]);
    let shown = written.iter().take(OUTPUT_LINES_MAX).map(|line| short(line, SENTENCE_CHARS_MAX));
    let beyond = written.len().saturating_sub(OUTPUT_LINES_MAX) as u64;
    let more = beyond.saturating_add(event.data["left_out"].as_u64().unwrap_or(0));
    shown.chain((more > 0).then(|| format!("(and {more} more)"))).collect()
}

/// Returns an event as a sentence without its plan.
pub(crate) fn sentence(event: &Event) -> String {
    let said = match event.kind.split_once('.') {
        Some(("plan", what)) => of_plan(what, &event.data),
        Some(("agent", what)) => of_agent(what, &event.data),
        Some(("decision", what)) => of_decision(what, &event.data),
        Some(("invariant", what)) => of_invariant(what, &event.data),
        Some(("validation", what)) => {
            let name = text(&event.data, "name");
            match what {
                "passed" => format!("validation {name} passed"),
                _ => format!("validation {name} failed: {}", text(&event.data, "text")),
            }
        }
        Some(("changeset", "opened")) => format!("{} started writing", text(&event.data, "writer")),
        Some(("changeset", "sealed")) => format!("changed paths: {}", text(&event.data, "entries")),
        Some(("apply", "intended")) => {
            format!("moving {} to {}", text(&event.data, "target"), text(&event.data, "to"))
        }
        Some(("apply", "forgone")) => format!("{} was not changed", text(&event.data, "target")),
        Some(("apply", "postponed")) => format!("not landed yet: {}", text(&event.data, "reason")),
        Some(("sync", what)) => of_sync(what, &event.data),
        Some(("review", what)) => of_review(what, &event.data),
        Some(("subplan", what)) => of_subplan(what, &event.data),
        Some(("lock", "broken")) => {
            format!("lock of {} broken: {}", text(&event.data, "owner"), text(&event.data, "reason"))
        }
        None if event.kind == "alert" => format!("attention: {}", text(&event.data, "text")),
        Some((_, _)) | None => unknown(&event.kind, &event.data),
    };
    short(&said, SENTENCE_CHARS_MAX)
}

fn of_plan(what: &str, data: &Value) -> String {
    match what {
        "created" => format!("created: {}", text(data, "task")),
        "started" => format!("{} started", text(data, "phase")),
        "completed" => format!("{} complete", text(data, "phase")),
        "advanced" => format!("{} queued", text(data, "to")),
        "errored" => format!("failed: {}", text(&data["error"], "text")),
        "waiting" => format!("waiting for decision {}", text(data, "decision")),
        "resumed" => "resumed".to_owned(),
        "retried" => "queued again".to_owned(),
        "cancelled" => format!("cancelled: {}", text(data, "reason")),
        "reverted" => format!("reverted to strategize: {}", text(data, "reason")),
        "taken_over" => taken_over(data),
        "applied" => format!("landed as {}", text(data, "commit")),
        "constrained" => format!("not acceptable: {}", texts(&data["reasons"]).join("; ")),
        "strategy_adopted" => format!("adopted a strategy with {} choices", text(data, "choices")),
        "rolled_back" => format!("rolled back to {}", text(data, "commit")),
        "reexamined" => format!("commits by others up to {} were added; they are checked", text(data, "to")),
        "committed" => format!("committed {}", text(data, "commit")),
        "prompted" => format!("guidance: {}", text(data, "text")),
        _ => unknown(&format!("plan.{what}"), data),
    }
}

fn taken_over(data: &Value) -> String {
    let how = match data["cause"].as_str() {
        Some("interrupted") => "interrupted",
        Some("stopped") => "stopped by a person",
        Some("stopped_above") => "stopped with its parent plan",
        _ => "interrupted: its process died",
    };
    match data["checkpoint"].as_u64() {
        Some(number) => format!("{how}; the next run continues from checkpoint {number}"),
        None => how.to_owned(),
    }
}

fn of_agent(what: &str, data: &Value) -> String {
    let said = TELLING.iter().map(|key| text(data, key)).find(|said| !said.is_empty());
    let agent = text(data, "agent");
    let who = if agent.is_empty() { "agent" } else { agent.as_str() };
    match (what, said) {
        ("output", _) => texts(&data["lines"]).last().copied().unwrap_or_default().to_owned(),
        ("choice", _) => format!("chose {}: {}", text(data, "chosen"), text(data, "question")),
        ("progress", Some(said)) => said,
        ("tool", _) => format!("{}: {} ({})", text(data, "kind"), text(data, "title"), text(data, "status")),
        ("restarted", Some(said)) => {
            format!("{who} {said}; restarting in {} s", text(data, "pause_s"))
        }
        ("usage", _) => used(data),
        ("rate_limited", _) => {
            format!("{who} reached its rate limit; next attempt at {}", moment(&text(data, "until")))
        }
        ("stalled", _) => format!("{who} has been silent for {} s", text(data, "quiet_s")),
        ("plan", _) => match current_step(data) {
            Some(step) => format!("{who} is at step: {step}"),
            None => format!("{who} updated its steps"),
        },
        ("permission", _) => format!("{}: {}", text(data, "answer"), text(data, "title")),
        ("ended", Some(said)) => format!("{who} {said}"),
        ("sent_back", _) => format!("sent back to {who}: {}", texts(&data["reasons"]).join("; ")),
        ("checkpoint", Some(said)) => format!("checkpoint: {said}"),
        ("checkpoint_failed", _) => {
            format!("checkpoint failed, {}: {}", text(data, "label"), text(data, "reason"))
        }
        ("session", _) if data["loaded"] == true => format!("{who} continues in its session"),
        ("session", _) => match text(data, "reason") {
            reason if reason.is_empty() => format!("{who} started a session"),
            reason => format!("{who} started a new session: {reason}"),
        },
        (_, Some(said)) => format!("{who} {what}: {said}"),
        (_, None) => format!("{who} {what}"),
    }
}

/// Returns the current step of an agent, or the first one.
fn current_step(data: &Value) -> Option<String> {
    let steps = data["steps"].as_array()?;
    let at = |status: &str| steps.iter().find(|step| step["status"] == status);
    at("in_progress").or_else(|| at("pending")).map(|step| text(step, "text"))
}

fn of_decision(what: &str, data: &Value) -> String {
    match what {
        "opened" => format!("asks: {}", text(data, "question")),
        "resolved" => format!("{} answered {}", text(data, "by"), text(data, "option")),
        "withdrawn" => format!("question withdrawn: {}", text(data, "reason")),
        _ => unknown(&format!("decision.{what}"), data),
    }
}

fn of_review(what: &str, data: &Value) -> String {
    let (agent, number, reason) = (text(data, "agent"), text(data, "proposal"), text(data, "reason"));
    match what {
        "proposed" => format!("proposal {number} sent to the reviewers"),
        "acknowledged" => format!("{agent} approved proposal {number}"),
        "refused" => format!("{agent} rejected proposal {number}: {reason}"),
        "silent" => format!("{agent} gave no valid verdict on proposal {number}: {reason}"),
        _ => unknown(&format!("review.{what}"), data),
    }
}

fn of_subplan(what: &str, data: &Value) -> String {
    let (name, plan, reason) = (text(data, "name"), text(data, "plan"), text(data, "reason"));
    match what {
        "spawned" => format!("subplan {name} is {plan}"),
        "called" => "allowed to run by its parent plan".to_owned(),
        "failed" if data["again"] == true => {
            format!("subplan {name} failed and is retried: {}", text(&data["error"], "text"))
        }
        "failed" => format!("subplan {name} failed: {}", text(&data["error"], "text")),
        "joined" => format!("subplan {name} joined as {}", text(data, "commit")),
        "ready" => format!("subplan {name} is ready to land in its project"),
        "conflict" => format!("subplan {name} conflicts with the results joined so far"),
        "cancelled" | "dropped" => format!("subplan {name} {what}: {reason}"),
        _ => unknown(&format!("subplan.{what}"), data),
    }
}

/// Returns the sentence stored with a sync outcome. For the push of the target branch, it is built from the event's
/// fields.
fn of_sync(what: &str, data: &Value) -> String {
    let (target, remote, said) = (text(data, "target"), text(data, "remote"), text(data, "text"));
    match what {
        "pushed" if !target.is_empty() => format!("pushed {target} to {remote}"),
        "push_failed" if !target.is_empty() => format!("could not push {target} to {remote}: {said}"),
        _ if !said.is_empty() => format!("sync: {said}"),
        _ => unknown(&format!("sync.{what}"), data),
    }
}

fn of_invariant(what: &str, data: &Value) -> String {
    let at = text(data, "at");
    let findings = data["findings"].as_array().map(Vec::as_slice).unwrap_or_default();
    match what {
        "enforced" if findings.is_empty() => format!("no invariants before {at}"),
        "enforced" => format!("{} invariants passed before {at}", findings.len()),
        "blocked" => {
            let reasons: Vec<_> = findings.iter().filter_map(blocking).collect();
            format!("{at} is blocked: {}", reasons.join("; "))
        }
        _ => unknown(&format!("invariant.{what}"), data),
    }
}

fn blocking(finding: &Value) -> Option<String> {
    let check = &finding["check"];
    let reason = check.get("violated").or_else(|| check.get("unknown"))?;
    Some(format!("{} ({})", text(finding, "invariant"), reason.as_str().unwrap_or_default()))
}

/// Kinds of later versions are shown as they are instead of hidden.
fn unknown(kind: &str, data: &Value) -> String {
    match data {
        Value::Null => kind.to_owned(),
        Value::Object(fields) if fields.is_empty() => kind.to_owned(),
        _ => format!("{kind} {data}"),
    }
}

fn text(data: &Value, key: &str) -> String {
    match &data[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).collect()
}

/// Returns the usage of a run as a sentence. An agent that reports no tokens or no cost has zero of them in its event.
fn used(data: &Value) -> String {
    let amount = |name: &str| data[name].as_u64().filter(|amount| *amount > 0);
    let parts = [
        amount("tokens").map(|tokens| counted(tokens, "token")),
        amount("cost_micros").map(|micros| format!("{} USD", dollars(micros))),
        amount("tool_calls").map(|calls| counted(calls, "tool call")),
    ];
    let parts: Vec<_> = parts.into_iter().flatten().collect();
    match parts.as_slice() {
        [] => "the agent reported no usage".to_owned(),
        [one] => format!("the run used {one}"),
        [first @ .., last] => format!("the run used {} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use serde_json::json;

    fn event(kind: &str, data: Value) -> Event {
        Event {
            seq: 12,
            at: "2026-03-10T12:00:00.123456Z".into(),
            kind: kind.into(),
            plan: Some("pln-1".into()),
            run: None,
            revision: Some(1),
            data,
        }
    }

    /// Breaks if a line of agent output is omitted without a note.
    #[test]
    fn whoever_follows_reads_every_line_or_how_many_more_there_are() {
        let few = event("agent.output", json!({"agent": "w", "lines": ["one", "two"], "left_out": 0}));
        assert_eq!(detail_lines(&few), ["one", "two"]);
        let seen = lines(&few);
        let seen: Vec<_> = seen.lines().map(|line| line.rsplit("  ").next().unwrap()).collect();
        assert_eq!(seen, ["one", "two"]);
        let many = json!({"agent": "w", "lines": vec!["x"; OUTPUT_LINES_MAX + 2], "left_out": 3});
        let many = detail_lines(&event("agent.output", many));
        assert_eq!((many.len(), many.last().unwrap().as_str()), (OUTPUT_LINES_MAX + 1, "(and 5 more)"));
    }

    #[test]
    fn each_kind_reads_as_a_sentence() {
        for (kind, data, said) in [
            ("plan.started", json!({"phase": "execute"}), "execute started"),
            ("plan.errored", json!({"error": {"class": "git", "text": "no disk"}}), "failed: no disk"),
            ("plan.constrained", json!({"reasons": ["a", "b"]}), "not acceptable: a; b"),
            (
                "validation.failed",
                json!({"name": "tests", "text": "exit 1"}),
                "validation tests failed: exit 1",
            ),
            ("agent.progress", json!({"text": "reading"}), "reading"),
            ("agent.output", json!({"agent": "w", "lines": ["one", "two"]}), "two"),
            ("agent.ended", json!({"agent": "w", "how": "finished"}), "w finished"),
            ("agent.asked", json!({"agent": "w", "question": "Which?"}), "w asked: Which?"),
            ("invariant.enforced", json!({"at": "apply", "findings": []}), "no invariants before apply"),
            (
                "agent.rate_limited",
                json!({"agent": "w", "until": "2026-03-10T12:00:00Z", "times": 1}),
                "w reached its rate limit; next attempt at 2026-03-10 12:00:00 UTC",
            ),
            ("agent.started", json!({"agent": "writer"}), "writer started"),
            (
                "agent.usage",
                json!({"agent": "w", "tokens": 1200, "cost_micros": 45_000, "tool_calls": 3}),
                "the run used 1200 tokens, 0.045 USD and 3 tool calls",
            ),
            (
                "agent.usage",
                json!({"agent": "w", "tokens": 0, "cost_micros": 0, "tool_calls": 1}),
                "the run used 1 tool call",
            ),
            ("agent.session", json!({"agent": "w", "loaded": true}), "w continues in its session"),
            (
                "agent.session",
                json!({"agent": "w", "loaded": false, "reason": "gone"}),
                "w started a new session: gone",
            ),
            (
                "agent.checkpoint_failed",
                json!({"agent": "w", "label": "before edit: a", "reason": "it is full"}),
                "checkpoint failed, before edit: a: it is full",
            ),
            ("agent.choice", json!({"question": "Which?", "chosen": "a"}), "chose a: Which?"),
            (
                "agent.tool",
                json!({"agent": "w", "title": "make", "kind": "execute", "status": "failed"}),
                "execute: make (failed)",
            ),
            (
                "agent.plan",
                json!({"agent": "w", "steps": [{"text": "a", "status": "pending"}]}),
                "w is at step: a",
            ),
            ("agent.permission", json!({"title": "make", "answer": "allowed"}), "allowed: make"),
            ("changeset.sealed", json!({"entries": 3}), "changed paths: 3"),
            ("moon.risen", json!({"full": true}), "moon.risen {\"full\":true}"),
            ("moon.risen", json!({}), "moon.risen"),
            (
                "invariant.blocked",
                json!({"at": "apply", "findings": [
                    {"invariant": "ok", "check": "held"}, {"invariant": "small", "check": {"violated": "900 lines"}}
                ]}),
                "apply is blocked: small (900 lines)",
            ),
        ] {
            assert_eq!(sentence(&event(kind, data)), said, "{kind}");
        }
    }

    #[test]
    fn a_line_of_the_feed_has_its_number_time_and_plan() {
        let text = line(&event("plan.retried", json!({})));
        assert_eq!(bare(&text), "    12  2026-03-10 12:00:00  pln-1  plan.retried  queued again\n");
    }
}
