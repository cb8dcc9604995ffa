//! What breaks the line to the server breaks nothing on the page.

use crate::browser::Browser;
use crate::proxy::Proxy;
use crate::scene::Site;

/// Breaks when a server that is started anew needs a reload, or costs a person what they typed.
#[test]
fn a_page_survives_a_restart_of_its_server_with_what_is_typed() {
    let mut site = Site::new();
    let id = site.gated();
    let browser = Browser::open();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.settled();
    browser.js("window.stays = true", &[]);
    browser.press("[data-dialog='dialog-prompt']");
    browser.write("#dialog-prompt textarea", "half a sent");
    site.stop();
    browser.until_text("#line", "reconnecting");
    // What is sent meanwhile is told to have failed, and kept.
    browser.press("#dialog-prompt .button:not([data-close])");
    browser.until_text("#dialog-prompt .problem", "could not be reached");
    site.world.ok(&["plan", "prompt", &id, "said while nobody served"]);
    // It has looked in vain, for events and for itself, before the server is back.
    site.hang_up(6);
    site.start();
    browser.until_text("#line", "live");
    browser.until_text(".guidance", "said while nobody served");
    browser.write("#dialog-prompt textarea", "ence");
    browser.press("#dialog-prompt .button:not([data-close])");
    browser.until_text(".plan-main", "Guidance: half a sentence");
    assert_eq!(browser.js("return window.stays", &[]), true, "it was loaded anew");
}

/// Breaks when what happens while the network is away is never shown, or only after a reload.
#[test]
fn what_happens_while_the_network_is_cut_is_shown_when_it_is_back() {
    let site = Site::new();
    let id = site.gated();
    let line = Proxy::to(site.listens());
    let (plan, board) = (Browser::open(), Browser::open());
    plan.go(&line.address(&format!("/plans/{id}")));
    board.go(&line.address("/"));
    for browser in [&plan, &board] {
        browser.settled();
        browser.js("window.stays = true", &[]);
    }
    line.cut();
    plan.until_text("#line", "reconnecting");
    site.approve(&id);
    site.wait_stage(&id, "execute/complete");
    assert_eq!(plan.text(".step.here"), "Strategize", "it cannot know yet");
    line.mend();
    plan.until_text(".step.here", "Execute");
    plan.until_text(".question", "May apply start?");
    board.until_text("[data-id='column-execute']", "Do fix");
    for browser in [&plan, &board] {
        browser.until_text("#line", "live");
        assert_eq!(browser.js("return window.stays", &[]), true, "it was loaded anew");
    }
}
