//! Coming in: with the link, and without.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::scene::{Site, WRITER};
use crate::world::{Kind, World, list, text};

/// Breaks when the link that `serve` prints does not lead to a page that works, leaves its secret in the address, or a
/// person without one is not told how to get it.
#[test]
fn one_link_signs_a_browser_in_and_who_has_none_is_told_how_to_get_one() {
    let world = World::with_writer(Kind::Sqlite, WRITER);
    world.settings("[defaults]\nagent = \"writer\"\n");
    let site = Site::locked(world);
    let id = site.gated();
    let (stranger, guest) = (Browser::open(), Browser::open());
    stranger.go(&site.address(&format!("/plans/{id}")));
    stranger.until_text("h1", "Sign in");
    stranger.until_text("main", "drydock token link");
    assert!(!stranger.text("body").contains("Do fix"));
    let link = site.link();
    guest.go(&link);
    guest.until_text("[data-id='column-strategize']", "Do fix");
    assert_eq!(guest.address(), site.address("/"));
    assert_eq!(guest.js("return document.cookie", &[]), "", "no script can read who somebody is");
    guest.go(&site.address(&format!("/plans/{id}")));
    guest.settled();
    guest.press(".question .button.primary");
    guest.until_text(".question", "May apply start?");
    // The same link in another browser is of no use.
    stranger.go(&link);
    stranger.until_text("main", "was used before");
    // Taken back, the sign-in ends where it is, and what is being typed is kept until it is not wanted.
    guest.press("[data-dialog='dialog-prompt']");
    guest.write("#dialog-prompt textarea", "half a sent");
    let mut tokens = list(&site.world.ok(&["token", "list"])["tokens"]);
    tokens.retain(|token: &Value| token["kind"] == "session");
    site.world.ok(&["token", "revoke", &text(&tokens[0]["id"])]);
    guest.until_text("#line", "signed out");
    guest.write("#dialog-prompt textarea", "ence");
    let typed = "const field = document.querySelector('#dialog-prompt textarea'); const typed = field.value; field.value = ''; return typed";
    assert_eq!(guest.js(typed, &[]), "half a sentence");
    guest.until_text("h1", "Sign in");
}

/// Breaks when somebody is shown a button that their role may not press.
#[test]
fn a_role_is_offered_what_it_may_do() {
    let site = Site::locked(World::with_writer(Kind::Sqlite, WRITER));
    let id = site.gated();
    let browser = Browser::open();
    let shown = "return [...document.querySelectorAll('main .button, .side .new')].filter((one) => one.offsetParent).map((one) => one.innerText.trim())";
    for (role, offered) in [
        ("reader", json!([])),
        ("operator", json!(["New plan", "Guide…", "Adopt draft…", "Cancel…"])),
        (
            "human",
            json!([
                "New plan",
                "Guide…",
                "Adopt draft…",
                "Cancel…",
                "Start execute",
                "Cancel the plan; its work is kept"
            ]),
        ),
    ] {
        let made = site.world.ok(&["token", "create", role, "--role", role]);
        browser.bears(&text(&made["secret"]));
        browser.go(&site.address(&format!("/plans/{id}")));
        browser.settled();
        assert_eq!(browser.js(shown, &[]), offered, "{role}");
    }
}
