//! Agents, drafts and validations that are wrong: what was seen is named, with what to do, and the plan can go on. Wrong
//! conversations are in `speaking`.

use crate::world::{Answer, Kind, World, stage, text};

/// Makes a machine with this action; its writer works, unless another is configured.
fn world(rest: &str) -> World {
    let world = World::new(Kind::Sqlite);
    world.agent("writer", "echo hi > hello.txt");
    world.action("fix", rest);
    world
}

/// Requires that the answer says all of this, and that the plan failed so.
#[track_caller]
fn said(world: &World, plan: &str, failed: &Answer, class: &str, words: &[&str]) {
    let (error, shown) = (&failed.json["error"], world.show(plan));
    let told = format!("{} {}", text(&error["text"]), text(&error["hint"]));
    for word in words {
        assert!(told.contains(word), "{word:?} is missing in {told}");
    }
    assert_eq!(shown["error"]["class"], class);
    assert!(stage(&shown).ends_with("/errored"), "{}", stage(&shown));
}

/// Breaks when a missing program is not named with what to do, or the plan cannot go on once it is there.
#[test]
fn a_missing_program_is_named_and_the_plan_goes_on() {
    let world = world("[agents]\nexecute = \"nobody\"");
    world.settings("[agents.nobody]\nprotocol = \"command\"\ncommand = [\"no-such-agent\"]\n");
    let id = world.plan_after("strategize");
    let failed = world.drydock(&["plan", "execute", &id]).expect(1);
    let words = ["no-such-agent", "program not found", "install", "plan retry"];
    said(&world, &id, &failed, "agent_missing", &words);
    world.ok(&["plan", "cancel", &id]);
}

/// Breaks when an agent that has left the configuration is not named, or the plan is stuck.
#[test]
fn an_agent_that_is_no_longer_configured_is_named() {
    let world = world("[agents]\nexecute = \"later\"");
    world.agent("later", "true");
    let id = world.plan_after("strategize");
    world.without_agent("later");
    let failed = world.drydock(&["plan", "execute", &id]).expect(1);
    said(&world, &id, &failed, "agent_missing", &["\"later\"", "configuration"]);
    world.agent("later", "echo hi > hello.txt");
    world.ok(&["plan", "retry", &id]);
    world.drydock(&["plan", "execute", &id]).expect(0);
}

/// Breaks when a draft that makes no sense counts as a strategy, is not named, or blocks the plan.
#[test]
fn a_draft_that_is_not_valid_is_named_and_the_plan_goes_on() {
    let world = world("[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
    for draft in ["{\"choices\":7}", "{\"choices\"", "{\"chioces\":[]}"] {
        world.agent("thinker", &format!("mkdir -p .drydock; echo '{draft}' > .drydock/strategy.json"));
        let id = world.plan(&[]);
        let failed = world.drydock(&["plan", "strategize", &id]).expect(1);
        said(&world, &id, &failed, "strategy_invalid", &["strategy.json", "plan retry"]);
        world.agent("thinker", "true");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "strategize", &id]).expect(0);
    }
}

/// Breaks when a validation that hangs is waited for, is not named, or leaves something running.
#[test]
fn a_validation_that_hangs_is_ended_and_named() {
    let rule = "[[validations]]\nname = \"slow\"\ncommand = \"sleep 300\"\ntimeout_s = 1";
    let world = world(&format!("[agents]\nexecute = \"writer\"\n{rule}"));
    let id = world.plan_after("strategize");
    let failed = world.drydock(&["plan", "execute", &id]).expect(6);
    said(&world, &id, &failed, "validation_failed", &["slow", "took longer than 1 s", "decision show"]);
    world.wait_dead(&id);
    assert_eq!(world.ok(&["decision", "list", "--open"])["decisions"][0]["kind"], "validation");
}

/// Breaks when a message that is too long, or no message, passes for one, or ends the run.
#[test]
fn a_message_that_cannot_be_read_is_told_and_ends_nothing() {
    let world = world("[agents]\nexecute = \"writer\"");
    let long =
        "printf '{\"drydock\":\"progress\",\"text\":\"'; head -c 70000 /dev/zero | tr '\\0' x; echo '\"}'";
    world.agent("writer", &format!("{long}; echo '{{\"drydock\":\"choice\"'; echo '{{\"drydock\":\"usage\",\"cost_usd\":\"much\"}}'; echo hi > hello.txt"));
    let id = world.plan_after("execute");
    let reasons: Vec<_> = world
        .events(&id)
        .iter()
        .filter(|event| event["kind"] == "agent.garbled")
        .map(|event| text(&event["data"]["reason"]))
        .collect();
    assert_eq!(reasons.len(), 3, "{reasons:?}");
    for word in ["at most 65536 bytes", "not valid JSON", "not an amount of US dollars"] {
        assert!(reasons.iter().any(|reason| reason.contains(word)), "{word}: {reasons:?}");
    }
}
