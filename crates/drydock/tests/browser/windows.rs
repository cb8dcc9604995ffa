//! Two people at two windows.

use drydock_testkit::wait;

use crate::scene::Site;
use crate::world::LIMIT;

/// How many times it is tried; a busy machine may be slow once.
const TRIES: usize = 5;

/// Breaks when a second person sees later than within a second what the first one did.
#[test]
fn what_one_person_does_another_sees_within_a_second() {
    let site = Site::new();
    let id = site.gated();
    let (one, other) = (site.browser(), site.browser());
    let address = site.address(&format!("/plans/{id}"));
    one.go(&address);
    other.go(&address);
    for browser in [&one, &other] {
        browser.settled();
    }
    other.js(
        "window.seen = {}; new MutationObserver(() => { for (const p of document.querySelectorAll('.guidance')) window.seen[p.innerText] ??= Date.now(); }) \
         .observe(document.body, { subtree: true, childList: true, characterData: true })",
        &[],
    );
    let mut took = Vec::new();
    for attempt in 0..TRIES {
        let words = format!("words {attempt}");
        one.press("[data-dialog='dialog-prompt']");
        one.write("#dialog-prompt textarea", &words);
        let began = one.js("const form = document.querySelector('#dialog-prompt form'); form.requestSubmit(); return Date.now()", &[]);
        let key = format!("return window.seen['Guidance: {words}'] ?? 0");
        let seen = wait::until("the other window to see it", LIMIT, || {
            other.js(&key, &[]).as_i64().filter(|at| *at > 0)
        });
        took.push(seen - began.as_i64().unwrap());
        one.until("!document.querySelector('dialog[open]')");
        if took.iter().any(|ms| *ms < 1_000) {
            break;
        }
    }
    assert!(took.iter().any(|ms| *ms < 1_000), "{took:?} ms");
    // The board moves too: the plan goes to its next column.
    other.go(&site.address("/"));
    other.until_text("[data-id='column-strategize']", "Do fix");
    one.press(".question .button.primary");
    other.until_text("[data-id='column-execute']", "Do fix");
    other.until(&format!("!document.querySelector('[data-id=\"column-strategize\"] [data-id=\"{id}\"]')"));
    // Nobody is asked anything about this one, and it is seen all the same.
    let quiet = site.world.plan(&["--profile", "auto"]);
    other.until(&format!("document.querySelector('[data-id=\"column-done\"] [data-id=\"{quiet}\"]')"));
}
