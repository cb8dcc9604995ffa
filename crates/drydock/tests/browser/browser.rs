//! A browser of its own for each test, driven over WebDriver: a few requests with JSON, for which a library would bring
//! more code than there is here.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;
use serde_json::{Value, json};
use tempfile::TempDir;

/// Long enough for everything on a busy machine.
const LIMIT: Duration = Duration::from_secs(90);

/// How often a driver is started, and how long it may take to say where it listens.
const DRIVERS_MAX: usize = 3;
const DRIVER_LIMIT: Duration = Duration::from_secs(45);

/// What a page that moves by itself does to those who reach for it: it was not there any more, or not yet, or something
/// lay above it for a moment. Nothing was done then, so it may be tried again.
const MISSED: [&str; 5] = [
    "stale element reference",
    "no such element",
    "element not interactable",
    "element click intercepted",
    "move target out of bounds",
];

/// How WebDriver names an element in JSON.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// How large the window is.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Size {
    Desktop,
    Phone,
    /// As many pixels wide as this.
    Wide(u32),
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
    _driver: RunningProcess,
    _profile: TempDir,
}

/// Starts a driver on a port of its own. One that takes the same port of the other family from somebody ends at once.
fn driver() -> Option<(RunningProcess, u16)> {
    let mut driver = proc::spawn(Command::new("chromedriver").args(["--port=0", "--log-level=SEVERE"]));
    let port = wait::poll(DRIVER_LIMIT, || {
        let said = driver.stdout();
        match said.split_once("successfully on port ") {
            Some((_, rest)) => rest.split('.').next()?.parse().ok().map(Some),
            None => (!driver.is_alive()).then_some(None),
        }
    });
    port.flatten().map(|port| (driver, port))
}

impl Browser {
    /// Starts a browser.
    #[track_caller]
    pub(crate) fn open() -> Self {
        let (driver, port) = (0..DRIVERS_MAX).find_map(|_| driver()).expect("no chromedriver named its port");
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
        let made = exchange(port, "POST", "/session", Some(&wanted)).unwrap();
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
            Size::Wide(width) => (width, 780),
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

    /// Sends this token with every request from now on, as a server in front of ours would.
    pub(crate) fn bears(&self, secret: &str) {
        let headers = json!({ "Authorization": format!("Bearer {secret}") });
        self.devtools("Network.enable", &json!({}));
        self.devtools("Network.setExtraHTTPHeaders", &json!({ "headers": headers }));
    }

    /// Asks the driver; what it refuses stops the test.
    #[track_caller]
    fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> Value {
        self.attempt(method, path, body)
            .unwrap_or_else(|refusal| panic!("{method} {path}: {} {}", refusal.error, refusal.message))
    }

    fn attempt(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        exchange(self.port, method, &format!("/session/{}{path}", self.session), body)
    }

    fn devtools(&self, command: &str, params: &Value) {
        self.ask("POST", "/goog/cdp/execute", Some(&json!({ "cmd": command, "params": params })));
    }

    #[track_caller]
    pub(crate) fn go(&self, address: &str) {
        self.ask("POST", "/url", Some(&json!({ "url": address })));
    }

    /// Opens another tab of the same browser and goes on there.
    #[track_caller]
    pub(crate) fn tab(&self) {
        let made = self.ask("POST", "/window/new", Some(&json!({ "type": "tab" })));
        self.ask("POST", "/window", Some(&json!({ "handle": made["handle"] })));
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
        self.until_true(expression, &format!("return !!({expression})"), &[]);
    }

    /// Waits until an element that fits has this text in it.
    #[track_caller]
    pub(crate) fn until_text(&self, selector: &str, text: &str) {
        let script = "return [...document.querySelectorAll(arguments[0])].some((one) => one.innerText.includes(arguments[1]))";
        self.until_true(&format!("{text:?} in {selector}"), script, &[selector, text]);
    }

    /// Waits until a script returns true. A page that goes away while the script runs is asked again as the next one.
    #[track_caller]
    fn until_true(&self, what: &str, script: &str, args: &[&str]) {
        let asked = json!({ "script": script, "args": args });
        let mut refused = None;
        let is_true = || match self.attempt("POST", "/execute/sync", Some(&asked)) {
            Ok(value) => (value == true).then_some(()),
            Err(refusal) => {
                refused = Some(refusal);
                None
            }
        };
        if wait::poll(LIMIT, is_true).is_none() {
            let shown = self.attempt("POST", "/execute/sync", Some(&json!({ "script": "return location.href + '\\n' + document.body.innerText", "args": [] })));
            panic!(
                "waited {LIMIT:?} for {what}, which did not happen; the driver last refused {refused:?}; the page is {shown:?}"
            );
        }
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
        self.reach(selector, "click", &json!({}));
    }

    /// Types into what fits.
    #[track_caller]
    pub(crate) fn write(&self, selector: &str, text: &str) {
        self.reach(selector, "value", &json!({ "text": text }));
    }

    /// Does something with the first element that fits and can be seen, as soon as that can be done.
    #[track_caller]
    fn reach(&self, selector: &str, verb: &str, body: &Value) {
        let mut missed = None;
        let try_once = || {
            let done = self.find(selector).and_then(|found| match found {
                Some(id) => self.attempt("POST", &format!("/element/{id}/{verb}"), Some(body)).map(|_| true),
                None => Ok(false),
            });
            match done {
                Ok(done) => done.then_some(()),
                Err(refusal) if MISSED.contains(&refusal.error.as_str()) => {
                    missed = Some(refusal);
                    None
                }
                Err(refusal) => panic!("{verb} {selector}: {refusal:?}"),
            }
        };
        if wait::poll(LIMIT, try_once).is_none() {
            panic!("waited {LIMIT:?} to {verb} {selector}; missed it with {missed:?} on {}", self.address());
        }
    }

    fn find(&self, selector: &str) -> Result<Option<String>, Refusal> {
        let asked = json!({ "using": "css selector", "value": selector });
        let found = self.attempt("POST", "/elements", Some(&asked))?;
        for id in found.as_array().into_iter().flatten().filter_map(|one| one[ELEMENT].as_str()) {
            if self.attempt("GET", &format!("/element/{id}/displayed"), None)? == true {
                return Ok(Some(id.to_owned()));
            }
        }
        Ok(None)
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
        // The driver ends its browser; killed alone it would leave one behind. One that is gone has none.
        drop(self.attempt("DELETE", "", None));
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

/// Why the driver did not do it.
#[derive(Debug)]
struct Refusal {
    error: String,
    message: String,
}

impl From<std::io::Error> for Refusal {
    fn from(error: std::io::Error) -> Self {
        Self { error: "the driver is away".to_owned(), message: error.to_string() }
    }
}

/// Sends a request to the driver and returns its value.
fn exchange(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
    let text = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(LIMIT))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )?;
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(std::io::Error::other("it hung up").into());
        }
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
    reader.read_exact(&mut answer)?;
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    let value = answer["value"].clone();
    let said = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    match value.get("error") {
        None => Ok(value),
        Some(_) => Err(Refusal {
            error: said("error"),
            message: said("message").lines().next().unwrap_or_default().to_owned(),
        }),
    }
}
