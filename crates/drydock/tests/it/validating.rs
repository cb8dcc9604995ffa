//! Validations: required ones decide, informational ones tell.

use crate::world::{Kind, World};

fn judged_by(kind: Kind, command: &str, required: bool) -> (World, String) {
    let world = World::new(kind);
    world.agent("writer", "echo hi > hello.txt");
    let rule = format!("[[validations]]\nname = \"judge\"\ncommand = \"{command}\"\nrequired = {required}");
    world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
    let id = world.plan_after("strategize");
    (world, id)
}

on_both! {
    /// Breaks when a result that its validation refused counts as complete.
    fn a_required_validation_that_fails_ends_the_run(kind: Kind) {
        let (world, id) = judged_by(kind, "echo because; test -e good.txt", true);
        let failed = world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(failed.error_code(), "decision_open");
        assert!(failed.json["error"]["text"].as_str().unwrap().contains("because"), "{:#}", failed.json);
        let plan = world.show(&id);
        assert_eq!((crate::world::stage(&plan), &plan["error"]["class"]), ("execute/errored".into(), &"validation_failed".into()));
        assert_eq!(world.count(&id, "agent.sent_back"), 3, "the output went back three times, then a person is asked");
        assert_eq!(world.ok(&["decision", "list", "--open"])["decisions"][0]["kind"], "validation");
        world.agent("writer", "echo hi > good.txt");
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when an informational validation decides, or is not told.
    fn an_informational_validation_that_fails_is_told(kind: Kind) {
        let (world, id) = judged_by(kind, "false", false);
        world.drydock(&["plan", "execute", &id]).expect(0);
        assert_eq!(world.stage(&id), "execute/complete");
        assert_eq!(world.count(&id, "validation.failed"), 1);
    }
}

on_both! {
    /// Breaks when only the plan's own result is judged, and not what lands.
    fn what_fails_only_when_merged_does_not_land(kind: Kind) {
        let (world, id) = judged_by(kind, "test ! -e forbidden.txt", true);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.repo.write("forbidden.txt", "");
        let head = world.repo.commit("by the user");
        assert_eq!(world.drydock(&["plan", "apply", &id]).expect(5).error_code(), "constrained");
        assert_eq!((world.stage(&id), world.repo.head("main")), ("apply/constrained".into(), head));
    }
}

on_both! {
    /// Breaks when an agent that could mend its work is not told what failed, or what a validation wrote is taken for
    /// the agent's work.
    fn failing_output_goes_back_to_the_agent_which_mends_its_work(kind: Kind) {
        let world = World::new(kind);
        let script = "cat > task.json; echo again >> times.txt; if grep -q 'no good' task.json; then echo hi > good.txt; fi; rm task.json";
        world.agent("writer", script);
        let rule = "[[validations]]\nname = \"judge\"\ncommand = \"echo trash > left-by-validation.txt; test -e good.txt || { echo no good; false; }\"\nrequired = true";
        world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
        let id = world.plan_after("execute");
        assert_eq!(world.count(&id, "agent.sent_back"), 1);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.repo.git(&["show", "main:times.txt"]), "again\nagain", "it went on with its own work");
        assert_eq!(world.repo.git(&["ls-tree", "--name-only", "main"]), "README.md\ngood.txt\nsrc\ntimes.txt");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when another round throws the work so far away.
    fn another_round_goes_on_with_the_work_so_far(kind: Kind) {
        let (world, id) = judged_by(kind, "test -e good.txt", true);
        world.drydock(&["plan", "execute", &id]).expect(6);
        world.agent("writer", "test -e hello.txt && echo hi > good.txt");
        let decision = world.ok(&["decision", "list", "--open"])["decisions"][0]["id"].as_str().unwrap().to_owned();
        world.ok(&["decision", "resolve", &decision, "--option", "another_round", "--note", "add good.txt"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        assert_eq!(world.repo.git(&["ls-tree", "--name-only", "main"]), "README.md\ngood.txt\nhello.txt\nsrc");
        world.assert_sound(&id);
    }
}

/// N9. Breaks when a secret of an agent that a validation prints is shown in an event.
#[test]
fn a_secret_that_a_validation_prints_is_hidden() {
    let (world, id) = judged_by(Kind::Sqlite, "echo the key is sk-1234567890; false", false);
    world.settings("[agents.holder]\nprotocol = \"command\"\ncommand = [\"true\"]\nenv = { API_KEY = \"sk-1234567890\" }\n");
    world.drydock(&["plan", "execute", &id]).expect(0);
    let events = world.events(&id);
    let failed = events.iter().find(|event| event["kind"] == "validation.failed").expect("it failed");
    assert!(failed.to_string().contains("the key is [hidden]"), "{failed:#}");
    // The plan's own text names the command, which is the person's.
    assert!(!failed["data"]["text"].to_string().contains("sk-1234567890"), "{failed:#}");
}
