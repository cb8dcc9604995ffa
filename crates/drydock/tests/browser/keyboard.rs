//! A person without a mouse.

use crate::browser::Browser;
use crate::scene::Site;

const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// Goes from field to field until the focus is on what fits.
#[track_caller]
fn tab_to(browser: &Browser, selector: &str) {
    for _ in 0..80 {
        if browser.js("return !!document.activeElement?.matches(arguments[0])", &[selector]) == true {
            return;
        }
        browser.keys(TAB);
    }
    panic!("the focus never came to {selector}");
}

/// Breaks when something on the way can only be done with a mouse, or a key does what it does not say.
#[test]
fn the_whole_way_can_be_gone_with_keys_alone() {
    let site = Site::new();
    let browser = site.browser();
    browser.go(&site.address("/"));
    browser.settled();
    browser.keys("?");
    browser.until_text("dialog[open]", "new plan");
    browser.keys(ESCAPE);
    browser.until("!document.querySelector('dialog[open]')");
    browser.keys("n");
    browser.until("document.activeElement?.id === 'task'");
    // In a field, keys are letters.
    browser.keys("Jump ?");
    tab_to(&browser, ".sheet .button.primary");
    browser.keys(ENTER);
    browser.until_text(".question", "Ready to start execute");
    assert_eq!(browser.text("h1"), "Jump ?");
    tab_to(&browser, ".question .button.primary");
    browser.keys(ENTER);
    browser.until_text(".question", "Ready to land on main");
    browser.keys("gq");
    browser.until("location.pathname === '/questions'");
    browser.settled();
    browser.keys("j");
    browser.until("document.activeElement?.closest('.question')");
    browser.keys(ENTER);
    browser.until("location.pathname.startsWith('/plans/')");
    browser.settled();
    browser.keys("d");
    browser.until("location.pathname.endsWith('/diff')");
    browser.until_text(".code .new", "fn main");
    browser.settled();
    browser.keys("gb");
    browser.until("location.pathname === '/'");
    browser.settled();
    browser.keys("/");
    browser.keys("jump");
    browser.until_text(".card", "Jump ?");
    browser.until("location.search === '?text=jump'");
    browser.keys(ESCAPE);
    browser.keys("j");
    browser.until("document.activeElement?.matches('.card-link')");
}
