//! codex without a screen, as its built-in preset starts it.

use drydock_testkit::model::Script;
use serde_json::json;

use crate::desk::{Desk, KEY, LAST};

/// Makes a machine whose user has a key for codex and a provider that wants the key of OpenAI's own.
pub(crate) fn desk(script: Script) -> Desk {
    let mut desk = Desk::new("codex", script);
    desk.variable("CODEX_API_KEY", KEY);
    // What its user would have written to use a provider of their own; the preset brings it along.
    desk.world.write(
        ".codex/config.toml",
        &format!(
            "model = \"scripted\"\nmodel_provider = \"loopback\"\n[model_providers.loopback]\nname = \"loopback\"\n\
             base_url = \"{}/v1\"\nwire_api = \"responses\"\nrequires_openai_auth = true\n\
             request_max_retries = 0\nstream_max_retries = 0\n",
            desk.model.link()
        ),
    );
    desk
}

fn greeting() -> Script {
    let call = json!({ "cmd": "echo hello > greeting.txt" });
    Script::saying(LAST).calling("exec_command", call)
}

/// Finding 10 of agents: breaks when codex needs another variable than `CODEX_API_KEY`, which preset and docs name: then the key
/// of `OPENAI_API_KEY` alone is sent as well. That it sends the other is seen in `assert_works`.
#[test]
fn codex_does_not_send_the_key_of_another_variable() {
    let mut without = desk(greeting());
    without.unset("CODEX_API_KEY");
    let id = without.plan();
    without.run(&["plan", "execute", &id]);
    let asked = without.model.requests();
    assert!(!asked.is_empty() && asked.iter().all(|request| !request.headers.contains_key("authorization")));
}

/// Breaks when a real headless agent cannot work in its worktree with the key and the settings of its user.
#[test]
fn codex_works_as_it_is_built_in_and_its_work_lands() {
    let desk = desk(greeting());
    let id = desk.plan();
    desk.assert_works(&id);
}

/// Breaks when a check of a real agent asks its model.
#[test]
fn codex_is_checked_without_asking_the_model() {
    desk(greeting()).assert_checked("codex", "it answered: codex");
}
