//! The JSON names of the contract. A rename that compiles must fail here.

use drydock_api::{Changeset, Checkpoint, Decision, Doctor, Event, Invariant, Lock, OnePlan, Plan, Rule};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Parses the value, serializes it again, and requires every given field to be unchanged.
fn kept<T: DeserializeOwned + Serialize>(given: Value) {
    let read: T = serde_json::from_value(given.clone()).unwrap_or_else(|error| panic!("{error} in {given}"));
    let written = serde_json::to_value(&read).unwrap();
    for (name, value) in given.as_object().unwrap() {
        assert_eq!(written.get(name), Some(value), "{name}");
    }
}

fn plan() -> Value {
    json!({
        "id": "pln-1", "action": "fix", "project": "p", "phase": "apply", "state": "constrained", "revision": 4,
        "run": "run-1", "parent": null, "root": "pln-1", "profile": "auto", "branch": "b", "base_commit": "c",
        "head_commit": "d", "landed_commit": null, "error": {"class": "git", "text": "t"},
        "pending_decision": null, "reversions": 1, "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z", "phase_started_at": null, "phase_completed_at": null,
    })
}

#[test]
fn every_object_has_the_names_of_the_contract() {
    kept::<Plan>(plan());
    kept::<Decision>(json!({
        "id": "dec-1", "plan": "pln-1", "phase": "execute", "run": null, "kind": "gate", "question": "q",
        "options": [{"id": "approve", "label": "l", "effect": "approve", "needs_note": false}],
        "status": "resolved",
        "resolution": {"option": "approve", "note": null, "by": "me", "via": "http", "at": "2026-01-01T00:00:00Z"},
        "details": {"backup_ref": "r", "discarded_commits": []}, "created_at": "2026-01-01T00:00:00Z",
    }));
    kept::<Event>(json!({
        "seq": 1, "at": "2026-01-01T00:00:00Z", "kind": "plan.created", "plan": "pln-1", "run": null,
        "revision": 1, "data": {},
    }));
    kept::<Lock>(json!({
        "id": "lck-1", "scope": "plan", "key": "pln-1", "owner": "o", "host": "h", "pid": 1, "purpose": "p",
        "fence": 2, "acquired_at": "2026-01-01T00:00:00Z", "expires_at": "2026-01-01T00:00:00Z", "stale": false,
    }));
    kept::<Changeset>(json!({
        "id": "chg-1", "plan": "pln-1", "run": "run-1", "writer": "w", "state": "sealed",
        "entries": [{"seq": 1, "path": "a", "op": "rename", "from": "b", "before": "x", "after": "y", "at": "t"}],
    }));
    kept::<Doctor>(json!({
        "checks": [{"name": "git", "status": "warn", "text": "t", "hint": null}], "stale_locks": 2,
    }));
    kept::<Checkpoint>(json!({
        "ref": "refs/drydock/snap/pln-1/1", "commit": "c", "plan": "pln-1", "run": null, "label": null,
        "created_at": "2026-01-01T00:00:00Z",
    }));
    kept::<Invariant>(
        json!({"name": "n", "scope": "global", "cel": "true", "at": ["apply"], "locked": true}),
    );
}

#[test]
fn fields_of_a_newer_server_are_ignored() {
    let mut newer = plan();
    newer["weather"] = json!({"sunny": true});
    let read: OnePlan = serde_json::from_value(json!({"plan": newer, "extra": 1})).unwrap();
    assert_eq!(read.plan.id, "pln-1");
    let rule: Invariant = serde_json::from_value(
        json!({"name": "n", "scope": "global", "new": 1, "text": "be kind", "at": []}),
    )
    .unwrap();
    assert_eq!(rule.rule, Rule::Text("be kind".into()));
}
