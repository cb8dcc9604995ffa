//! A server with a machine around it, for the page to be looked at.

use std::net::TcpListener;
use std::time::Instant;

use drydock_testkit::proc::{RunningProcess, spawn};
use drydock_testkit::wait;

use crate::browser::Browser;
use crate::world::{Kind, LIMIT, World, text};

/// What the writer of these tests does: changes a file, adds one, and says so.
pub(crate) const WRITER: &str = r#"echo '{"drydock":"progress","text":"reading src/main.txt"}'
echo "12 tests pass"
printf 'one\nTWO\nthree\n' > src/main.txt
printf 'fn main() {\n    println!("hello");\n}\n' > hello.rs
"#;

/// A `drydock serve`, and the address that its page is at.
pub(crate) struct Site {
    pub(crate) world: World,
    server: Option<RunningProcess>,
    at: String,
    tokens: &'static str,
}

impl Site {
    /// Serves a machine on which `fix` is done by the writer.
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self::of(Self::shop())
    }

    /// Serves a machine.
    #[track_caller]
    pub(crate) fn of(world: World) -> Self {
        Self::serving(world, "required")
    }

    /// Serves a machine on which `fix` is done by the writer to whoever asks.
    #[track_caller]
    pub(crate) fn open_to_all() -> Self {
        Self::serving(Self::shop(), "optional")
    }

    fn shop() -> World {
        let world = World::with_writer(Kind::Sqlite, WRITER);
        world.settings("[defaults]\nagent = \"writer\"\n");
        world
    }

    #[track_caller]
    fn serving(world: World, tokens: &'static str) -> Self {
        let mut site = Self { world, server: None, at: "127.0.0.1:0".to_owned(), tokens };
        site.start();
        site
    }

    /// Returns the link that the server printed, which signs one browser in.
    #[track_caller]
    pub(crate) fn link(&self) -> String {
        let server = self.server.as_ref().unwrap();
        wait::until("the link", LIMIT, || {
            let said = server.stderr();
            said.split_whitespace().find(|word| word.contains("/welcome?once=")).map(str::to_owned)
        })
    }

    /// Opens a browser that is signed in.
    #[track_caller]
    pub(crate) fn browser(&self) -> Browser {
        let browser = Browser::open();
        self.admit(&browser, &self.address(""));
        browser
    }

    /// Signs a browser in that knows the server by this address.
    #[track_caller]
    pub(crate) fn admit(&self, browser: &Browser, at: &str) {
        browser.go(&text(&self.world.ok(&["token", "link", "--at", at])["link"]));
        browser.until("location.pathname === '/'");
        browser.settled();
    }

    /// Starts the server where it was.
    #[track_caller]
    pub(crate) fn start(&mut self) {
        let args = ["serve", "--workers", "2", "--tokens", self.tokens, "--listen", &self.at];
        let server = spawn(&mut self.world.command(&args));
        self.at = wait::until("the server's address", LIMIT, || {
            let said = server.stderr();
            let (_, rest) = said.split_once("http://")?;
            let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == ':'))?;
            Some(rest[..end].to_owned())
        });
        self.server = Some(server);
    }

    /// Stops the server as a service manager does.
    #[track_caller]
    pub(crate) fn stop(&mut self) {
        let server = self.server.take().unwrap();
        server.terminate();
        server.wait(LIMIT);
    }

    /// Stands where the server was, and hangs up on whoever comes, so many times.
    #[track_caller]
    pub(crate) fn hang_up(&self, times: usize) {
        let listener = TcpListener::bind(&self.at).unwrap();
        for _ in 0..times {
            drop(listener.accept().unwrap());
        }
    }

    /// Returns the address of a view.
    pub(crate) fn address(&self, path: &str) -> String {
        format!("http://{}{path}", self.at)
    }

    /// Returns where the server listens.
    pub(crate) fn listens(&self) -> &str {
        &self.at
    }

    /// Makes a plan that waits for a person to say that Execute may start.
    #[track_caller]
    pub(crate) fn gated(&self) -> String {
        let id = self.world.plan(&[]);
        self.wait_stage(&id, "strategize/complete");
        id
    }

    #[track_caller]
    pub(crate) fn wait_stage(&self, plan: &str, stage: &str) {
        let began = Instant::now();
        wait::until(stage, LIMIT, || {
            // Says why while there still is a machine to ask.
            if began.elapsed() > LIMIT * 2 / 3 {
                panic!("{stage} was not reached: {:#}", self.world.ok(&["plan", "why", plan]));
            }
            (self.world.stage(plan) == stage).then_some(())
        });
    }

    /// Answers the open question of a plan from the command line.
    #[track_caller]
    pub(crate) fn approve(&self, plan: &str) {
        let decision = text(&self.world.show(plan)["pending_decision"]);
        self.world.ok(&["decision", "resolve", &decision, "--option", "approve"]);
    }
}
