//! The databases of tests: empty, separate from each other, and removed afterwards, even after `kill -9`.

use std::env;
use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use drydock_testkit::postgres::{PostgresServer, Programs, SERVER_VARIABLE, database};
use drydock_testkit::{proc, wait};

const LIMIT: Duration = Duration::from_secs(60);

/// Set in the process that `a_killed_process_leaves_no_cluster_behind` starts from this same file.
const HOLD: &str = "TESTKIT_HOLD_A_CLUSTER";

/// Breaks if two calls return the same database, or one that was used before.
#[test]
fn databases_are_empty_and_apart() {
    let (one, two) = (database(), database());
    one.query("CREATE TABLE mine (x bigint)");
    assert_eq!(two.query("SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"), "0");
    assert_eq!(one.query("SELECT count(*) FROM pg_tables WHERE tablename = 'mine'"), "1");
}

/// Breaks if the drop is not forced: an open connection would keep the database.
#[test]
fn a_database_goes_with_its_value_even_while_someone_is_connected() {
    let observer = database();
    let doomed = database();
    let name = doomed.name().to_owned();
    let programs = Programs::find().expect("the tests above need them as well");
    let mut sleeper = Command::new(programs.directory().join("psql"));
    let mut sleeper = proc::spawn(sleeper.args(["-X", "-d", &doomed.url(), "-c", "SELECT pg_sleep(600)"]));
    let connected = format!("SELECT count(*) FROM pg_stat_activity WHERE datname = '{name}'");
    wait::until("a connection to the database", LIMIT, || (observer.query(&connected) == "1").then_some(()));

    drop(doomed);
    assert_eq!(observer.query(&format!("SELECT count(*) FROM pg_database WHERE datname = '{name}'")), "0");
    wait::until("the connection to be cut", LIMIT, || (!sleeper.is_alive()).then_some(()));
}

/// Breaks if commits are not durable on the private server: crash tests would prove nothing.
#[test]
fn the_private_server_is_durable_and_listens_on_loopback_only() {
    let server =
        PostgresServer::start(&Programs::find().expect("PostgreSQL's programs")).expect("a private server");
    let database = server.database();
    let settings = ["fsync", "synchronous_commit", "listen_addresses", "unix_socket_directories"];
    let seen: Vec<String> = settings.iter().map(|name| database.query(&format!("SHOW {name}"))).collect();
    assert_eq!(seen, ["on", "on", "127.0.0.1", ""]);
}

/// Breaks if the keeper script dies with the process, misses its end, or leaves the directory.
#[test]
fn a_killed_process_leaves_no_cluster_behind() {
    if env::var_os(HOLD).is_some() {
        return hold_a_cluster();
    }
    let mut holder = Command::new(env::current_exe().expect("the path of this test"));
    holder.args(["--exact", "a_killed_process_leaves_no_cluster_behind", "--nocapture"]);
    let holder = proc::spawn(holder.env(HOLD, "1").env_remove(SERVER_VARIABLE));
    let (port, directory) = wait::until("the holder's cluster", LIMIT, || {
        let said = holder.stdout();
        let words = said.lines().find_map(|line| line.strip_prefix("holding ")?.split_once(' '));
        words.map(|(port, directory)| (port.parse::<u16>().unwrap(), directory.to_owned()))
    });
    assert!(Path::new(&directory).exists() && TcpStream::connect(("127.0.0.1", port)).is_ok());

    holder.kill();
    wait::until("the server to be gone", LIMIT, || TcpStream::connect(("127.0.0.1", port)).err());
    let cluster = Path::new(&directory).parent().expect("the cluster's directory");
    wait::until("the directory to be gone", LIMIT, || (!cluster.exists()).then_some(()));
}

fn hold_a_cluster() {
    let database = database();
    let (port, directory) = (database.query("SHOW port"), database.query("SHOW data_directory"));
    writeln!(io::stdout(), "holding {port} {directory}").expect("standard output is a file");
    std::thread::sleep(LIMIT);
}
