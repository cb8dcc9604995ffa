//! A browser of its own for each test, driven over WebDriver: a few requests with JSON, for which a library would bring
//! more code than there is here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drydock_testkit::proc::{self, Running};
use drydock_testkit::wait;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for everything on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// How WebDriver names an element in JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How large the window is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    Desktop,
    Phone,
}

/// Which colours the person likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scheme {
    Light,
    Dark,
}

pub(crate) struct Browser {
    port: u16,
    session: String,
    _driver: Running,
    _profile: TempDir,
}

impl Browser {
    /// Starts a browser.
    #[track_caller]
    pub(crate) fn open() -> Self {
        let driver = proc::spawn(Command::new("chromedriver").args(["--port=0", "--log-level=SEVERE"]));
        let port = wait::until("chromedriver's port", LIMIT, || {
            let said = driver.stdout();
            let (_, rest) = said.split_once("successfully on port ")?;
            rest.split('.').next()?.parse().ok()
        });
        let profile = TempDir::with_prefix("drydock-browser-").unwrap();
        let mut args = vec![
            "--headless=new".to_owned(),
            "--disable-gpu".to_owned(),
            "--disable-dev-shm-usage".to_owned(),
            "--hide-scrollbars".to_owned(),
            "--force-prefers-reduced-motion".to_owned(),
            format!("--user-data-dir={}", profile.path().display()),
        ];
        // Chromium's own sandbox does not start for root.
        if is_root() {
            args.push("--no-sandbox".to_owned());
        }
        let options = json!({ "args": args });
        let wanted = json!({ "capabilities": { "alwaysMatch": { "browserName": "chrome", "goog:chromeOptions": options } } });
        let made = exchange(port, "POST", "/session", Some(&wanted));
        let session = made["sessionId"].as_str().unwrap_or_else(|| panic!("no session: {made}")).to_owned();
        let browser = Self { port, session, _driver: driver, _profile: profile };
        browser.look(Size::Desktop, Scheme::Light);
        browser
    }

    /// Gives the window a size, and the person a taste.
    pub(crate) fn look(&self, size: Size, scheme: Scheme) {
        let (width, height) = match size {
            Size::Desktop => (1200, 760),
            Size::Phone => (390, 780),
        };
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.devtools("Emulation.setDeviceMetricsOverride", &metrics);
        let scheme = match scheme {
            Scheme::Light => "light",
            Scheme::Dark => "dark",
        };
        let features = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.devtools("Emulation.setEmulatedMedia", &features);
    }

    /// Switches scripts of pages off from the next page on.
    pub(crate) fn without_script(&self) {
        self.devtools("Emulation.setScriptExecutionDisabled", &json!({ "value": true }));
    }

    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        exchange(self.port, method, &format!("/session/{}{path}", self.session), body)
    }

    fn devtools(&self, command: &str, params: &Value) {
        self.ask("POST", "/goog/cdp/execute", Some(&json!({ "cmd": command, "params": params })));
    }

    #[track_caller]
    pub(crate) fn go(&self, address: &str) {
        self.ask("POST", "/url", Some(&json!({ "url": address })));
    }

    /// Waits until the page follows the feed, which is the last thing that its script begins with.
    #[track_caller]
    pub(crate) fn settled(&self) {
        self.until("document.querySelector('#line')?.dataset.line === 'live'");
    }

    /// Runs a script in the page and returns what it returns.
    #[track_caller]
    pub(crate) fn js(&self, script: &str, args: &[&str]) -> Value {
        self.ask("POST", "/execute/sync", Some(&json!({ "script": script, "args": args })))
    }

    /// Runs a script that says when it is done, by calling its last argument.
    #[track_caller]
    pub(crate) fn js_later(&self, script: &str) -> Value {
        self.ask("POST", "/execute/async", Some(&json!({ "script": script, "args": [] })))
    }

    /// Waits until an expression is true.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) {
        let script = format!("return !!({expression})");
        wait::until(expression, LIMIT, || (self.js(&script, &[]) == true).then_some(()));
    }

    /// Waits until an element that fits has this text in it.
    #[track_caller]
    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        let script = "return [...document.querySelectorAll(arguments[0])].some((one) => one.innerText.includes(arguments[1]))";
        wait::until(&format!("{text:?} in {selector}"), LIMIT, || {
            (self.js(script, &[selector, text]) == true).then_some(())
        });
    }

    /// Returns the text of the first element that fits.
    #[track_caller]
    pub(crate) fn text(&self, selector: &str) -> String {
        let script = "return document.querySelector(arguments[0])?.innerText ?? ''";
        self.js(script, &[selector]).as_str().unwrap().to_owned()
    }

    /// Presses what fits, as a hand would: it must be there, to be seen, and not covered.
    #[track_caller]
    pub(crate) fn press(&self, selector: &str) {
        let id = wait::until(selector, LIMIT, || self.find(selector));
        self.ask("POST", &format!("/element/{id}/click"), Some(&json!({})));
    }

    /// Types into what fits.
    #[track_caller]
    pub(crate) fn write(&self, selector: &str, text: &str) {
        let id = wait::until(selector, LIMIT, || self.find(selector));
        self.ask("POST", &format!("/element/{id}/value"), Some(&json!({ "text": text })));
    }

    fn find(&self, selector: &str) -> Option<String> {
        let found =
            self.ask("POST", "/elements", Some(&json!({ "using": "css selector", "value": selector })));
        let shown = |id: &str| self.ask("GET", &format!("/element/{id}/displayed"), None) == true;
        found
            .as_array()?
            .iter()
            .filter_map(|one| one[ELEMENT].as_str())
            .find(|id| shown(id))
            .map(str::to_owned)
    }

    /// Presses keys one after the other, wherever the focus is.
    #[track_caller]
    pub(crate) fn keys(&self, text: &str) {
        let strokes: Vec<Value> = text
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({ "type": kind, "value": key.to_string() }))
            })
            .collect();
        let actions = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": strokes }] });
        self.ask("POST", "/actions", Some(&actions));
    }

    /// Returns the window as a PNG.
    #[track_caller]
    pub(crate) fn picture(&self) -> Vec<u8> {
        STANDARD.decode(self.ask("GET", "/screenshot", None).as_str().unwrap()).unwrap()
    }

    #[track_caller]
    pub(crate) fn address(&self) -> String {
        self.ask("GET", "/url", None).as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.ask("DELETE", "", None);
        }
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Sends a request to the driver and returns its value; a refusal stops the test.
#[track_caller]
fn exchange(port: u16, method: &str, path: &str, body: Option<&Value>) -> Value {
    let text = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
    .unwrap();
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        assert_ne!(reader.read_line(&mut line).unwrap(), 0, "the driver hung up on {method} {path}");
        if let Some((_, value)) =
            line.split_once(':').filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
        {
            length = value.trim().parse().unwrap();
        }
        if line == "\r\n" {
            break;
        }
    }
    let mut answer = vec![0; length];
    reader.read_exact(&mut answer).unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let value = answer["value"].clone();
    assert!(value.get("error").is_none(), "{method} {path}: {} {}", value["error"], value["message"]);
    value
}
