//! An agent that falls silent is told of; one that crashes is started again, when its rule says so and within it.

use crate::world::{Kind, World, text};

/// Makes a machine whose writer is this script, with more keys of its table; it may leave marks in `$MARKS`.
fn world(kind: Kind, script: &str, keys: &str) -> World {
    let world = World::new(kind);
    let script = format!("MARKS={}\n{script}", world.place(""));
    let words = format!("[\"sh\", \"-c\", {}]", serde_json::Value::from(script));
    world.settings(&format!("[agents.writer]\nprotocol = \"command\"\ncommand = {words}\n{keys}\n"));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    world
}

on_both! {
    /// Breaks when a silent agent is not noticed, told of twice, or stopped for it.
    fn a_silent_agent_is_told_of_once_and_goes_on(kind: Kind) {
        let world = world(kind, "sleep 3; echo hi > hello.txt", "stall_after = \"1s\"");
        let id = world.plan_after("execute");
        assert_eq!(world.stage(&id), "execute/complete");
        let alerts: Vec<_> = world.events(&id).into_iter().filter(|event| event["kind"] == "alert").collect();
        assert_eq!(alerts.len(), 1, "{alerts:?}");
        assert!(text(&alerts[0]["data"]["text"]).contains("has been silent"), "{alerts:?}");
        assert_eq!(world.count(&id, "agent.stalled"), 1);
    }
}

on_both! {
    /// Breaks when a rule does not end a silence, ends it before people are told, or the work is lost by it.
    fn a_silent_agent_is_started_again_by_rule(kind: Kind) {
        let script = "if [ -e half.txt ]; then echo hi > hello.txt; else echo x > half.txt; sleep 60; fi";
        let rule = "stall_after = \"1s\"\nrestart = { max = 1, on = [\"stall\"] }";
        let world = world(kind, script, rule);
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        assert!(world.repo.path().join("half.txt").exists() && world.repo.path().join("hello.txt").exists());
        let told: Vec<_> = world.events(&id).iter().map(|event| text(&event["kind"])).collect();
        let order: Vec<_> =
            told.iter().filter(|kind| ["agent.stalled", "alert", "agent.restarted"].contains(&kind.as_str())).collect();
        assert_eq!(order, ["agent.stalled", "alert", "agent.restarted"]);
        world.assert_sound(&id);
    }
}

/// Breaks when an agent that falls silent again and again is waited for without end, or nobody says why it failed.
#[test]
fn silence_after_the_last_restart_fails_the_run() {
    let rule = "stall_after = \"500ms\"\nrestart = { max = 1, on = [\"stall\"] }";
    let world = world(Kind::Sqlite, "echo x >> $MARKS/starts; sleep 60", rule);
    let id = world.plan_after("strategize");
    let failed = world.drydock(&["plan", "execute", &id]).expect(1);
    assert!(
        text(&failed.json["error"]["text"]).contains("silent for 1 s and was stopped"),
        "{:#}",
        failed.json
    );
    assert_eq!((world.lines("starts").len(), world.stage(&id).as_str()), (2, "execute/errored"));
}

on_both! {
    /// Breaks when a crash that may pass is not bridged, or its work is lost, or it counts as a new run.
    fn a_crashed_agent_is_started_again_where_it_left_off(kind: Kind) {
        let script = "if [ -e half.txt ]; then echo hi > hello.txt; else echo x > half.txt; kill -9 $$; fi";
        let world = world(kind, script, "restart = { max = 2, on = [\"crash\"] }");
        let id = world.plan_after("apply");
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["half.txt", "hello.txt"]);
        assert_eq!((world.count(&id, "agent.restarted"), world.count(&id, "agent.started")), (1, 1));
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when restarts have no end, or an agent without a rule is started again.
    fn restarts_end_with_their_number(kind: Kind) {
        for (keys, starts) in [("restart = { max = 1, on = [\"crash\"] }", 2), ("", 1)] {
            let world = world(kind, "echo x >> $MARKS/starts; exit 7", keys);
            let id = world.plan_after("strategize");
            let failed = world.drydock(&["plan", "execute", &id]).expect(1);
            assert!(text(&failed.json["error"]["text"]).contains("exit code 7"), "{:#}", failed.json);
            assert_eq!(world.lines("starts").len(), starts, "{keys}");
            assert_eq!(world.stage(&id), "execute/errored");
        }
    }
}
