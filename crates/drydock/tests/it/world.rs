//! One user's machine: a home of its own, a repository, a store, agents that are shell scripts, and the binary.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use drydock_testkit::postgres::{self, Database};
use drydock_testkit::proc::{self, Finished, RunningProcess};
use drydock_testkit::repo::Repo;
use drydock_testkit::{sqlite, wait};
use serde_json::Value;
use tempfile::TempDir;

/// Runs one claim on both stores.
macro_rules! on_both {
    ($(#[$meta:meta])* fn $name:ident($kind:ident: Kind) $body:block) => {
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            fn holds($kind: crate::world::Kind) $body

            #[test]
            fn sqlite() {
                holds(crate::world::Kind::Sqlite);
            }

            #[test]
            fn postgres() {
                holds(crate::world::Kind::Postgres);
            }
        }
    };
}

/// Long enough for everything on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(90);
/// The exit code of a conflict.
pub(crate) const CONFLICT: i32 = 4;

/// Which database keeps the store.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Sqlite,
    Postgres,
}

pub(crate) struct World {
    pub(crate) repo: Repo,
    home: TempDir,
    store: String,
    agents: Mutex<BTreeMap<String, String>>,
    settings: Mutex<String>,
    database: Option<Database>,
}

impl World {
    /// Makes a machine with a repository that is the project `app`, and no agent.
    pub(crate) fn new(kind: Kind) -> Self {
        let world = Self::without_store(kind);
        world.ok(&["project", "add", "app", "--repo", world.repo.path().to_str().unwrap()]);
        world
    }

    /// Makes a machine whose store nothing has opened yet.
    pub(crate) fn without_store(kind: Kind) -> Self {
        let home = TempDir::with_prefix("drydock-world-").unwrap();
        let database = match kind {
            Kind::Sqlite => None,
            Kind::Postgres => Some(postgres::database()),
        };
        let store = match &database {
            None => home.path().join("store/drydock.db").to_str().unwrap().to_owned(),
            Some(database) => database.url(),
        };
        fs::create_dir_all(home.path().join("store")).unwrap();
        let agents = Mutex::default();
        let world = Self { repo: Repo::new(), home, store, agents, settings: Mutex::default(), database };
        world.configure();
        world
    }

    /// Fills a store that nothing has opened yet: with a SQLite file, or a script of PostgreSQL.
    pub(crate) fn load(&self, file: &Path) {
        match &self.database {
            Some(database) => database.load_file(file),
            None => drop(fs::copy(file, &self.store).unwrap()),
        }
    }

    /// Makes a machine whose action `fix` lets this shell script do the work.
    pub(crate) fn with_writer(kind: Kind, script: &str) -> Self {
        let world = Self::new(kind);
        world.agent("writer", script);
        world.action("fix", "[agents]\nexecute = \"writer\"");
        world
    }

    /// Gives an agent another script, or adds it.
    pub(crate) fn agent(&self, name: &str, script: &str) {
        self.agents.lock().unwrap().insert(name.to_owned(), script.to_owned());
        self.configure();
    }

    /// Takes an agent out of the configuration.
    pub(crate) fn without_agent(&self, name: &str) {
        self.agents.lock().unwrap().remove(name);
        self.configure();
    }

    /// Adds tables to the configuration.
    pub(crate) fn settings(&self, text: &str) {
        self.settings.lock().unwrap().push_str(text);
        self.configure();
    }

    fn configure(&self) {
        // Agents of these tests leave marks in the home for the test to see, so they may write there.
        let settings = self.settings.lock().unwrap().clone();
        let locks = if settings.contains("[locks]") { "" } else { "[locks]\nttl = \"5s\"\n" };
        let mut text = format!("{locks}[sandbox]\nwrite = [{}]\n{settings}", Value::from(self.place("")));
        for (name, script) in self.agents.lock().unwrap().iter() {
            // A JSON string is a TOML string as well.
            let script = Value::from(script.as_str());
            text +=
                &format!("[agents.{name}]\nprotocol = \"command\"\ncommand = [\"sh\", \"-c\", {script}]\n");
        }
        self.write(".config/drydock/config.toml", &text);
    }

    /// Adds an action; `rest` is what its file has beyond name and description.
    pub(crate) fn action(&self, name: &str, rest: &str) {
        let text = format!("name = \"{name}\"\ndescription = \"Do {name}\"\n{rest}\n");
        self.write("action.toml", &text);
        self.ok(&["action", "create", "--file", self.path("action.toml").to_str().unwrap()]);
    }

