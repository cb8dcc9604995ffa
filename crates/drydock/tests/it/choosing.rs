//! The tree of choices, and what explains a plan: what agents draft and record, shown with what else was considered.

use std::process::Command;

use serde_json::Value;

use crate::world::{Kind, World, list, text};

/// A world with a thinker that leaves this draft after saying these lines, and a writer.
fn thinking(kind: Kind, draft: &str, said: &str) -> World {
    let world = World::new(kind);
    world.write("draft.json", draft);
    world.write("said", said);
    let (draft, said) = (world.place("draft.json"), world.place("said"));
    world.agent(
        "thinker",
        &format!("cat > /dev/null; cat {said}; mkdir -p .drydock; cp {draft} .drydock/strategy.json"),
    );
    world.agent("writer", "cat > /dev/null; echo work > work.txt");
    world.action("fix", "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
    world
}

fn outline(tree: &Value) -> Vec<String> {
    let line = |choice: Value| {
        format!("{} {} = {}", text(&choice["number"]), text(&choice["question"]), text(&choice["chosen"]))
    };
    list(&tree["choices"]).into_iter().map(line).collect()
}

/// Runs the binary as a person does, and returns what it prints.
fn printed(world: &World, args: &[&str]) -> String {
    let json = world.command(args);
    let mut command = Command::new(json.get_program());
    command.args(args).current_dir(json.get_current_dir().unwrap()).env_clear();
    command.envs(json.get_envs().filter_map(|(name, value)| Some((name, value?))));
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

const DRAFT: &str = r#"{"choices":[
    {"question":"Which door?","chosen":"left","alternatives":["right","back"],"rationale":"it is nearer","confidence":0.8,"id":"door"},
    {"question":"Which hinge?","chosen":"steel","under":"door"},
    {"question":"Which colour?","chosen":"red","under":"Whose house?"}]}"#;

on_both! {
    /// Breaks when a choice is lost, stands twice, or not where it belongs; or when its reasons are not shown.
    fn drafted_and_recorded_choices_are_one_tree(kind: Kind) {
        let said = r#"{"drydock":"choice","question":"Whose house?","chosen":"ours"}
{"drydock":"choice","question":"Which hinge?","chosen":"brass","under":"nothing"}
{"drydock":"choice","question":"Whose house?","chosen":"mine"}
"#;
        let world = thinking(kind, DRAFT, said);
        let id = world.plan_after("strategize");
        let tree = world.ok(&["plan", "tree", &id])["tree"].clone();
        let seen = ["1 Whose house? = mine", "1.1 Which colour? = red", "2 Which door? = left", "2.1 Which hinge? = steel"];
        assert_eq!(outline(&tree), seen);
        let door = &list(&tree["choices"])[2];
        assert_eq!((&door["alternatives"][1], &door["confidence"]), (&"back".into(), &0.8.into()));
        // What could not be placed was said so, and nothing of it was taken.
        assert_eq!(world.count(&id, "agent.garbled"), 1);
        let garbled = world.events(&id).into_iter().find(|event| event["kind"] == "agent.garbled").unwrap();
        assert!(text(&garbled["data"]["reason"]).contains("\"nothing\" is neither"), "{garbled}");
        let shown = printed(&world, &["plan", "tree", &id]);
        for part in ["  2. Which door?\n", "chosen: left (80 % sure)", "not right, back", "reason: it is nearer", "    2.1. Which hinge?"] {
            assert!(shown.contains(part), "{part}: {shown}");
        }
    }
}

