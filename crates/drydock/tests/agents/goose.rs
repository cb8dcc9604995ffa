//! goose over the Agent Client Protocol, which asks before it acts.

use drydock_testkit::model::Script;
use serde_json::json;

use crate::desk::{Desk, LAST};
use crate::world::{alive, list, text};

fn desk(permissions: &str) -> Desk {
    let call = json!({ "command": "echo hello > greeting.txt" });
    let mut desk = Desk::new("goose", Script::saying(LAST).calling("shell", call));
    desk.world.settings(&format!("[agents.goose]\npreset = \"goose\"\npermissions = \"{permissions}\"\n"));
    desk.variable("GOOSE_PROVIDER", "openai");
    desk.variable("GOOSE_MODEL", "scripted");
    desk.variable("OPENAI_HOST", desk.model.link());
    desk
}

/// Breaks when the question of a real agent does not reach a person, when its work begins before the answer, or when an
/// allowed work does not land.
#[test]
fn goose_asks_a_person_and_what_was_allowed_lands() {
    let desk = desk("ask");
    let id = desk.plan();
    desk.run(&["plan", "execute", &id]).expect(6);
    assert_eq!(desk.world.stage(&id), "execute/waiting");
    assert!(alive(&id).is_empty(), "nothing waits but the plan");
    let decision =
        list(&desk.world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"])[0].clone();
    assert!(decision.to_string().contains("echo hello > greeting.txt"), "{decision:#}");
    desk.world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "allow"]);
    desk.assert_works(&id);
}

/// Breaks when a rejected tool of a real agent runs all the same.
#[test]
fn goose_does_not_do_what_is_rejected() {
    let desk = desk("reject");
    let id = desk.plan();
    desk.run(&["plan", "execute", &id]);
    assert!(desk.world.count(&id, "agent.permission") > 0, "{:?}", desk.world.events(&id));
    assert!(!format!("{}", desk.run(&["plan", "diff", &id]).json).contains("greeting.txt"));
}

/// Breaks when the greeting of a real agent is not understood, or a check costs something.
#[test]
fn goose_is_checked_without_asking_the_model() {
    // It does not say its name.
    desk("ask").assert_checked("goose", "it answered: protocol version 1");
}
