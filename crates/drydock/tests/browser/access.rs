//! Everybody can use it: axe finds nothing on any view, in light and dark, on a desk and on a phone. The same tour makes
//! the pictures of the documentation when `DRYDOCK_SCREENS` names a directory.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::branching::cut;
use crate::browser::{Browser, Scheme, Size};
use crate::scene::{Site, WRITER};
use crate::world::{Kind, World, text};

/// Where the checker is, and where pictures go: `cargo xtask test` says both.
const AXE: &str = "DRYDOCK_TEST_AXE";
const SCREENS: &str = "DRYDOCK_SCREENS";

/// Pieces of a task, of which two are at odds, one fails, and one waits.
fn pieces() -> [serde_json::Value; 5] {
    [
        json!({ "name": "errors", "task": "echo 'pub enum Error { Parse, Io }' > errors.rs" }),
        json!({ "name": "parser", "task": "echo 'use parser::Error;' > src/main.txt", "after": ["errors"] }),
        json!({ "name": "printer", "task": "echo 'use printer::Error;' > src/main.txt", "after": ["errors"] }),
        json!({ "name": "image", "task": "echo no such image; exit 3" }),
        json!({ "name": "notes", "task": "echo notes > notes.md", "after": ["parser", "printer"] }),
    ]
}

/// Makes a machine with a plan in most states.
fn harbour() -> (Site, String, String, String) {
    let world = World::new(Kind::Sqlite);
    world.settings("[defaults]\nagent = \"writer\"\n");
    world.agent("thinker", r#"echo '{"drydock":"choice","question":"Where is the comma accepted?","chosen":"in the splitter","alternatives":["in the lexer"],"rationale":"It alone sees the end of the list.","confidence":0.8}'"#);
    world.agent("writer", WRITER);
    world.agent("slow", "echo '{\"drydock\":\"progress\",\"text\":\"moving module 3 of 12\"}'; sleep 600");
    world.agent("broken", "echo 'no such image'; exit 3");
    let rest = "definition_of_done = \"the tests pass\"\n[arguments.what]\nrequired = true\n[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"\n\
                [[validations]]\nname = \"tests\"\ncommand = \"grep -q TWO src/main.txt\"";
    let action = |name: &str, task: &str, rest: &str| {
        world.write("action.toml", &format!("name = \"{name}\"\ndescription = \"{task}\"\n{rest}\n"));
        world.ok(&["action", "create", "--file", world.path("action.toml").to_str().unwrap()]);
    };
    action("mend", "Make {{ what }} accept trailing commas", rest);
    action("move", "Move every module to the new error type", "[agents]\nexecute = \"slow\"");
    action("image", "Upgrade the build image", "[agents]\nexecute = \"broken\"");
    let made = |args: &[&str]| {
        text(&world.ok(&[&["plan", "use"], args, &["--project", "app"]].concat())["plan"]["id"])
    };
    cut(&world, &pieces());
    let tree = made(&["cut", "--profile", "auto"]);
    let landed = made(&["mend", "--arg", "what=the parser", "--profile", "auto"]);
    let asks = made(&["mend", "--arg", "what=argument lists", "--profile", "trusted"]);
    made(&["mend", "--arg", "what=the config reader"]);
    made(&["mend", "--arg", "what=the old reader", "--profile", "manual"]);
    let broken = made(&["image", "--profile", "auto"]);
    let ended = made(&["mend", "--arg", "what=nothing much"]);
    world.ok(&["plan", "cancel", &ended, "--reason", "made by mistake"]);
    let site = Site::of(world);
    for (plan, stage) in [
        (&landed, "apply/applied"),
        (&asks, "execute/complete"),
        (&broken, "execute/errored"),
        (&tree, "execute/waiting"),
    ] {
        site.wait_stage(plan, stage);
    }
    let busy =
        text(&site.world.ok(&["plan", "use", "move", "--project", "app", "--profile", "auto"])["plan"]["id"]);
    site.wait_stage(&busy, "execute/processing");
    (site, asks, busy, tree)
}

/// Breaks when a view cannot be used by somebody who sees no colours, little contrast, or nothing at all.
#[test]
fn no_view_shuts_anybody_out() {
    let axe = std::env::var(AXE)
        .unwrap_or_else(|_| panic!("{AXE} is not set; `cargo xtask test` installs axe and sets it"));
    let axe = fs::read_to_string(axe).unwrap();
    let pictures = std::env::var_os(SCREENS).map(PathBuf::from);
    let (site, asks, busy, tree) = harbour();
    let views = [
        ("board", "/".to_owned()),
        ("plan", format!("/plans/{asks}")),
        ("running", format!("/plans/{busy}")),
        ("subplans", format!("/plans/{tree}")),
        ("changes", format!("/plans/{asks}/diff")),
        ("split", format!("/plans/{asks}/diff?layout=split")),
        ("log", format!("/plans/{asks}/log")),
        ("questions", "/questions".to_owned()),
        ("plans", "/plans".to_owned()),
        ("locks", "/locks".to_owned()),
        ("backups", "/backups".to_owned()),
        ("health", "/health".to_owned()),
        ("new", "/new?action=mend".to_owned()),
        ("missing", "/nowhere".to_owned()),
    ];
    let browser = site.browser();
    let mut complaints = Vec::new();
    for (size, scheme) in
        [(Size::Desktop, Scheme::Light), (Size::Desktop, Scheme::Dark), (Size::Phone, Scheme::Light)]
    {
        browser.look(size, scheme);
        for (name, path) in &views {
            browser.go(&site.address(path));
            browser.until("document.readyState === 'complete' && !document.body.dataset.opens && (!document.querySelector('#line') || document.querySelector('#line').dataset.line === 'live')");
            if let Some(directory) = &pictures {
                keep(&browser, directory, name, size, scheme);
            }
            let found = violations(&browser, &axe);
            complaints.extend(found.into_iter().map(|found| format!("{name} {size:?} {scheme:?}: {found}")));
            let over = browser.js("return document.documentElement.scrollWidth - innerWidth", &[]);
            if over.as_i64().unwrap() > 0 {
                complaints.push(format!("{name} {size:?} is {over} pixels too wide"));
            }
        }
    }
    assert!(complaints.is_empty(), "{complaints:#?}");
}

fn violations(browser: &Browser, axe: &str) -> Vec<String> {
    browser.js(&format!("if (!window.axe) {{ {axe} }}"), &[]);
    let found = browser.js_later(
        "const done = arguments[arguments.length - 1]; \
         axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] }) \
         .then((found) => done(found.violations.map((one) => one.id + ': ' + one.help + ' at ' + one.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | '))), (error) => done(['axe failed: ' + error]))",
    );
    found.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Keeps a picture of each view, and of the first two in the dark and on a phone.
fn keep(browser: &Browser, directory: &Path, name: &str, size: Size, scheme: Scheme) {
    let ending = match (size, scheme) {
        (Size::Desktop, Scheme::Light) => "",
        (Size::Desktop, Scheme::Dark) => "-dark",
        (Size::Phone | Size::Wide(_), _) => "-phone",
    };
    if ending.is_empty() || ["board", "plan"].contains(&name) {
        fs::create_dir_all(directory).unwrap();
        fs::write(directory.join(format!("{name}{ending}.png")), browser.picture()).unwrap();
    }
}
