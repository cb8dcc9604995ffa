//! Agents that speak the Agent Client Protocol, through the binary: what they do lands, what they ask is answered by a
//! person, and what they get wrong leaves the plan where it can go on.

use drydock_testkit::program::acp_agent;
use drydock_testkit::wait;

use crate::world::{Answer, Kind, LIMIT, World, alive, list, text};

/// Makes a machine whose writer is the test agent; what it does is read from a file, so that it can change its mind.
pub(crate) fn world(kind: Kind, behaviour: &str, keys: &str) -> World {
    let world = World::new(kind);
    let script = format!("exec {} $(cat {})", acp_agent(), world.place("behaviour"));
    world.write("behaviour", behaviour);
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n{keys}\n"
    ));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    world
}

fn kinds(world: &World, plan: &str) -> Vec<String> {
    world
        .events(plan)
        .iter()
        .map(|event| text(&event["kind"]))
        .filter(|kind| kind.starts_with("agent."))
        .collect()
}

on_both! {
    /// Breaks when a conversation does not end in landed work, or its steps are not events in their order.
    fn what_a_speaking_agent_does_lands_and_is_told(kind: Kind) {
        let world = world(kind, "write", "");
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["hello.txt", "prompt.txt"]);
        let told = kinds(&world, &id);
        let steps = ["agent.started", "agent.plan", "agent.tool", "agent.tool", "agent.ended"];
        // Told now and then, as time passes.
        let timed = ["agent.output", "agent.checkpoint", "agent.usage"];
        let seen: Vec<_> = told.iter().filter(|kind| !timed.contains(&kind.as_str())).collect();
        assert_eq!(seen, steps);
        let tool = world.events(&id).into_iter().find(|event| event["kind"] == "agent.tool").unwrap();
        assert_eq!((&tool["data"]["title"], &tool["data"]["agent"]), (&"write hello.txt".into(), &"writer".into()));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a permission is given without a person where one must be asked, when the wait does not outlive the
    /// process, or when the answer does not reach the agent.
    fn a_permission_is_asked_of_a_person_and_the_answer_holds(kind: Kind) {
        for (option, file) in [("allow", "allowed.txt"), ("reject", "refused.txt")] {
            let world = world(kind, "ask", "permissions = { execute = \"ask\", other = \"allow\" }");
            let id = world.plan_after("strategize");
            world.drydock(&["plan", "execute", &id]).expect(6);
            assert_eq!(world.stage(&id), "execute/waiting");
            assert!(alive(&id).is_empty(), "nothing waits but the plan");
            let decision = list(&world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"])[0].clone();
            assert!(text(&decision["question"]).contains("make it"), "{decision}");
            // The dash is the one that stands between a question and its answer.
            let note = "once — and only here";
            world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", option, "--note", note]);
            world.drydock(&["plan", "execute", &id]).expect(0);
            world.drydock(&["plan", "apply", &id]).expect(0);
            world.assert_landed_once(&id);
            assert!(world.repo.path().join(file).exists(), "{option}");
            world.assert_sound(&id);
        }
    }
}

on_both! {
    /// Breaks when a broken conversation passes for work done, does not say what was seen, or blocks the plan.
    fn a_broken_conversation_is_named_and_the_plan_goes_on(kind: Kind) {
        let world = world(kind, "garbage", "");
        let id = world.plan_after("strategize");
        for (behaviour, said) in [
            ("garbage", "Welcome to the agent!"),
            ("version", "uses protocol version 7"),
            ("die", "in the middle of a message"),
            ("leave", "without an answer to `session/prompt`"),
            ("huge", "more than 8388608 bytes"),
            ("refuse", "refused to continue"),
        ] {
            world.write("behaviour", behaviour);
            let failed = world.drydock(&["plan", "execute", &id]).expect(1);
            assert!(text(&failed.json["error"]["text"]).contains(said), "{behaviour}: {:#}", failed.json);
            let (plan, class) = (world.show(&id), if behaviour == "refuse" { "refused" } else { "agent_failed" });
            assert_eq!((crate::world::stage(&plan), &plan["error"]["class"]), ("execute/errored".into(), &class.into()));
            world.ok(&["plan", "retry", &id]);
        }
        world.write("behaviour", "write");
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a death of drydock in the middle of a conversation leaves the agent, loses the plan, or does it twice.
    fn a_drydock_killed_in_a_conversation_leaves_nothing_and_goes_on(kind: Kind) {
        let world = world(kind, "stall", "");
        let id = world.plan_after("strategize");
        let driving = world.spawn(&["plan", "execute", &id]);
        wait::until("the agent was started", LIMIT, || (!alive(&id).is_empty()).then_some(()));
        driving.kill();
        world.wait_dead(&id);
        world.write("behaviour", "write");
        world.insist(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

/// Breaks when a cancelled plan's agent is not told by the protocol, or what it left is lost.
#[test]
fn a_cancelled_plan_tells_its_agent() {
    let world = world(Kind::Sqlite, "stall", "");
    let id = world.plan_after("strategize");
    let driving = world.spawn(&["plan", "execute", &id]);
    wait::until("the agent was started", LIMIT, || (world.count(&id, "agent.started") == 1).then_some(()));
    world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
    Answer::of(driving.wait(LIMIT));
    world.wait_dead(&id);
    assert_eq!(world.stage(&id), "execute/cancelled");
}

/// Breaks when a check gives the agent work, which costs, or does not say who answered.
#[test]
fn a_check_greets_and_asks_for_nothing() {
    let world = world(Kind::Sqlite, "write", "");
    let check = world.ok(&["agent", "check", "writer"])["check"].clone();
    assert_eq!((&check["status"], &check["text"]), (&"ok".into(), &"it answered: tester 1.2".into()));
    world.write("behaviour", "version");
    let failed = world.drydock(&["agent", "check", "writer"]);
    assert!(failed.json.to_string().contains("uses protocol version 7"), "{:#}", failed.json);
}
