//! Success needs evidence (N1): work of an agent whose model failed is kept and never lands automatically; a retry continues
//! from it, and a person may accept it.

use drydock_testkit::wait;
use serde_json::Value;

use crate::speaking::world as acp_world;
use crate::world::{Kind, LIMIT, World, text};

/// How the report of the test agent begins, as goose's does.
const PATTERNS: &str = "failure_patterns = [\"Ran into this error\"]";
const UNAUTHORIZED: &str = "report Authentication error: Status: 401 Unauthorized";

fn outcome(world: &World, plan: &str) -> Value {
    let events = world.events(plan);
    let ended = events.iter().rfind(|event| event["kind"] == "agent.ended").expect("an agent ended");
    ended["data"]["outcome"].clone()
}

fn landed(world: &World) -> Vec<String> {
    let names = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
    names.lines().map(str::to_owned).collect()
}

/// Makes a plan whose agent ends its turn well although its model failed after half of the work.
#[track_caller]
fn failed(world: &World) -> String {
    world.write("behaviour", UNAUTHORIZED);
    let (id, before) = (world.plan_after("strategize"), world.repo.head("main"));
    world.drydock(&["plan", "execute", &id]).expect(1);
    let shown = world.show(&id);
    assert_eq!(world.stage(&id), "execute/errored");
    assert_eq!(shown["error"]["class"], "failed_auth");
    assert!(text(&shown["error"]["text"]).contains("Status: 401 Unauthorized"), "{shown:#}");
    assert_eq!(outcome(world, &id), "failed_auth");
    world.drydock(&["plan", "apply", &id]).expect(4);
    assert_eq!(world.repo.head("main"), before, "nothing landed");
    id
}

on_both! {
    /// N1, finding 1 of agents: breaks when half of the work lands, or a retry loses it or cannot leave it.
    fn half_done_work_never_lands_and_a_retry_continues_from_it(kind: Kind) {
        for (retry, files) in [
            (&["plan", "retry"][..], &["half.txt", "hello.txt", "prompt.txt"][..]),
            (&["plan", "retry", "--from-base"], &["hello.txt", "prompt.txt"]),
        ] {
            let world = acp_world(kind, "write", PATTERNS);
            let id = failed(&world);
            world.write("behaviour", "write");
            let retried = world.ok(&[retry, &[&id]].concat());
            assert_eq!(world.ok(&[retry, &[&id]].concat()), retried, "a repeat answers with the current state");
            world.drydock(&["plan", "execute", &id]).expect(0);
            assert_eq!(outcome(&world, &id), "done");
            world.drydock(&["plan", "apply", &id]).expect(0);
            assert_eq!(landed(&world), files, "{retry:?}");
            world.assert_landed_once(&id);
            world.assert_sound(&id);
        }
    }
}

/// N1: breaks when accepted work skips its validations, has an agent run again, or does not land as it is.
#[test]
fn accepted_work_is_judged_without_a_writer() {
    let world = acp_world(Kind::Sqlite, "write", PATTERNS);
    world.ok(&["action", "remove", "fix"]);
    let check = "[[validations]]\nname = \"half\"\ncommand = \"test -e half.txt\"";
    world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{check}"));
    let id = failed(&world);
    let accepted = world.ok(&["plan", "accept", &id]);
    assert_eq!(world.ok(&["plan", "accept", &id]), accepted, "a repeat answers with the current state");
    world.drydock(&["plan", "execute", &id]).expect(0);
    assert_eq!((world.count(&id, "agent.started"), world.count(&id, "validation.passed")), (1, 1));
    world.drydock(&["plan", "apply", &id]).expect(0);
    assert_eq!(landed(&world), ["half.txt"]);
    world.assert_sound(&id);
}

/// Makes a plan of an agent that runs this script, with these keys beside it.
fn reported(world: &World, script: &str, keys: &str) -> String {
    world.settings(&format!("[agents.reporter]\ncommand = [\"sh\", \"-c\", '''{script}''']\n{keys}\n"));
    world.action("reported", "[agents]\nexecute = \"reporter\"");
    let id = text(&world.ok(&["plan", "use", "reported", "--project", "app"])["plan"]["id"]);
    world.ok(&["plan", "strategize", &id]);
    id
}

/// N1, finding 6 of agents: breaks when what codex and claude print about their model is not understood, when a limit is not
/// waited for, or when an agent that changed nothing counts as done.
#[test]
fn the_last_words_of_a_program_are_read() {
    let patterns = "protocol = \"command\"\nfailure_patterns = [\"API Error\"]";
    for (script, keys, ends, seen) in [
        ("echo half > half.txt; echo 'API Error: 500 internal error'", patterns, 1, "failed_model"),
        ("echo 'ERROR: status 401 Unauthorized' >&2; exit 1", "preset = \"codex\"", 1, "failed_auth"),
        ("echo 'the text API Error: 500 is explained' | tee half.txt", patterns, 0, "done"),
        ("echo nothing to do", patterns, 0, "no_change"),
        ("exit 3", patterns, 1, "failed_agent"),
    ] {
        let world = World::new(Kind::Sqlite);
        let id = reported(&world, script, keys);
        world.drydock(&["plan", "execute", &id]).expect(ends);
        assert_eq!(outcome(&world, &id), seen, "{script}");
        if seen == "failed_agent" {
            // It changed nothing, so there is nothing to accept.
            world.drydock(&["plan", "accept", &id]).expect(4);
        }
    }
    let world = World::new(Kind::Sqlite);
    let limited = "echo half > half.txt; echo 'ERROR: last status: 429 Too Many Requests' >&2; exit 1";
    let id = reported(&world, limited, "preset = \"codex\"");
    let waiting = world.spawn(&["plan", "execute", &id]);
    wait::until("the limit to be waited for", LIMIT, || {
        (world.count(&id, "agent.rate_limited") == 1).then_some(())
    });
    waiting.kill();
    assert_eq!((world.stage(&id).as_str(), outcome(&world, &id)), ("execute/queued", "rate_limited".into()));
    assert_eq!(world.show(&id)["waits"]["cause"], "rate_limit");
}
