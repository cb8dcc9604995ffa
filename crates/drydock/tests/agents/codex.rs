//! codex without a screen, as its built-in preset starts it.

use drydock_testkit::model::Script;
use serde_json::json;

use crate::desk::{Desk, LAST};
use crate::world::text;

fn desk() -> Desk {
    let call = json!({ "cmd": "echo hello > greeting.txt" });
    let desk = Desk::new("codex", Script::saying(LAST).calling("exec_command", call));
    // What its user would have written to use a provider of their own; the preset brings it along.
    desk.world.write(
        ".codex/config.toml",
        &format!(
            "model = \"scripted\"\nmodel_provider = \"loopback\"\n[model_providers.loopback]\nname = \"loopback\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\nenv_key = \"OPENAI_API_KEY\"\n",
            desk.model.link()
        ),
    );
    desk
}

/// Breaks when a real headless agent cannot work in its worktree with the key and the settings of its user.
#[test]
fn codex_works_as_it_is_built_in_and_its_work_lands() {
    let desk = desk();
    let id = desk.plan();
    desk.run(&["plan", "execute", &id]).expect(0);
    desk.run(&["plan", "apply", &id]).expect(0);
    desk.world.assert_landed_once(&id);
    let landed = desk.world.repo.git(&["show", "--name-only", "--format=", "main"]);
    assert_eq!(landed.lines().collect::<Vec<_>>(), ["greeting.txt"]);
    assert!(format!("{:?}", desk.world.events(&id)).contains(LAST));
    desk.assert_asked(&id);
    desk.world.assert_sound(&id);
}

/// Breaks when a check of a real agent asks its model.
#[test]
fn codex_is_checked_without_asking_the_model() {
    let desk = desk();
    let check = desk.run(&["agent", "check", "codex"]).expect(0).json["data"]["check"].clone();
    assert!(text(&check["text"]).starts_with("it answered: codex"), "{check}");
    assert!(desk.model.requests().is_empty());
}
