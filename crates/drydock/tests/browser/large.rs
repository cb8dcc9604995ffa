//! Much of everything.

use crate::scene::Site;
use crate::world::{Kind, World, text};

/// Breaks when a plan is not found because many newer ones are stored.
#[test]
fn a_plan_is_found_by_its_words_however_many_are_newer() {
    let world = World::with_writer(Kind::Sqlite, "true");
    world.action("polish-brass", "[agents]\nexecute = \"writer\"");
    let one = text(&world.ok(&["plan", "use", "polish-brass", "--project", "app"])["plan"]["id"]);
    world.plan(&[]);
    // As many as there would be after years, each a copy of the last.
    world.query(
        "WITH RECURSIVE counted(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM counted WHERE i < 3000) \
         INSERT INTO plans (id, phase, state, project, action, parent, root, revision, created_at, updated_at, body) \
         SELECT 'pln-' || substr('0000000000000000' || i, -16), phase, state, project, action, parent, root, revision, created_at, updated_at, \
         replace(body, id, 'pln-' || substr('0000000000000000' || i, -16)) FROM counted, (SELECT * FROM plans ORDER BY n DESC LIMIT 1)",
    );
    let site = Site::of(world);
    let browser = site.browser();
    browser.go(&site.address("/"));
    browser.settled();
    browser.write("[data-key='/']", "BRASS pol");
    browser.until_text(".card", "Do polish-brass");
    browser.until("document.querySelectorAll('.card').length === 1");
    assert_eq!(browser.js("return document.querySelector('.card').dataset.id", &[]), one.as_str());
    // More than fit on the board are all in the list.
    browser.go(&site.address("/?text=fix"));
    browser.until_text(".found", "newest 200");
    browser.press(".found a");
    browser.until("location.pathname === '/plans' && location.search === '?text=fix'");
    browser.until("document.querySelectorAll('tbody tr').length === 50");
}

/// Breaks when a large change is sent or laid out at once, or a part of it cannot be reached.
#[test]
fn a_change_of_20_000_lines_comes_as_it_is_read() {
    let world = World::with_writer(
        Kind::Sqlite,
        "i=0; while [ $i -lt 20000 ]; do echo \"let line_$i = \\\"text $i\\\";\"; i=$((i+1)); done > big.rs; echo last > zz.txt",
    );
    world.settings("[defaults]\nagent = \"writer\"\n");
    let site = Site::of(world);
    let id = site.gated();
    site.approve(&id);
    site.wait_stage(&id, "execute/complete");
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}/diff")));
    browser.until_text(".code .new", "let line_0");
    let rows = "document.querySelectorAll('.code tr').length";
    let at_first = browser.js(&format!("return {rows}"), &[]).as_u64().unwrap();
    assert!(at_first < 3_000, "{at_first} rows at once");
    browser.press(".diff-files a[href='#file-1']");
    browser.until_text("#file-1", "last");
    // Whoever reads on gets all of it.
    browser.js(
        "window.going = setInterval(() => document.querySelector('[data-fetch]')?.scrollIntoView(), 20)",
        &[],
    );
    browser.until(&format!("{rows} > 20000"));
    browser.until("document.querySelector('#file-0').textContent.includes('line_19999')");
    // What was fetched stays when the page is brought up to date.
    browser.js("clearInterval(window.going); window.first = document.querySelector('#file-0')", &[]);
    site.world.ok(&["plan", "prompt", &id, "well done"]);
    browser.until("document.title.startsWith('(1)')");
    browser.until(&format!("{rows} > 20000 && window.first.isConnected"));
}
