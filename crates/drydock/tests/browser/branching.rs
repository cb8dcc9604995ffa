//! A plan that is cut into pieces.

use serde_json::{Value, json};

use crate::scene::Site;
use crate::world::{Kind, World, text};

/// Runs its task as a command.
const WRITER: &str =
    r#"task=$(printf %s "$DRYDOCK_TASK" | sed -n 's/.*"task":"\([^"]*\)".*/\1/p'); eval "$task""#;

/// Makes a machine whose action `fix` is cut into these pieces.
pub(crate) fn cut(world: &World, pieces: &[Value]) {
    world.agent("hand", WRITER);
    world.write("strategy.json", &json!({ "subplans": pieces, "on_failure": "continue" }).to_string());
    let drafted = world.place("strategy.json");
    world.agent("cutter", &format!("mkdir -p .drydock && cp {drafted} .drydock/strategy.json"));
    world.write(
        "action.toml",
        "name = \"cut\"\ndescription = \"Give each module the new error\"\n[agents]\nstrategize = \"cutter\"\nexecute = \"hand\"\n",
    );
    world.ok(&["action", "create", "--file", &world.place("action.toml")]);
}

/// Breaks when subplans are not shown, stand still while they work, flood the board, or their conflict cannot be read and
/// settled where it is asked.
#[test]
fn pieces_are_seen_at_work_and_their_conflict_is_settled_on_the_page() {
    let world = World::new(Kind::Sqlite);
    // Until it opens, nothing happens to the plan itself.
    let wait = format!("until test -e {}; do sleep 0.05; done", world.place("gate"));
    let long = "a_name_without_an_end_".repeat(12);
    cut(
        &world,
        &[
            json!({ "name": "one", "task": format!("{wait}; echo one > same.txt") }),
            json!({ "name": "two", "task": format!("{wait}; echo two > same.txt") }),
            json!({ "name": "three", "task": format!("echo {long} > three.txt"), "after": ["two"] }),
        ],
    );
    let site = Site::of(world);
    let made = site.world.ok(&["plan", "use", "cut", "--project", "app", "--profile", "auto"]);
    let id = text(&made["plan"]["id"]);
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    // What happens to a piece is an event of the piece, not of this plan.
    let piece = |name: &str, word: &str| {
        format!(
            "[...document.querySelectorAll('.subplan')].some((one) => one.innerText.startsWith('{name}') && one.innerText.includes('{word}'))"
        )
    };
    browser.until(&piece("two", "Processing"));
    browser.until(&piece("three", "after two"));
    assert_eq!(
        browser.js("return document.documentElement.scrollWidth - innerWidth", &[]),
        0,
        "a long word makes it wide"
    );
    site.world.write("gate", "");
    browser.until_text(".question .clash", "same.txt");
    let sides = browser
        .js("return [...document.querySelectorAll('.clash pre')].map((one) => one.innerText.trim())", &[]);
    let mut sides: Vec<_> = sides.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    sides.sort();
    assert_eq!(sides, ["one", "two"]);
    browser.press(".question button[value='take_child']");
    browser.until_text(".plan-line .mark", "Applied");
    browser.until(&piece("three", "Applied"));
    // The board shows the plan, and its pieces within it.
    browser.go(&site.address("/"));
    browser.until_text(".card", "Give each module the new error");
    assert_eq!(browser.js("return document.querySelectorAll('.card').length", &[]), 1);
    // Who searches finds the pieces, too.
    browser.go(&site.address("/?text=three.txt"));
    browser.until_text(".card", "three.txt");
}
