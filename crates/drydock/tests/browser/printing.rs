//! The log of a run in a browser.

use crate::scene::Site;
use crate::world::{Kind, World};

/// N9, page B2. Breaks when the page shows what is printed only when it is loaded again, repeats it, or stops.
#[test]
fn the_log_shows_each_line_as_it_is_printed() {
    let world = World::new(Kind::Sqlite);
    let (go, end) = (world.place("go"), world.place("end"));
    world.agent(
        "writer",
        &format!(
            "seq -f 'first %g' 1 300; until [ -e {go} ]; do sleep 0.05; done; echo second >&2; \
             until [ -e {end} ]; do sleep 0.05; done; seq -f 'third %g' 1 300; echo x > x"
        ),
    );
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let site = Site::of(world);
    let id = site.gated();
    site.approve(&id);
    let browser = site.browser();
    browser.go(&site.address(&format!("/plans/{id}/log")));
    browser.until_text(".log", "first 300\n");
    // What is typed into the page by its server stays when more comes.
    browser.js("document.querySelector('.log').dataset.mark = 'same'", &[]);
    site.world.write("go", "");
    browser.until_text(".log [data-stream=stderr]", "second");
    // The stream is cut, as it is for a page that nobody sees, and begins again behind the last line.
    browser.js("Object.defineProperty(document, 'hidden', { value: true, configurable: true }); document.dispatchEvent(new Event('visibilitychange'))", &[]);
    site.world.write("end", "");
    browser.js("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))", &[]);
    browser.until_text(".log", "third 300\n");
    site.wait_stage(&id, "execute/complete");
    browser.until("document.querySelector('.log').dataset.over !== undefined");
    let lines = browser.js(
        "return [document.querySelector('.log').dataset.mark, ...document.querySelector('.log').textContent.match(/(first|third) \\d+|second/g)]",
        &[],
    );
    let lines: Vec<_> =
        lines.as_array().unwrap().iter().map(|line| line.as_str().unwrap().to_owned()).collect();
    let expected = (1..=300).map(|number| format!("first {number}")).chain(["second".to_owned()]);
    let expected = expected.chain((1..=300).map(|number| format!("third {number}")));
    assert_eq!(lines, std::iter::once("same".to_owned()).chain(expected).collect::<Vec<_>>());
}
