//! What is offered works, and what is blocked is shown as blocked with what was measured.

use drydock_testkit::proc;
use serde_json::{Value, json};

use crate::tokens::{ask, create};
use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// Eight lines, where a rule allows fewer than three.
const WRITE: &str = "seq 8 > eight.txt";
const MEASURED: &str = "8 lines changed, limit 3";

/// Returns a machine with a plan that a rule keeps from landing, and the answer to the attempt.
fn blocked(kind: Kind) -> (World, String, Answer) {
    let world = World::new(kind);
    world.agent("writer", WRITE);
    let rule = "[[invariants]]\nname = \"small\"\ncel = \"diff.lines_changed < 3\"\nat = [\"apply\"]";
    world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{rule}"));
    let id = world.plan_after("execute");
    let refused = world.drydock(&["plan", "apply", &id]).expect(5);
    (world, id, refused)
}

fn commands(plan: &Value) -> Vec<String> {
    list(&plan["offers"]).iter().map(|offer| text(&offer["command"])).collect()
}

/// Types a line that was printed, in a shell.
fn paste(world: &World, line: &str) -> Answer {
    let typed = line.replacen("drydock", &format!("{} --json", env!("CARGO_BIN_EXE_drydock")), 1);
    let template = world.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &typed]).current_dir(template.get_current_dir().unwrap()).env_clear();
    shell.envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
    Answer::of(proc::run(&mut shell, LIMIT))
}

on_both! {
    /// Page B6, code 8.8. Breaks when a blocked plan looks complete, hides what was measured, offers what cannot work, or
    /// hints at what cannot be pasted.
    fn a_blocked_plan_shows_the_measure_and_offers_what_works(kind: Kind) {
        let (world, id, refused) = blocked(kind);
        let error = &refused.json["error"];
        assert!(text(&error["text"]).contains(MEASURED), "{error:#}");
        let plan = world.show(&id);
        let finding = &plan["blocked"]["findings"][0];
        assert_eq!(
            (&plan["blocked"]["phase"], &finding["invariant"], &finding["value"], &finding["limit"]),
            (&json!("apply"), &json!("small"), &json!(8), &json!(3)),
            "{plan:#}"
        );
        assert!(!commands(&plan).contains(&"apply".to_owned()), "{plan:#}");
        let approving = list(&plan["offers"]).iter().any(|offer| offer["option"] == "approve");
        assert!(!approving, "{plan:#}");
        let listed = world.ok(&["plan", "list"]);
        assert_eq!(listed["plans"][0]["blocked"], plan["blocked"]);
        assert_eq!(listed["plans"][0].get("offers"), None, "offers are part of answers about one plan");
        let why = world.ok(&["plan", "why", &id])["why"].clone();
        assert!(text(&why["summary"]).contains(&format!("apply is blocked: {MEASURED}")), "{why:#}");
        assert!(!list(&why["can_act"]).iter().any(|way| text(&way["command"]).contains("plan apply")), "{why:#}");
        // Guidance changes nothing that the rule measures.
        world.ok(&["plan", "prompt", &id, "keep it short"]);
        assert_eq!(world.show(&id)["blocked"], plan["blocked"]);
        let line = text(&list(&plan["offers"])[0]["line"]);
        assert!(text(&error["hint"]).contains(&line) && line.contains(&id), "{error:#}");
        let reverted = paste(&world, &line).expect(0);
        assert_eq!(crate::world::stage(reverted.plan()), "strategize/queued");
        assert_eq!(reverted.plan()["blocked"], Value::Null);
        assert!(list(&reverted.plan()["feedback"]).contains(&json!(format!("small: {MEASURED}"))), "{reverted:?}");
    }
}

on_both! {
    /// Page B6. Breaks when a plan stays blocked by a rule that was edited since.
    fn an_edited_rule_lets_the_plan_be_asked_for_again(kind: Kind) {
        let (world, id, _) = blocked(kind);
        let scope = format!("plan:{id}");
        world.ok(&["invariant", "add", "small", "--cel", "diff.lines_changed < 30", "--scope", &scope, "--at", "apply"]);
        let plan = world.show(&id);
        assert_eq!((&plan["blocked"], commands(&plan)[0].as_str()), (&Value::Null, "apply"));
        paste(&world, &text(&plan["offers"][0]["line"])).expect(0);
        world.assert_landed_once(&id);
    }
}

/// Breaks when callers are offered what their token may not do, or get what another one was answered.
#[test]
fn each_authority_is_offered_what_it_may_do() {
    let world = World::with_writer(Kind::Sqlite, WRITE);
    let id = world.plan_after("execute");
    let tokens = ["human", "operator", "reader"].map(|role| create(&world, role, &["--role", role]).0);
    let server = Server::start(&world, &["--workers", "0", "--tokens", "required"]);
    // Twice, since the second answer may be the one that was kept.
    for _ in 0..2 {
        let [human, operator, reader] = tokens.each_ref().map(|token| {
            let reply = ask(&server, Some(token), &format!("GET /plans/{id}"), &Value::Null);
            commands(&reply.body["plan"])
        });
        assert!(human.contains(&"apply".to_owned()) && human.contains(&"resolve".to_owned()), "{human:?}");
        assert!(!operator.is_empty() && !operator.contains(&"apply".to_owned()), "{operator:?}");
        assert!(!operator.contains(&"resolve".to_owned()), "{operator:?}");
        assert!(reader.is_empty(), "{reader:?}");
    }
    // A refusal over HTTP names the plan as well (code 8.8).
    let retry = ask(&server, Some(&tokens[0]), &format!("POST /plans/{id}/takeover"), &json!({}));
    assert!(text(&retry.body["hint"]).contains(&format!("drydock plan why {id}")), "{retry:?}");
}

/// Code 8.8, long day. Breaks when the hint after a conflict with the target cannot be pasted.
#[test]
fn the_hint_after_a_conflict_can_be_pasted() {
    let world = World::with_writer(Kind::Sqlite, "echo theirs > same.txt");
    let id = world.plan_after("execute");
    world.repo.write("same.txt", "ours\n");
    world.repo.commit("in the way");
    let refused = world.drydock(&["plan", "apply", &id]).expect(5);
    let hint = text(&refused.json["error"]["hint"]);
    let line = hint.split_once("drydock ").map(|(_, rest)| format!("drydock {rest}")).unwrap();
    assert!(!hint.contains('…') && line.contains(&id), "{hint}");
    paste(&world, &line).expect(0);
    assert_eq!(world.stage(&id), "strategize/queued");
}
