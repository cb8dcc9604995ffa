//! What holds for a piece: its parent's rules and profile, and its own action's beside them. Which of them counts does not
//! depend on the database.

use serde_json::{Value, json};

use crate::fanning::{decision, draft, piece, subplan, world};
use crate::world::{Kind, World, text};

/// Makes a machine whose agent `many` writes 50 lines, and an action that lets it, with these further lines.
fn with_action(name: &str, rest: &str) -> World {
    let world = world(Kind::Sqlite, &json!({}));
    world.agent("many", "seq 50 > many.txt");
    world.action(name, &format!("[agents]\nexecute = \"many\"\n{rest}"));
    world
}

/// Runs a plan with this piece to the end of Execute, and returns its id.
fn executed(world: &World, piece: &Value, code: i32) -> String {
    draft(world, &json!({ "subplans": [piece] }));
    let id = world.plan(&["--profile", "auto"]);
    world.ok(&["plan", "strategize", &id]);
    world.drydock(&["plan", "execute", &id]).expect(code);
    id
}

/// Breaks when a piece takes its parent's profile for its own action's: its agent leaves the sandbox, its budget is gone.
#[test]
fn a_piece_keeps_what_its_own_profile_is_strict_about() {
    let world = world(Kind::Sqlite, &json!({}));
    let outside = world.repo.path().join("beside.txt");
    let script = format!("echo in > in.txt; echo x > {} || true", outside.display());
    world.settings(&format!(
        "[profiles.tight]\nextends = \"auto\"\nsandbox = \"required\"\nbudget = {{ tool_calls = 5 }}\n[agents.free]\n\
         protocol = \"command\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\nsandbox = \"off\"\n"
    ));
    world.action("secure", "profile = \"tight\"\n[agents]\nexecute = \"free\"");
    let id = executed(&world, &json!({ "name": "s", "action": "secure" }), 0);
    let child = text(&subplan(&world, &id, "s")["plan"]);
    let started = world.events(&child).into_iter().find(|event| event["kind"] == "agent.started").unwrap();
    assert!(text(&started["data"]["sandbox"]).starts_with("landlock "), "{started}");
    assert!(!outside.exists(), "the agent wrote outside its worktree");
    assert_eq!(world.show(&child)["budget"]["tool_calls"], 5);
}

/// Breaks when a piece joins that its own action would not let land.
#[test]
fn a_piece_joins_only_where_its_own_rules_let_it_land() {
    let world = with_action(
        "small",
        "[[invariants]]\nname = \"few\"\ncel = \"diff.lines_changed < 5\"\nat = [\"apply\"]",
    );
    let id = executed(&world, &json!({ "name": "m", "action": "small" }), 6);
    assert_eq!(subplan(&world, &id, "m")["fate"], "failed");
    let asked = text(&decision(&world, &id)["question"]);
    assert!(asked.contains("it must not be joined: invariant few (action:small) does not hold"), "{asked}");
    // What keeps the rule joins, and so does what its action's rules do not concern.
    world.agent("many", "seq 3 > many.txt");
    let id = executed(&world, &json!({ "name": "m", "action": "small" }), 0);
    assert_eq!(subplan(&world, &id, "m")["fate"], "joined");
    let id = executed(&world, &piece("m", "seq 50 > many.txt", &[]), 0);
    assert_eq!(subplan(&world, &id, "m")["fate"], "joined");
}

/// Breaks when a rule of the parent's project takes the place of the same-named one of the project where a piece lands.
#[test]
fn a_rule_of_the_other_project_holds_beside_the_parents_of_the_same_name() {
    let lib = drydock_testkit::repo::Repo::new();
    let world = world(Kind::Sqlite, &json!({}));
    world.ok(&["project", "add", "lib", "--repo", lib.path().to_str().unwrap()]);
    for (scope, most) in [("project:app", 1_000), ("project:lib", 5)] {
        let cel = format!("diff.lines_changed < {most}");
        world.ok(&["invariant", "add", "size", "--cel", &cel, "--at", "apply", "--scope", scope]);
    }
    let there = json!({ "name": "there", "task": "seq 50 > there.txt", "project": "lib" });
    draft(&world, &json!({ "subplans": [piece("here", "echo here > here.txt", &[]), there] }));
    let id = world.plan(&["--profile", "auto"]);
    world.ok(&["plan", "strategize", &id]);
    world.ok(&["plan", "execute", &id]);
    world.drydock(&["plan", "apply", &id]).expect(6);
    let asked = text(&decision(&world, &id)["question"]);
    assert!(asked.contains("invariant size (project:lib) does not hold"), "{asked}");
    assert_eq!(lib.git(&["ls-tree", "--name-only", "main", "--", "there.txt"]), "");
}

/// Breaks when a piece is spared a validation of its own action because the project has one of that name.
#[test]
fn a_piece_passes_its_own_actions_validations_whatever_they_are_called() {
    let world = with_action("judged", "[[validations]]\nname = \"true\"\ncommand = \"false\"");
    let repo = world.repo.path().to_str().unwrap().to_owned();
    world.ok(&["project", "add", "strict", "--repo", &repo, "--validation", "true"]);
    draft(&world, &json!({ "subplans": [{ "name": "j", "action": "judged" }] }));
    let made = world.ok(&["plan", "use", "fix", "--project", "strict", "--profile", "auto"]);
    let id = text(&made["plan"]["id"]);
    world.ok(&["plan", "strategize", &id]);
    world.drydock(&["plan", "execute", &id]);
    assert_eq!(subplan(&world, &id, "j")["state"], "errored");
    let child = text(&subplan(&world, &id, "j")["plan"]);
    assert_eq!(world.show(&child)["error"]["class"], "validation_failed");
}
