//! The whole story of a plan, told with nothing but the page.

use crate::browser::Browser;
use crate::scene::Site;

/// Breaks when something that a person needs on the way from a task to a commit is missing on the page.
#[test]
fn a_task_becomes_a_commit_with_nothing_but_the_page() {
    let site = Site::new();
    let browser = site.browser();
    browser.go(&site.address("/"));
    browser.until_text(".empty", "No plans yet");
    browser.press(".side .new");
    browser.write("#task", "Say hello in <b>Rust</b>");
    browser.press(".sheet .button.primary");
    browser.until("location.pathname.startsWith('/plans/pln-')");
    let id = browser.address().rsplit('/').next().unwrap().to_owned();
    browser.until_text("h1", "Say hello in");
    assert_eq!(browser.text("h1"), "Say hello in <b>Rust</b>", "a task is text, not markup");
    // It waits for a person, and says so without being asked.
    browser.until_text(".question", "Ready to start execute");
    browser.press(".question summary");
    browser.write(".question textarea", "go ahead");
    browser.press(".question .button.primary");
    browser.until_text(".question", "Ready to land on main");
    browser.until_text(".timeline", "answered approve");
    browser.press(".tabs a[href$='/diff']");
    browser.until_text(".code .new", "fn main() {");
    browser.until_text(".code .new .k", "fn");
    browser.settled();
    browser.press(".switch a[href='?layout=split']");
    browser.until("location.search === '?layout=split'");
    browser.until("[...document.querySelectorAll('.code.split [data-side=new]')].some((one) => one.textContent.includes('TWO'))");
    browser.press(".tabs a[href$='/log']");
    browser.until_text(".log", "12 tests pass");
    browser.press(".side a[href='/questions']");
    // A landing is not taken back, so it is asked twice.
    browser.press(".question .button.primary");
    browser.until_text("dialog[open]", "Land this result?");
    assert_eq!(site.world.stage(&id), "execute/complete");
    browser.press("dialog[open] .button.primary");
    browser.until_text(".empty", "No open questions");
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.until_text(".plan-line .mark", "Applied");
    let landed = browser.js("return document.querySelector('.facts code[title]').title", &[]);
    assert_eq!(site.world.landings(&id), [landed.as_str().unwrap()]);
    site.world.assert_landed_once(&id);
    let decisions = site.world.ok(&["decision", "list"])["decisions"].to_string();
    assert!(decisions.contains("go ahead"), "{decisions}");
}

/// Breaks when what cannot be undone is done without being asked twice, or a refusal is not told where it happened.
#[test]
fn what_cannot_be_undone_is_asked_twice_and_a_refusal_is_told_in_place() {
    let site = Site::new();
    let id = site.gated();
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.press(".question .button.danger");
    browser.until_text(".question .problem", "Press again");
    assert_eq!(site.world.stage(&id), "strategize/complete");
    browser.press("[data-dialog='dialog-cancel']");
    browser.press("#dialog-cancel .button.danger");
    // The browser itself asks for the reason that is missing.
    assert_eq!(site.world.stage(&id), "strategize/complete");
    browser.write("#dialog-cancel textarea", "of no use");
    // Meanwhile somebody else moves the plan. The page behind the dialog shows it, and whoever opened the dialog had not
    // seen it when they did.
    site.world.ok(&["plan", "prompt", &id, "be quick"]);
    browser.until_text(".guidance", "be quick");
    browser.press("#dialog-cancel .button.danger");
    browser.until_text("#dialog-cancel .problem", "revision");
    assert_eq!(site.world.stage(&id), "strategize/complete");
    // Who has looked again may go on, with what is typed.
    browser.press("#dialog-cancel [data-close]");
    browser.press("[data-dialog='dialog-cancel']");
    browser.press("#dialog-cancel .button.danger");
    browser.until_text(".plan-line .mark", "Cancelled");
    assert_eq!(site.world.show(&id)["cancel_reason"], "of no use");
}

/// Breaks when an answer counts for a plan that is not any more what the person saw who gave it.
#[test]
fn an_answer_counts_for_the_plan_that_was_seen() {
    let site = Site::new();
    let id = site.gated();
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}")));
    browser.settled();
    // The page hears nothing more, as on a line that is slow.
    browser.js("window.fetch = ((fetch) => (...all) => all[1]?.method === 'POST' ? fetch(...all) : new Promise(() => {}))(window.fetch)", &[]);
    site.world.ok(&["plan", "prompt", &id, "be quick"]);
    browser.press(".question .button.primary");
    browser.until_text(".question .problem", "revision");
    assert_eq!(site.world.stage(&id), "strategize/complete");
    // The dialog before a landing holds what was seen, too.
    site.approve(&id);
    site.wait_stage(&id, "execute/complete");
    browser.go(&site.address("/questions"));
    browser.settled();
    browser.press(".question .button.primary");
    site.world.ok(&["plan", "prompt", &id, "be careful"]);
    let revision = site.world.show(&id)["revision"].to_string();
    browser.until(&format!("document.querySelector('.answer').dataset.seen === '{revision}'"));
    browser.press("dialog[open] .button.primary");
    browser.until_text("dialog[open] .problem", "revision");
    assert_eq!(site.world.stage(&id), "execute/complete");
}

/// Breaks when the page needs its script to show what there is, where nobody signs in.
#[test]
fn without_its_script_the_page_shows_everything_and_names_the_commands() {
    let site = Site::open_to_all();
    let id = site.gated();
    let browser = Browser::open();
    browser.without_script();
    for (path, said) in [
        ("/".to_owned(), "Do fix"),
        (format!("/plans/{id}"), "drydock decision resolve"),
        ("/questions".to_owned(), "Ready to start execute"),
        ("/new".to_owned(), "drydock run"),
    ] {
        browser.go(&site.address(&path));
        browser.until_text("main", said);
        let buttons = browser.js("return [...document.querySelectorAll('main .button.danger')].filter((one) => one.offsetParent).length", &[]);
        assert_eq!(buttons, 0, "{path} shows buttons that do nothing");
    }
}
