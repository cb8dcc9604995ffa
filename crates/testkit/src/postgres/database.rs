//! The PostgreSQL server that tests share, and one database per test.

use std::collections::hash_map::RandomState;
use std::env;
use std::hash::{BuildHasher, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use super::cluster::Cluster;
use super::programs::Programs;
use crate::proc;

/// The environment variable with the URL of a server to use; its user must be allowed to create databases.
pub const SERVER_VARIABLE: &str = "DRYDOCK_TEST_POSTGRES";

/// The maximum time of one statement on a busy machine.
const STATEMENT_LIMIT: Duration = Duration::from_secs(60);
const LOAD_LIMIT: Duration = Duration::from_secs(900);

/// A PostgreSQL server that creates databases for tests.
#[derive(Debug)]
pub struct PostgresServer {
    admin_url: String,
    psql: PathBuf,
    // Keeps a private cluster running; none if the server was given.
    _cluster: Option<Cluster>,
}

/// Returns this process's server: the one of `DRYDOCK_TEST_POSTGRES`, or a private one that is started at first use.
///
/// # Panics
/// Without a server; the message has the next step.
pub fn server() -> &'static PostgresServer {
    static SERVER: OnceLock<PostgresServer> = OnceLock::new();
    SERVER.get_or_init(|| match PostgresServer::from_environment() {
        Ok(server) => server,
        Err(reason) => panic!("no PostgreSQL for this test: {reason}"),
    })
}

/// Creates an empty database on this process's server.
#[track_caller]
pub fn database() -> Database {
    server().database()
}

impl PostgresServer {
    /// Starts a private server, ignoring the environment. It stops when the value is dropped.
    pub fn start(programs: &Programs) -> Result<Self, String> {
        let cluster = Cluster::start(programs)?;
        Ok(Self {
            admin_url: cluster.admin_url(),
            psql: programs.directory().join("psql"),
            _cluster: Some(cluster),
        })
    }

    fn from_environment() -> Result<Self, String> {
        let programs = Programs::find();
        if let Ok(admin_url) = env::var(SERVER_VARIABLE) {
            // A given server may be on another machine, so any client in the search path will do.
            let psql =
                programs.map_or_else(|_| PathBuf::from("psql"), |programs| programs.directory().join("psql"));
            return Ok(Self { admin_url, psql, _cluster: None });
        }
        let programs =
            programs.map_err(|missing| format!("{missing}; run `cargo xtask test`, which installs them"))?;
        Self::start(&programs)
    }

    /// Returns the URL of the database from which others are created.
    pub fn admin_url(&self) -> &str {
        &self.admin_url
    }

    /// Creates an empty database.
    #[track_caller]
    pub fn database(&self) -> Database {
        // Random, because a killed test process leaves its databases on a given server.
        let name = format!("drydock_test_{:016x}", RandomState::new().build_hasher().finish());
        // The default strategy writes the copy to the WAL. Copying files instead takes two checkpoints, which is
        // slower.
        self.psql(&self.admin_url, &format!("CREATE DATABASE {name} TEMPLATE template0")).expect_code(0);
        Database {
            url: with_database(&self.admin_url, &name),
            name,
            admin_url: self.admin_url.clone(),
            psql: self.psql.clone(),
        }
    }

    #[track_caller]
    fn psql(&self, url: &str, statement: &str) -> proc::Finished {
        run_psql(&self.psql, url, statement)
    }
}

/// An empty database for one test. It is dropped with the value, even while connections to it are open.
#[derive(Debug)]
pub struct Database {
    name: String,
    url: String,
    admin_url: String,
    psql: PathBuf,
}

impl Database {
    /// Returns its URL, `postgres://user@host:port/name`.
    pub fn url(&self) -> String {
        self.url.clone()
    }

    /// Returns the database name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Runs a statement over its own connection, as a second observer. Returns the rows: columns separated by `|`,
    /// one row per line.
    #[track_caller]
    pub fn query(&self, statement: &str) -> String {
        run_psql(&self.psql, &self.url, statement).expect_code(0).stdout.trim_end().to_owned()
    }

    /// Runs a file of statements, which may be longer than an argument of a program.
    #[track_caller]
    pub fn load_file(&self, file: &Path) {
        proc::run(psql(&self.psql, &self.url).arg("--file").arg(file), LOAD_LIMIT).expect_code(0);
    }

    /// Runs a statement that moves much data, which may take minutes on a busy machine.
    #[track_caller]
    pub fn load(&self, statement: &str) {
        proc::run(&mut command(&self.psql, &self.url, statement), LOAD_LIMIT).expect_code(0);
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        // Best effort: the test may have killed the server, and a panic here would hide the test's own.
        command(&self.psql, &self.admin_url, &format!("DROP DATABASE IF EXISTS {} WITH (FORCE)", self.name))
            .output()
            .ok();
    }
}

#[track_caller]
fn run_psql(psql: &PathBuf, url: &str, statement: &str) -> proc::Finished {
    proc::run(&mut command(psql, url, statement), STATEMENT_LIMIT)
}

fn command(program: &PathBuf, url: &str, statement: &str) -> Command {
    let mut command = psql(program, url);
    command.args(["--command", statement]);
    command
}

fn psql(program: &PathBuf, url: &str) -> Command {
    let mut command = Command::new(program);
    command
        .args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--set=ON_ERROR_STOP=1"])
        .args(["--dbname", url])
        .env("PGCONNECT_TIMEOUT", "10");
    command
}

/// Returns the URL of another database on the same server, with the same user, password and options.
fn with_database(admin_url: &str, name: &str) -> String {
    let (address, options) = match admin_url.split_once('?') {
        Some((address, options)) => (address, format!("?{options}")),
        None => (admin_url, String::new()),
    };
    let authority_starts = address.find("://").map_or(0, |at| at + "://".len());
    let authority_ends =
        address[authority_starts..].find('/').map_or(address.len(), |at| authority_starts + at);
    format!("{}/{name}{options}", &address[..authority_ends])
}

#[cfg(test)]
mod tests {
    use super::with_database;

    #[test]
    fn an_address_keeps_everything_but_the_database() {
        let cases = [
            ("postgres://u@127.0.0.1:5/postgres", "postgres://u@127.0.0.1:5/x"),
            ("postgres://u:p@host", "postgres://u:p@host/x"),
            ("postgresql://host/?sslmode=disable", "postgresql://host/x?sslmode=disable"),
        ];
        for (admin, expected) in cases {
            assert_eq!(with_database(admin, "x"), expected);
        }
    }
}
