//! Real agents whose model fails after the third answer (N1): half-done work never lands, and a retry continues from it.

use drydock_testkit::model::Script;
use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::desk::{Desk, LAST};
use crate::world::{LIMIT, text};

/// The steps of the work. The first leaves a mark when it finds what it wrote in an earlier run.
const STEPS: [&str; 4] = [
    "test -e one.txt && echo yes > continued.txt; echo 1 > one.txt",
    "echo 2 > two.txt",
    "echo 3 > three.txt",
    "echo 4 > four.txt",
];
/// A status of the model's service, and the outcome that it must have.
const FAILURES: [(u16, &str); 3] = [(401, "failed_auth"), (429, "rate_limited"), (500, "failed_model")];

fn script(tool: &str, call: impl Fn(&str) -> Value, status: u16) -> Script {
    let steps = STEPS.iter().fold(Script::saying(LAST), |script, step| script.calling(tool, call(step)));
    steps.failing_after(3, status)
}

/// Requires that the half-done work of a failed model stays out of the target, and that a retry completes it.
#[track_caller]
fn assert_continues(desk: &Desk, outcome: &str) {
    let (id, before) = (desk.plan(), desk.world.repo.head("main"));
    if outcome == "rate_limited" {
        let waiting = desk.spawn(&["plan", "execute", &id]);
        wait::until("the limit to be waited for", LIMIT, || {
            (desk.world.count(&id, "agent.rate_limited") == 1).then_some(())
        });
        waiting.terminate();
        waiting.wait(LIMIT);
        assert_eq!(desk.world.stage(&id), "execute/queued");
    } else {
        desk.run(&["plan", "execute", &id]).expect(1);
        let shown = desk.world.show(&id);
        assert_eq!(
            (desk.world.stage(&id).as_str(), text(&shown["error"]["class"]).as_str()),
            ("execute/errored", outcome)
        );
    }
    let events = desk.world.events(&id);
    let ended = events.iter().rfind(|event| event["kind"] == "agent.ended").unwrap();
    assert_eq!(ended["data"]["outcome"], outcome, "{ended:#}");
    desk.run(&["plan", "apply", &id]).expect(4);
    assert_eq!(desk.world.repo.head("main"), before, "half of the work landed");

    desk.model.repair();
    desk.run(&["plan", "retry", &id]).expect(0);
    desk.run(&["plan", "execute", &id]).expect(0);
    desk.run(&["plan", "apply", &id]).expect(0);
    let landed = desk.world.repo.git(&["show", "--name-only", "--format=", "main"]);
    let files: Vec<_> = landed.lines().collect();
    assert_eq!(files, ["continued.txt", "four.txt", "one.txt", "three.txt", "two.txt"]);
    desk.world.assert_sound(&id);
}

/// N1, findings 1 and 6 of agents: breaks when goose's `end_turn` after an error of its model counts as success.
#[test]
fn half_done_work_of_goose_never_lands_and_a_retry_continues_from_it() {
    for failure in FAILURES {
        let mut desk = Desk::new("goose", script("shell", |step| json!({ "command": step }), failure.0));
        desk.variable("GOOSE_PROVIDER", "openai");
        desk.variable("GOOSE_MODEL", "scripted");
        desk.variable("OPENAI_HOST", desk.model.link());
        assert_continues(&desk, failure.1);
    }
}

/// The same for codex, which reports it on standard error and exits with 1.
#[test]
fn half_done_work_of_codex_never_lands_and_a_retry_continues_from_it() {
    for failure in FAILURES {
        let desk = crate::codex::desk(script("exec_command", |step| json!({ "cmd": step }), failure.0));
        assert_continues(&desk, failure.1);
    }
}

/// The same for claude, which reports it on standard output and exits with 1.
#[test]
fn half_done_work_of_claude_never_lands_and_a_retry_continues_from_it() {
    for failure in FAILURES {
        let call = |step: &str| json!({ "command": step, "description": "a step" });
        let mut desk = Desk::new("claude", script("Bash", call, failure.0));
        desk.world
            .settings("[agents.claude]\npreset = \"claude\"\nenv = { CLAUDE_CODE_MAX_RETRIES = \"1\" }\n");
        desk.variable("ANTHROPIC_API_KEY", "sk-ant-not-a-real-key");
        desk.variable("ANTHROPIC_BASE_URL", desk.model.link());
        assert_continues(&desk, failure.1);
    }
}
