//! Coming in: with the link, and without; and what a browser that is in tells others.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::browser::{Browser, Scheme, Size};
use crate::scene::{Site, WRITER};
use crate::world::{Kind, LIMIT, World, list, text};

/// A program on another port of this machine, such as what an agent built and shows: it keeps what it is sent.
struct Preview {
    at: String,
    heard: Arc<Mutex<String>>,
}

impl Preview {
    fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (at, heard) = (listener.local_addr().unwrap().to_string(), Arc::new(Mutex::new(String::new())));
        let kept = heard.clone();
        // Ends with the test's process.
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut bytes = [0; 8 * 1024];
                let count = stream.read(&mut bytes).unwrap_or(0);
                kept.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..count]));
                let page = "<!doctype html><title>Preview</title><h1>What I made</h1>";
                let head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close";
                drop(write!(stream, "{head}\r\nContent-Length: {}\r\n\r\n{page}", page.len()));
            }
        });
        Self { at, heard }
    }

    /// Returns the header with a session that a browser sent.
    fn cookie(&self) -> Option<String> {
        let heard = self.heard.lock().unwrap();
        let found = heard.lines().find(|line| line.to_lowercase().starts_with("cookie:"));
        found.filter(|line| line.contains("drydock-")).map(|line| format!("{}\r\n", line.trim()))
    }
}

