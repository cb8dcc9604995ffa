//! Four processes that work on one PostgreSQL with fewer connections than they would like: every plan lands, and no lock
//! expires because its holder waited for a connection (BUG-4).

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use drydock_testkit::postgres::{self, Database};
use drydock_testkit::repo::Repo;
use serde_json::Value;

use crate::measure::Table;

const PLANS: usize = 30;
const PROCESSES: usize = 4;
const CONNECTIONS: usize = 7;
const LIMIT: Duration = Duration::from_secs(180);
const DRYDOCK: &str = env!("CARGO_BIN_EXE_drydock");

pub(crate) fn run(table: &mut Table) {
    let fleet = Fleet::new();
    for _ in 0..PLANS {
        fleet.drydock(&["plan", "use", "fix", "--project", "app", "--profile", "auto"]);
    }
    let began = Instant::now();
    let mut workers: Vec<Child> = (0..PROCESSES).map(|_| fleet.worker()).collect();
    let landed = || fleet.number("SELECT count(*) FROM plans WHERE state = 'applied'");
    while landed() < PLANS && began.elapsed() < LIMIT {
        std::thread::sleep(Duration::from_millis(200));
    }
    let (took, count) = (began.elapsed(), landed());
    for worker in &mut workers {
        worker.kill().unwrap();
        worker.wait().unwrap();
    }
    let scene = format!("{PLANS} plans on PostgreSQL, {PROCESSES} processes, {CONNECTIONS} connections");
    table.count(&format!("{scene}: landed"), PLANS, count);
    let taken_over = fleet.number("SELECT count(*) FROM events WHERE kind = 'plan.taken_over'");
    table.count(&format!("{scene}: take-overs"), 0, taken_over);
    table.plain(&format!("{scene}: time"), format!("{:.1} s", took.as_secs_f64()));
}

struct Fleet {
    home: tempfile::TempDir,
    database: Database,
    store: String,
    _repo: Repo,
}

impl Fleet {
    fn new() -> Fleet {
        let (home, database, repo) = (tempfile::tempdir().unwrap(), postgres::database(), Repo::new());
        let store = limited(&database);
        let fleet = Fleet { home, database, store, _repo: repo };
        let config = fleet.home.path().join(".config/drydock");
        fs::create_dir_all(&config).unwrap();
        let agent = "[agents.writer]\nprotocol = \"command\"\ncommand = [\"sh\", \"-c\", \"date +%N > $(date +%s%N).txt\"]\n";
        fs::write(config.join("config.toml"), agent).unwrap();
        let action = fleet.home.path().join("fix.toml");
        let text = "name = \"fix\"\ndescription = \"fix\"\n[agents]\nexecute = \"writer\"\n";
        fs::write(&action, text).unwrap();
        fleet.drydock(&["action", "create", "--file", action.to_str().unwrap()]);
        fleet.drydock(&["project", "add", "app", "--repo", fleet._repo.path().to_str().unwrap()]);
        fleet
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(DRYDOCK);
        command.arg("--json").args(words).env("HOME", self.home.path()).env_remove("XDG_CONFIG_HOME");
        command.env("DRYDOCK_STORE", &self.store).env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.stdin(Stdio::null());
        command
    }

    fn drydock(&self, words: &[&str]) -> Value {
        let output = self.command(words).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_str(&said).unwrap()
    }

    fn worker(&self) -> Child {
        let mut command = self.command(&["worker", "--workers", "2"]);
        command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    fn number(&self, sql: &str) -> usize {
        self.database.query(sql).parse().unwrap()
    }
}

/// Gives the database to a user with few connections, and returns the address for that user.
fn limited(database: &Database) -> String {
    let (name, user) = (database.name(), format!("few_{}", database.name()));
    database.query(&format!("CREATE ROLE {user} LOGIN CONNECTION LIMIT {CONNECTIONS}"));
    database.query(&format!("ALTER DATABASE {name} OWNER TO {user}"));
    database.query(&format!("GRANT ALL ON SCHEMA public TO {user}"));
    let url = database.url();
    let (scheme, rest) = url.split_once("://").unwrap();
    let host = rest.split_once('@').map_or(rest, |(_, host)| host);
    format!("{scheme}://{user}@{host}")
}
