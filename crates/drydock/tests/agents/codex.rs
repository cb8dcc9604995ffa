//! codex without a screen, as its built-in preset starts it.

use drydock_testkit::model::Script;
use serde_json::json;

use crate::desk::{Desk, LAST};

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
    desk.assert_works(&id);
}

/// Breaks when a check of a real agent asks its model.
#[test]
fn codex_is_checked_without_asking_the_model() {
    desk().assert_checked("codex", "it answered: codex");
}