on_both! {
    /// Breaks when an explanation leaves out a choice, guidance, an answer, a refusal or a reversion, or invents one.
    fn an_explanation_says_all_that_made_the_plan_what_it_is(kind: Kind) {
        let world = thinking(kind, DRAFT.replace(",\"under\":\"Whose house?\"", "").as_str(), "");
        world.agent("writer", "cat > /dev/null; if echo \"$DRYDOCK_TASK\" | grep -q 'make it better'; then echo better > work.txt; else echo work > work.txt; fi; \
            echo '{\"drydock\":\"choice\",\"question\":\"Which screw?\",\"chosen\":\"long\",\"under\":\"door\"}'");
        world.agent("critic", "if grep -q better work.txt; then echo '{\"drydock\":\"verdict\",\"verdict\":\"ack\"}'; else echo '{\"drydock\":\"verdict\",\"verdict\":\"refuse\",\"reason\":\"make it better\"}'; fi");
        let reviewers = "reviewers = [{ agent = \"critic\", critical = true }]";
        world.action("reviewed", &format!("definition_of_done = \"it opens\"\n{reviewers}\n[agents]\nstrategize = \"thinker\"\nexecute = \"writer\""));
        let id = text(&world.ok(&["plan", "use", "reviewed", "--project", "app"])["plan"]["id"]);
        world.ok(&["plan", "prompt", &id, "mind the step"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        world.ok(&["plan", "revert", &id, "--reason", "too narrow"]);
        world.ok(&["plan", "strategize", &id]);
        let told = world.ok(&["plan", "explain", &id])["explanation"].clone();
        assert_eq!((list(&told["choices"]).len(), list(&told["later"]).len()), (3, 0), "{told:#}");
        world.ok(&["plan", "execute", &id]);
        let told = world.ok(&["plan", "explain", &id])["explanation"].clone();
        assert_eq!((&told["definition_of_done"], &told["guidance"][0]["text"]), (&"it opens".into(), &"mind the step".into()));
        assert_eq!((&told["reversions"][0]["text"], list(&told["reversions"]).len()), (&"too narrow".into(), 1));
        let refused = list(&told["refused"]);
        assert_eq!((refused.len(), &refused[0]["by"], &refused[0]["reason"]), (2, &"reviewer critic".into(), &"make it better".into()), "{told:#}");
        // What was chosen on the way of the strategy before belongs to that strategy.
        let later: Vec<_> = list(&told["later"]).iter().map(|choice| text(&choice["question"])).collect();
        assert_eq!(later, ["Which screw?"]);
        assert!(text(&told["strategy"]).contains("thinker") && list(&told["answers"]).is_empty(), "{told:#}");
        let words = printed(&world, &["plan", "explain", &id]);
        for part in ["Chosen: left, 80 % sure; not chosen: right, back. Because it is nearer", "“mind the step”", "“too narrow”", "reviewer critic, proposal 1: make it better", "Which screw? (under “door”) Chosen: long"] {
            assert!(words.contains(part), "{part}: {words}");
        }
        for asked in ["1.1", "Which hinge?"] {
            let one = world.ok(&["plan", "explain", &id, asked])["explanation"].clone();
            assert_eq!((&one["about"], outline(&one)), (&"1.1".into(), vec!["1 Which door? = left".to_owned(), "1.1 Which hinge? = steel".to_owned()]));
        }
        assert_eq!(world.drydock(&["plan", "explain", &id, "7"]).expect(3).error_code(), "not_found");
    }
}

/// Breaks when a draft that is wrong does not say where, or leaves the plan where it cannot go on.
#[test]
fn a_draft_that_is_wrong_is_told_where() {
    let world = thinking(
        Kind::Sqlite,
        r#"{"choices":[{"question":"q","chosen":"a"},{"question":"r","chosen":7}]}"#,
        "",
    );
    let id = text(&world.ok(&["plan", "use", "fix", "--project", "app"])["plan"]["id"]);
    let failed = world.drydock(&["plan", "strategize", &id]).expect(1);
    let told = text(&failed.json["error"]["text"]);
    assert!(
        told.contains("`choices[1].chosen`") && told.contains("integer `7`, expected a string"),
        "{told}"
    );
    world.write("draft.json", DRAFT.replace(",\"under\":\"Whose house?\"", "").as_str());
    world.ok(&["plan", "retry", &id]);
    world.ok(&["plan", "strategize", &id]);
    let schema = world.ok(&["schema", "strategy"])["schema"].clone();
    assert!(schema["properties"]["choices"].is_object(), "{schema:#}");
}

on_both! {
    /// Breaks when a plan with a long history is explained by its beginning alone.
    fn what_comes_late_in_a_long_history_is_explained_too(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan(&[]);
        let (numbers, from) = match kind {
            Kind::Sqlite => ("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50100) ", "n"),
            Kind::Postgres => ("", "generate_series(1, 50100)"),
        };
        let columns = "INSERT INTO events (at, kind, plan, details)";
        let told = format!("SELECT 1, 'agent.progress', '{id}', '{{}}' FROM {from}");
        world.query(&match kind {
            Kind::Sqlite => format!("{numbers}{columns} {told}"),
            Kind::Postgres => format!("{columns} {told}"),
        });
        world.ok(&["plan", "prompt", &id, "mind the door"]);
        let explained = world.ok(&["plan", "explain", &id]);
        assert!(explained.to_string().contains("mind the door"), "{explained:#}");
    }
}