    /// Returns a path in the home, outside the repository.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.home.path().join(path)
    }

    /// Returns a path in the home, to be written into a script.
    pub(crate) fn place(&self, path: &str) -> String {
        self.path(path).to_str().unwrap().to_owned()
    }

    /// Asserts that the lock of a plan is held by a process that lives (S1.1).
    pub(crate) fn assert_held(&self, id: &str) {
        let locks = self.locks();
        let held = |lock: &&Value| lock["key"] == id && lock["stale"] == false && lock["scope"] == "plan";
        assert_eq!(locks.iter().filter(held).count(), 1, "{locks:?}");
    }

    /// Returns the address of the store.
    pub(crate) fn store(&self) -> &str {
        &self.store
    }

    /// Returns where the worktrees of runs are.
    pub(crate) fn worktrees(&self) -> PathBuf {
        self.path(if self.database.is_none() { "store/worktrees" } else { "data/drydock/worktrees" })
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Runs a statement on the store behind its back: columns separated by `|`, one row a line.
    #[track_caller]
    pub(crate) fn query(&self, sql: &str) -> String {
        match &self.database {
            Some(database) => database.query(sql),
            None => sqlite::query(Path::new(&self.store), sql),
        }
    }

    /// Returns the lines of a file in the home; none when there is no such file.
    pub(crate) fn lines(&self, path: &str) -> Vec<String> {
        fs::read_to_string(self.path(path)).unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Returns the command, to be changed before it runs.
    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_drydock"));
        command.env_clear().args(["--json"]).args(args).current_dir(self.home.path());
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.path(".config"))
            .env("XDG_DATA_HOME", self.path("data"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("USER", "tester")
            .env("DRYDOCK_STORE", &self.store);
        command
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub(crate) fn drydock(&self, args: &[&str]) -> Answer {
        Answer::of(proc::run(&mut self.command(args), LIMIT))
    }

    /// Runs the binary with a fault asked for, e.g. `DRYDOCK_CRASH_AT`.
    #[track_caller]
    pub(crate) fn drydock_with(&self, variable: &str, value: &str, args: &[&str]) -> Finished {
        proc::run(self.command(args).env(variable, value), LIMIT)
    }

    /// Starts the binary.
    #[track_caller]
    pub(crate) fn spawn(&self, args: &[&str]) -> RunningProcess {
        proc::spawn(&mut self.command(args))
    }

    /// Runs the binary, requires success, and returns its data.
    #[track_caller]
    pub(crate) fn ok(&self, args: &[&str]) -> Value {
        self.drydock(args).expect(0).json["data"].clone()
    }

    /// Makes a plan and returns its id.
    #[track_caller]
    pub(crate) fn plan(&self, more: &[&str]) -> String {
        let args = [&["plan", "use", "fix", "--project", "app"], more].concat();
        text(&self.ok(&args)["plan"]["id"])
    }

    /// Makes a plan and takes it to the end of a phase.
    #[track_caller]
    pub(crate) fn plan_after(&self, phase: &str) -> String {
        let id = self.plan(&[]);
        for step in ["strategize", "execute", "apply"] {
            self.ok(&["plan", step, &id]);
            if step == phase {
                break;
            }
        }
        id
    }

    /// Reads the plan in a process of its own.
    #[track_caller]
    pub(crate) fn show(&self, plan: &str) -> Value {
        self.ok(&["plan", "show", plan])["plan"].clone()
    }

    #[track_caller]
    pub(crate) fn stage(&self, plan: &str) -> String {
        stage(&self.show(plan))
    }

    #[track_caller]
    pub(crate) fn events(&self, plan: &str) -> Vec<Value> {
        list(&self.ok(&["plan", "events", plan, "--limit", "1000"])["events"])
    }

    /// Returns how often an event of this kind happened to the plan.
    #[track_caller]
    pub(crate) fn count(&self, plan: &str, kind: &str) -> usize {
        self.events(plan).iter().filter(|event| event["kind"] == kind).count()
    }

    #[track_caller]
    pub(crate) fn locks(&self) -> Vec<Value> {
        list(&self.ok(&["lock", "list"])["locks"])
    }

    /// Runs a command until it meets no lock of another process any more.
    #[track_caller]
    pub(crate) fn insist(&self, args: &[&str]) -> Answer {
        wait::until("the locks in the way to run out", LIMIT, || {
            let answer = self.drydock(args);
            (answer.error_code() != "lock_held").then_some(answer)
        })
    }

    /// Waits until the lock of a plan has run out.
    #[track_caller]
    pub(crate) fn wait_stale(&self, plan: &str) {
        wait::until("the plan's lock to run out", LIMIT, || {
            self.locks().iter().any(|lock| lock["key"] == plan && lock["stale"] == true).then_some(())
        });
    }

    #[track_caller]
    pub(crate) fn wait_file(&self, path: &str) {
        wait::until(path, LIMIT, || self.path(path).exists().then_some(()));
    }

    /// Waits until nothing that a run of this plan started is alive.
    #[track_caller]
    pub(crate) fn wait_dead(&self, plan: &str) {
        wait::until("everything that the run started to die", LIMIT, || alive(plan).is_empty().then_some(()));
    }

    /// Returns the commits of the target that say they are the landing of this plan.
    #[track_caller]
    pub(crate) fn landings(&self, plan: &str) -> Vec<String> {
        let trailer = format!("--grep=^Drydock-Plan: {plan}$");
        self.repo.git(&["log", "--format=%H", &trailer, "main", "--"]).lines().map(str::to_owned).collect()
    }

    /// Requires that the plan landed once, and that everybody agrees on it.
    #[track_caller]
    pub(crate) fn assert_landed_once(&self, plan: &str) {
        let landings = self.landings(plan);
        assert_eq!(landings.len(), 1, "landings of {plan}");
        let shown = self.show(plan);
        assert_eq!(
            (stage(&shown), &shown["landed_commit"]),
            ("apply/applied".into(), &landings[0].as_str().into())
        );
        assert_eq!(self.count(plan, "plan.applied"), 1);
    }

    /// Requires that the plan's history could have happened: every revision told, no run begun or ended twice.
    #[track_caller]
    pub(crate) fn assert_sound(&self, plan: &str) {
        let (shown, events) = (self.show(plan), self.events(plan));
        let revisions: Vec<i64> = events.iter().filter_map(|event| event["revision"].as_i64()).collect();
        assert!(revisions.is_sorted(), "revisions go back: {revisions:?}");
        let told: BTreeSet<i64> = revisions.into_iter().collect();
        assert_eq!(told, (1..=shown["revision"].as_i64().unwrap()).collect(), "a revision without an event");
        for kind in ["plan.started", "plan.completed"] {
            let runs: Vec<_> = events
                .iter()
                .filter(|event| event["kind"] == kind)
                .map(|event| text(&event["run"]))
                .collect();
            let different: BTreeSet<_> = runs.iter().collect();
            assert_eq!(different.len(), runs.len(), "{kind} twice in one run");
        }
        for changeset in list(&self.ok(&["changeset", "list", plan])["changesets"]) {
            assert_eq!(changeset["state"], "sealed", "{changeset}");
        }
        self.repo.git(&["fsck", "--strict", "--no-dangling"]);
    }
}

/// What the binary answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) json: Value,
    pub(crate) stderr: String,
}

impl Answer {
    pub(crate) fn of(finished: Finished) -> Self {
        let last = finished.stdout.lines().last().unwrap_or_default();
        let json = serde_json::from_str(last).unwrap_or_default();
        Self { code: finished.code(), json, stderr: finished.stderr }
    }

    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{:#}\n{}", self.json, self.stderr);
        self
    }

    pub(crate) fn error_code(&self) -> &str {
        self.json["error"]["code"].as_str().unwrap_or_default()
    }

    pub(crate) fn plan(&self) -> &Value {
        &self.json["data"]["plan"]
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_owned()
}

pub(crate) fn list(value: &Value) -> Vec<Value> {
    value.as_array().unwrap_or_else(|| panic!("{value} is not a list")).clone()
}

/// Returns phase and state.
pub(crate) fn stage(plan: &Value) -> String {
    format!("{}/{}", text(&plan["phase"]), text(&plan["state"]))
}

/// Returns the processes that a run of this plan started: each inherits the task in its environment.
pub(crate) fn alive(plan: &str) -> Vec<u32> {
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(pid) = entry.file_name().to_string_lossy().parse() else { continue };
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environment.windows(plan.len()).any(|part| part == plan.as_bytes()) {
            found.push(pid);
        }
    }
    found
}

/// Returns every file under a directory with its bytes, git's own left out.
pub(crate) fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if entry.file_name() == ".git" {
            continue;
        } else if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).unwrap());
        }
    }
    found
}
