//! Drydock's tools in the hands of an agent, through the binary: what it records is in the plan's tree, what it asks waits
//! for a person, and nobody else is heard.

use drydock_testkit::program::acp_agent;

use crate::world::{Kind, World, alive, list, text};

/// Makes a machine whose writer calls a tool, or does whatever else stands in the file.
fn world(kind: Kind, phases: &[&str], behaviour: &str) -> World {
    let world = World::new(kind);
    let script = format!("exec {} $(cat {})", acp_agent(), world.place("behaviour"));
    world.write("behaviour", behaviour);
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
    ));
    let agents: Vec<String> = phases.iter().map(|phase| format!("{phase} = \"writer\"")).collect();
    world.action("fix", &format!("[agents]\n{}", agents.join("\n")));
    world
}

on_both! {
    /// Breaks when the binary does not serve the tools inside the sandbox, or a recorded choice does not reach the plan.
    fn a_choice_that_is_recorded_by_a_tool_is_in_the_tree(kind: Kind) {
        let call = r#"tool record_choice {"question":"Which_door","chosen":"left"}"#;
        let world = world(kind, &["strategize", "execute"], call);
        let id = world.plan_after("strategize");
        let tree = world.ok(&["plan", "tree", &id])["tree"].clone();
        let choices = list(&tree["choices"]);
        assert_eq!((choices.len(), &choices[0]["question"], &choices[0]["chosen"]), (1, &"Which_door".into(), &"left".into()));
        world.write("behaviour", "write");
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        let told = world.repo.git(&["show", "main:prompt.txt"]);
        assert!(told.contains("Which_door left"), "{told}");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a question asked by a tool is no decision, when something waits for it, or the work before it is lost.
    fn a_question_that_is_asked_by_a_tool_waits_for_a_person(kind: Kind) {
        let options = r#"[{"id":"oak","label":"Oak"},{"id":"elm","label":"Elm"}]"#;
        let call = format!(r#"tool ask_human {{"question":"Which_wood","options":{options}}}"#);
        let world = world(kind, &["execute"], &call);
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(world.stage(&id), "execute/waiting");
        assert!(alive(&id).is_empty(), "nothing waits but the plan");
        let decision = list(&world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"])[0].clone();
        assert!(text(&decision["question"]).contains("Which_wood"), "{decision}");
        world.write("behaviour", "write");
        world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "elm"]);
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        let told = world.repo.git(&["show", "main:prompt.txt"]);
        assert!(told.contains("Which_wood") && told.contains("Elm"), "{told}");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what an agent says that it used counts in a line and not where its tools lead to.
    fn a_use_that_is_told_where_the_tools_lead_to_counts(kind: Kind) {
        let world = world(kind, &["execute"], r#"socket {"drydock":"usage","tokens":70,"cost_usd":"0.02","tool_calls":2}"#);
        let id = world.plan_after("execute");
        let spent = world.show(&id)["spent"].clone();
        assert_eq!((&spent["tokens"], &spent["cost_usd"], &spent["tool_calls"]), (&70.into(), &"0.02".into(), &2.into()));
    }
}

/// Breaks when the server goes on without a run to speak for, or writes what is no answer to its standard output.
#[test]
fn a_server_outside_a_run_is_refused() {
    let world = World::new(Kind::Sqlite);
    let refused = world.drydock(&["mcp"]).expect(2);
    assert!(text(&refused.json["error"]["text"]).contains("inside a run"), "{:#}", refused.json);
}
