//! What breaks the line to the server breaks nothing on the page.

use crate::browser::Browser;
use crate::proxy::Proxy;
use crate::scene::Site;
use crate::world::list;

/// Breaks when a server that is started anew needs a reload, or costs a person what they typed.
#[test]
fn a_page_survives_a_restart_of_its_server_with_what_is_typed() {
    let mut site = Site::new();
    let id = site.gated();
    let browser = site.browser();
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

/// Breaks when a plan is made twice because nobody could read the answer, or its task is lost with the answer.
#[test]
fn a_plan_whose_answer_is_lost_is_made_once_and_its_task_is_kept() {
    let site = Site::new();
    let browser = site.browser();
    browser.go(&site.address("/new"));
    browser.settled();
    browser.write("#task", "Once");
    // Each request arrives and is carried out; what comes back is one of these.
    browser.js(
        "const cut = () => new ReadableStream({ start: (flow) => flow.error(new TypeError('cut')) });
         const held = JSON.stringify({ code: 'request_under_way', detail: 'still at it' });
         const answers = [[cut(), 201], ['{}', 201], ['{\"plan\":', 201], ['<h1>Bad gateway</h1>', 502], [held, 409]];
         window.fetch = ((fetch) => async (...all) => {
           const answer = await fetch(...all);
           if (all[1]?.method !== 'POST' || !answers.length) return answer;
           const [body, status] = answers.shift();
           return new Response(body, { status });
         })(window.fetch)",
        &[],
    );
    for said in ["not be reached", "not be reached", "not be reached", "answered 502", "still at it"] {
        browser.press(".sheet .button.primary");
        browser.until_text(".sheet .problem", said);
        browser.until("!document.querySelector('[aria-busy]')");
        assert_eq!(browser.js("return document.querySelector('#task').value", &[]), "Once");
    }
    browser.press(".sheet .button.primary");
    browser.until("location.pathname.startsWith('/plans/pln-')");
    assert_eq!(list(&site.world.ok(&["plan", "list"])["plans"]).len(), 1);
}

/// Breaks when what happens while the network is away is never shown, or only after a reload.
#[test]
fn what_happens_while_the_network_is_cut_is_shown_when_it_is_back() {
    let site = Site::new();
    let id = site.gated();
    let line = Proxy::to(site.listens());
    let (plan, board) = (Browser::open(), Browser::open());
    for browser in [&plan, &board] {
        site.admit(browser, &line.address(""));
    }
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
    plan.until_text(".question", "Ready to land on main");
    board.until_text("[data-id='column-execute']", "Do fix");
    for browser in [&plan, &board] {
        browser.until_text("#line", "live");
        assert_eq!(browser.js("return window.stays", &[]), true, "it was loaded anew");
    }
}