/// Asks as a program can that says whatever it likes.
fn ask(site: &Site, line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(site.listens()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let (host, length) = (site.listens(), body.len());
    let head =
        format!("{line} HTTP/1.0\r\nHost: {host}\r\nOrigin: http://{host}\r\nContent-Length: {length}\r\n");
    write!(stream, "{head}Content-Type: application/json\r\n{headers}\r\n{body}").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Breaks when whoever serves a page on another port of this machine, and is sent the session's cookie by the browser
/// that opens it, can see or answer anything: by the page's script, or by themselves.
#[test]
fn a_preview_on_another_port_gets_the_cookie_and_can_do_nothing_with_it() {
    let site = Site::of(World::with_writer(Kind::Sqlite, WRITER));
    let id = site.gated();
    let gate = text(&site.world.show(&id)["pending_decision"]);
    let browser = Browser::open();
    browser.go(&site.link());
    browser.until_text("[data-id='column-strategize']", "Do fix");
    let preview = Preview::open();
    browser.go(&format!("http://{}/", preview.at));
    browser.until_text("h1", "What I made");
    let cookie = wait::until("the cookie to arrive", LIMIT, || preview.cookie());
    let resolve = format!("/api/v1/decisions/{gate}/resolve");
    let script = format!(
        "const done = arguments[arguments.length - 1];
         const answer = JSON.stringify({{ option: 'approve' }});
         const ways = [
           ['{0}', {{ credentials: 'include' }}],
           ['{0}', {{ credentials: 'include', mode: 'no-cors' }}],
           ['{1}', {{ credentials: 'include', headers: {{ 'X-Drydock-Page': localStorage.getItem('page') }} }}],
           ['{2}', {{ credentials: 'include', method: 'POST', mode: 'no-cors', body: answer }}],
           ['{2}', {{ credentials: 'include', method: 'POST', body: answer, headers: {{ 'Content-Type': 'application/json', 'X-Drydock-Page': '1' }} }}],
         ];
         Promise.all(ways.map(([to, how]) => fetch(to, how).then((got) => got.text(), () => ''))).then(done)",
        site.address("/"),
        site.address("/api/v1/plans"),
        site.address(&resolve),
    );
    assert_eq!(browser.js_later(&script), json!(["", "", "", "", ""]));
    assert_eq!(
        browser.js("return localStorage.getItem('page')", &[]),
        Value::Null,
        "it is of another origin"
    );
    // The program has the cookie itself, and no browser to hold it back.
    let plan = format!("/plans/{id}");
    for page in ["", "X-Drydock-Page: 1\r\n"] {
        for line in ["/", &plan, "/questions", "/api/v1/plans", "/api/v1/events", "/api/v1/tokens"] {
            for accept in ["", "Accept: text/html\r\n", "Accept: text/event-stream\r\n"] {
                let said = ask(&site, &format!("GET {line}"), &format!("{cookie}{page}{accept}"), "");
                let is_shell = page.is_empty() && said.contains("data-opens=\"view\"");
                assert!(said.contains(" 401 ") || is_shell, "{line} {page} {accept}: {said}");
                assert!(!said.contains(&id) && !said.contains("Do fix"), "{line} {page} {accept}: {said}");
            }
        }
        let said =
            ask(&site, &format!("POST {resolve}"), &format!("{cookie}{page}"), r#"{"option":"approve"}"#);
        assert!(said.contains(" 401 "), "{said}");
    }
    assert_eq!(site.world.stage(&id), "strategize/complete");
    assert_eq!(site.world.show(&id)["pending_decision"], gate.as_str());
    // The person goes on.
    browser.go(&site.address(&plan));
    browser.settled();
    browser.press(".question .button.primary");
    browser.until_text(".question", "Ready to land on main");
}

/// Breaks when a reload, another tab, a way back or a new server costs a person their sign-in, or when a browser that forgot
/// its half of it shows nothing instead of how to come in again.
#[test]
fn a_browser_stays_signed_in_until_it_forgets() {
    let mut site = Site::of(World::with_writer(Kind::Sqlite, WRITER));
    let id = site.gated();
    let browser = Browser::open();
    browser.look(Size::Phone, Scheme::Light);
    browser.go(&site.link());
    browser.until_text("[data-id='column-strategize']", "Do fix");
    browser.js("location.reload()", &[]);
    browser.until_text("[data-id='column-strategize']", "Do fix");
    browser.tab();
    browser.look(Size::Phone, Scheme::Light);
    let plan = site.address(&format!("/plans/{id}"));
    browser.go(&plan);
    browser.settled();
    // Back is where it was, though what stands there is fetched anew.
    browser.js("scrollTo(0, 200)", &[]);
    browser.until("scrollY === 200");
    browser.js("location.assign('/questions')", &[]);
    browser.until_text(".question", "Ready to start execute");
    browser.js("history.back()", &[]);
    browser.until("location.pathname.startsWith('/plans/') && scrollY === 200");
    browser.settled();
    browser.js("window.stays = true", &[]);
    site.stop();
    browser.until_text("#line", "reconnecting");
    site.start();
    browser.until_text("#line", "live");
    browser.press(".question .button.primary");
    browser.until_text(".question", "Ready to land on main");
    assert_eq!(browser.js("return window.stays", &[]), true, "it was loaded anew");
    browser.js("localStorage.clear()", &[]);
    browser.go(&plan);
    browser.until_text("h1", "Sign in");
    browser.until_text("main", "drydock token link");
    assert!(!browser.text("body").contains("Do fix"));
    let made = site.world.ok(&["token", "link", "--at", &site.address("")]);
    browser.go(&text(&made["link"]));
    browser.until_text("[data-id='column-execute']", "Do fix");
}

/// Breaks when the link that `serve` prints does not lead to a page that works, leaves its secret in the address, or a
/// person without one is not told how to get it.
#[test]
fn one_link_signs_a_browser_in_and_who_has_none_is_told_how_to_get_one() {
    let world = World::with_writer(Kind::Sqlite, WRITER);
    world.settings("[defaults]\nagent = \"writer\"\n");
    let site = Site::of(world);
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
    // Page B16: the same link again leads to the board, as the browser is signed in.
    guest.go(&link);
    guest.until("location.pathname === '/'");
    guest.settled();
    guest.go(&site.address(&format!("/plans/{id}")));
    guest.settled();
    guest.press(".question .button.primary");
    guest.until_text(".question", "Ready to land on main");
    // The same link in another browser is of no use.
    stranger.go(&link);
    stranger.until_text("main", "already used");
    stranger.without_script();
    stranger.go(&site.address("/"));
    stranger.until_text("main", "drydock token link");
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
    let site = Site::of(World::with_writer(Kind::Sqlite, WRITER));
    let id = site.gated();
    let browser = Browser::open();
    let shown = "return [...document.querySelectorAll('main .button, .side .new')].filter((one) => one.offsetParent).map((one) => one.innerText.trim())";
    for (role, offered) in [
        ("reader", json!([])),
        ("operator", json!(["New plan", "Add guidance…"])),
        (
            "human",
            json!(["New plan", "Adopt draft…", "Add guidance…", "Cancel plan…", "Start work", "Cancel plan"]),
        ),
    ] {
        let made = site.world.ok(&["token", "create", role, "--role", role]);
        browser.bears(&text(&made["secret"]));
        browser.go(&site.address(&format!("/plans/{id}")));
        browser.settled();
        assert_eq!(browser.js(shown, &[]), offered, "{role}");
    }
}
