//! A plan over HTTP against a bare handler that runs one SELECT on the same store, and how long an event takes from the
//! end of its commit to a reader of another process.

use std::env;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Path, State};
use axum::routing::get;
use drydock_domain::{Command as Order, Enforcement, Phase, Remains, RunId, Start, TakeOverCause, decide};
use drydock_store::{Leases, PlanLease, Store, StoreUrl};
use drydock_testkit::postgres;

use crate::measure::{Promise, SPELL, Table, median};
use crate::seed;

/// Set for a copy of this program that is the bare server, to the file of its store.
pub(crate) const BARE: &str = "DRYDOCK_BENCH_BARE";
const ROUNDS: usize = 7;
const CLIENTS: usize = 4;
const EVENTS: usize = 60;

pub(crate) async fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let path = world.path().join("drydock.db");
    let store = seed::open(&StoreUrl::Sqlite(path.clone())).await;
    let (plan, lease) = seed::plan(&store, 0).await;
    let ours = Server::ours(path.to_str().unwrap(), world.path().to_str().unwrap());
    let mut bare = Command::new(env::current_exe().unwrap());
    let bare = Server::of(bare.env(BARE, &path), String::new());
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let theirs = bare.spell(&format!("/{}", plan.id));
        ratios.push(ours.spell(&format!("/api/v1/plans/{}", plan.id)) / theirs);
    }
    table.ratio(
        "SQLite: `GET /plans/{id}` with a token ÷ a bare handler with one SELECT",
        Promise::AtLeast(0.5),
        &ratios,
    );
    let (told, _) = delays(&ours, &store, &lease).await;
    table.milliseconds("SQLite: event, from commit to a reader of another process", 50.0, &told);
    drop(ours);

    let database = postgres::database();
    let store = seed::open(&database.url().parse().unwrap()).await;
    let (_, lease) = seed::plan(&store, 0).await;
    let ours = Server::ours(&database.url(), world.path().to_str().unwrap());
    let (told, committed) = delays(&ours, &store, &lease).await;
    let what = "PostgreSQL: event, from commit to a reader of another process ÷ a commit";
    table.ratio(what, Promise::AtMost(2.0), &[median(&told) / median(&committed)]);
}

/// A server in a process of its own.
struct Server {
    child: Child,
    address: String,
    bearer: String,
}

impl Server {
    fn ours(store: &str, home: &str) -> Self {
        let drydock = |words: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_drydock"));
            command.args(["--store", store]).args(words).env("HOME", home).env_remove("XDG_STATE_HOME");
            command
        };
        let name = format!("bench-{}", store.len());
        let made = drydock(&["token", "create", &name, "--role", "reader"]).output().unwrap();
        let bearer = format!("Authorization: Bearer {}\r\n", String::from_utf8(made.stdout).unwrap().trim());
        Self::of(&mut drydock(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--no-link"]), bearer)
    }

    fn of(command: &mut Command, bearer: String) -> Self {
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stderr.take().unwrap()).read_line(&mut said).unwrap();
        let address = said.split("http://").nth(1).unwrap().split_whitespace().next().unwrap().to_owned();
        Self { child, address, bearer }
    }

    /// Returns how many requests a second it answers to a few clients that each keep their connection.
    fn spell(&self, path: &str) -> f64 {
        let ask = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\n", self.address, self.bearer);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                let (ask, stream) = (ask.clone(), TcpStream::connect(&self.address).unwrap());
                stream.set_nodelay(true).unwrap();
                thread::spawn(move || {
                    let (mut stream, began, mut count) = (BufReader::new(stream), Instant::now(), 0_u64);
                    while began.elapsed() < SPELL {
                        stream.get_mut().write_all(ask.as_bytes()).unwrap();
                        answer(&mut stream);
                        count += 1;
                    }
                    count as f64 / began.elapsed().as_secs_f64()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).sum()
    }

    /// Follows the feed, and tells when each event came.
    fn follow(&self) -> mpsc::Receiver<(i64, Instant)> {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let ask = format!("GET /api/v1/events HTTP/1.0\r\nHost: {}\r\n{}", self.address, self.bearer);
        stream.write_all(format!("{ask}Accept: text/event-stream\r\n\r\n").as_bytes()).unwrap();
        let (told, heard) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let Some(id) = line.strip_prefix("id: ") else { continue };
                if told.send((id.parse().unwrap(), Instant::now())).is_err() {
                    break;
                }
            }
        });
        heard
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn answer(stream: &mut BufReader<TcpStream>) {
    let (mut line, mut length) = (String::new(), 0);
    stream.read_line(&mut line).unwrap();
    assert!(line.contains(" 200 "), "{line}");
    while line != "\r\n" {
        line.clear();
        stream.read_line(&mut line).unwrap();
        if let Some(said) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = said.trim().parse().unwrap();
        }
    }
    stream.read_exact(&mut vec![0; length]).unwrap();
}

/// Returns how long each event took after its commit, and how long the commits took, in milliseconds.
async fn delays(server: &Server, store: &Store, lease: &PlanLease) -> (Vec<f64>, Vec<f64>) {
    let heard = server.follow();
    // Whatever was there before.
    let newest = store.event_newest().await.unwrap();
    while heard.recv_timeout(Duration::from_secs(20)).unwrap().0 < newest {}
    let (mut told, mut committed) = (Vec::new(), Vec::new());
    for number in 0..EVENTS {
        let run = RunId::from_random(seed::scattered(number as u128 + 1_000_000));
        let enforcement = Enforcement::nothing(Phase::Strategize);
        let start =
            Order::Start(Start { run, base: "1".repeat(40), from: None, replaces: None, enforcement });
        for order in [start, Order::TakeOver(TakeOverCause::Interrupted, Remains::Work(None))] {
            let context = seed::context(seed::scattered(number as u128 + 2_000_000));
            let judge = Box::new(move |snapshot: &_| decide(snapshot, order, &context));
            let began = Instant::now();
            store.plan_transact(Leases::Plan(lease), judge).await.unwrap();
            let ended = Instant::now();
            let (_, came) = heard.recv_timeout(Duration::from_secs(20)).unwrap();
            committed.push((ended - began).as_secs_f64() * 1e3);
            told.push(came.saturating_duration_since(ended).as_secs_f64() * 1e3);
            // A transition may tell more than one event; the first one counts.
            while heard.recv_timeout(Duration::from_millis(30)).is_ok() {}
        }
    }
    (told, committed)
}

/// Serves a plan's row and nothing else.
pub(crate) async fn bare(path: &str) {
    let open = || rusqlite::Connection::open(path).unwrap();
    let pool = Arc::new(Mutex::new((0..CLIENTS).map(|_| open()).collect::<Vec<_>>()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    std::io::stderr()
        .write_all(format!("on http://{}\n", listener.local_addr().unwrap()).as_bytes())
        .unwrap();
    axum::serve(listener, Router::new().route("/{id}", get(body)).with_state(pool)).await.unwrap();
}

type Pool = Arc<Mutex<Vec<rusqlite::Connection>>>;

async fn body(State(pool): State<Pool>, Path(id): Path<String>) -> String {
    let connection = pool.lock().unwrap().pop().unwrap();
    let found = connection
        .prepare_cached("SELECT body FROM plans WHERE id = ?1")
        .unwrap()
        .query_row([id], |row| row.get(0))
        .unwrap();
    pool.lock().unwrap().push(connection);
    found
}
