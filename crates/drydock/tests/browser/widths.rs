//! No view is wider than its window, whatever an agent writes.

use std::fs;
use std::path::PathBuf;

use crate::browser::{Browser, Scheme, Size};
use crate::scene::Site;
use crate::world::{Kind, World};

/// Six files, most of them below the fold, and a line of 3,000 characters.
const WRITER: &str = r#"long=$(printf 'x%.0s' $(seq 3000))
for n in 1 2 3 4; do i=0; while [ $i -lt 60 ]; do i=$((i+1)); echo "let line_$i = \"file $n\";"; done > "file_$n.rs"; done
printf 'one\n%s\nthree\n' "$long" > src/main.txt
mkdir -p a/rather/deep/place/with/a/name/that/does/not/end && echo last > a/rather/deep/place/with/a/name/that/does/not/end/last.txt
echo "$long"
"#;

/// How wide the window is; the first is the narrowest that WCAG 2.2 asks for (1.4.10).
const WIDTHS: [u32; 3] = [320, 390, 1440];

/// Page B1: breaks when a view is wider than the window, so that a part of it lies outside.
#[test]
fn no_view_is_wider_than_the_window() {
    let world = World::with_writer(Kind::Sqlite, WRITER);
    world.settings("[defaults]\nagent = \"writer\"\n");
    let site = Site::of(world);
    let id = site.gated();
    site.approve(&id);
    site.wait_stage(&id, "execute/complete");
    let views = [
        "/".to_owned(),
        "/questions".to_owned(),
        "/plans".to_owned(),
        "/locks".to_owned(),
        "/backups".to_owned(),
        "/health".to_owned(),
        "/new".to_owned(),
        "/new?action=fix".to_owned(),
        "/nowhere".to_owned(),
        format!("/plans/{id}"),
        format!("/plans/{id}/log"),
        format!("/plans/{id}/diff"),
        format!("/plans/{id}/diff?layout=split"),
    ];
    let browser = site.browser();
    let mut complaints = Vec::new();
    for view in &views {
        browser.go(&site.address(view));
        browser.until("document.readyState === 'complete' && !document.body.dataset.opens");
        for width in WIDTHS {
            browser.look(Size::Wide(width), Scheme::Light);
            let wide = widest(&browser);
            if wide > u64::from(width) {
                complaints.push(format!("{view} is {wide} pixels wide in a window of {width}"));
            }
            keep(&browser, view, width);
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
    // What a person compares is within the window: the counts, and both sides.
    browser.go(&site.address(&format!("/plans/{id}/diff?layout=split")));
    browser.until("document.querySelector('.code.split .pair')");
    for width in WIDTHS {
        browser.look(Size::Wide(width), Scheme::Light);
        let outside = browser.js(
            "return [...document.querySelectorAll('.file-head .minus, .code.split .pair td:last-child')] \
             .filter((one) => one.getBoundingClientRect().right > innerWidth).length",
            &[],
        );
        assert_eq!(outside, 0, "in a window of {width}");
    }
}

/// Returns how wide the page is, at its top and at its end: what is far from the window is laid out when it comes near.
fn widest(browser: &Browser) -> u64 {
    let width = "document.documentElement.scrollWidth";
    let script =
        format!("scrollTo(0, 0); const top = {width}; scrollTo(0, 1e6); return Math.max(top, {width})");
    browser.js(&script, &[]).as_u64().unwrap()
}

/// Keeps a picture where `DRYDOCK_WIDTHS` names a directory.
fn keep(browser: &Browser, view: &str, width: u32) {
    let Some(directory) = std::env::var_os("DRYDOCK_WIDTHS").map(PathBuf::from) else { return };
    fs::create_dir_all(&directory).unwrap();
    browser.js("scrollTo(0, 0)", &[]);
    let name = view.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    fs::write(directory.join(format!("{name}-{width}.png")), browser.picture()).unwrap();
}
