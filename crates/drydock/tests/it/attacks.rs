//! Attacks on a server: what each tries, and that those who ask properly are answered meanwhile. Those by a wrong host, a
//! foreign page, a wrong token or a token in a log are in `tokens.rs` and `signing.rs`.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

use drydock_testkit::{proc, wait};
use serde_json::{Value, json};

use crate::tokens::{ask_with, knock};
use crate::working::Server;
use crate::world::{Kind, LIMIT, World};

fn headers(server: &Server) -> String {
    format!("Host: {}\r\n{}", server.address(), server.bearer())
}

fn is_well(server: &Server) -> bool {
    ask_with(server, &headers(server), "GET /plans", &Value::Null).status == 200
}

/// Returns how much memory a process has now, in kilobytes.
fn memory_kb(pid: u32) -> u64 {
    kilobytes(pid, "VmRSS:")
}

/// Returns how much memory a process had at the most, in kilobytes.
pub(crate) fn peak_kb(pid: u32) -> u64 {
    kilobytes(pid, "VmHWM:")
}

fn kilobytes(pid: u32, what: &str) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(what)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Breaks when a text with NUL, which git refuses after an agent has done its work, is taken; or when an address or a
/// number that nobody means gets anything but a refusal or a plain answer.
#[test]
fn what_nobody_means_is_refused_or_answered_plainly() {
    let world = World::with_writer(Kind::Sqlite, "");
    world.settings("[defaults]\nagent = \"writer\"\n");
    world.plan(&[]);
    let server = Server::start(&world, &["--workers", "0"]);
    let ask = |what: &str, body: &Value| ask_with(&server, &headers(&server), what, body);
    let nul = ask("POST /plans", &json!({ "project": "app", "task": "a\0b" }));
    assert_eq!((nul.status, &nul.body["code"]), (422, &json!("invalid")), "{nul:?}");
    let escaped = ask("POST /plans", &json!({ "project": "app", "task": "the text \\u0000" }));
    assert_eq!(escaped.status, 200, "{escaped:?}");
    let unreadable = ask("GET /backups/%FF/1", &Value::Null);
    assert_eq!((unreadable.status, &unreadable.body["code"]), (400, &json!("unparsable")), "{unreadable:?}");
    for after in [i64::MIN, -1, i64::MAX] {
        let page = ask(&format!("GET /events?after={after}"), &Value::Null);
        let all = page.body["events"].as_array().map_or(0, Vec::len);
        assert_eq!((page.status, all > 0), (200, after < 0), "{after}: {page:?}");
        let ask = format!(
            "GET /api/v1/events?after={after} HTTP/1.1\r\n{}Accept: text/event-stream\r\n\r\n",
            headers(&server)
        );
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.write_all(ask.as_bytes()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut begun = [0; 15];
        stream.read_exact(&mut begun).unwrap();
        assert_eq!(&begun, b"HTTP/1.1 200 OK", "{after}");
    }
    assert!(is_well(&server));
}

/// Breaks when a path leads out of what is served, or answers anything but a refusal.
#[test]
fn no_path_leads_out() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    for path in [
        "/../../../../etc/passwd",
        "/api/v1/../../etc/passwd",
        "/api/v1/projects/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/projects/%2e%2e%2fetc",
        "/api/v1/changesets/..",
        "/api/v1/backups/..%2f../1",
        "/assets/..%2f..%2fetc%2fpasswd",
        "/assets/../../etc/passwd",
        "//etc/passwd",
        "/%00",
        "/api/v1/plans/%00",
    ] {
        let reply = knock(&server, &headers(&server), &format!("GET {path}"), &Value::Null);
        assert!((400..500).contains(&reply.status), "{path}: {reply:?}");
        assert!(!reply.body.to_string().contains("root:"), "{path}");
    }
    assert!(is_well(&server));
}

/// Breaks when a huge body is read, kept, or answered with anything but its refusal.
#[test]
fn a_hundred_megabytes_are_refused_and_not_kept() {
    const LENGTH: usize = 100 * 1024 * 1024;
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    assert!(is_well(&server));
    let before = memory_kb(server.pid());
    for key in ["", "Idempotency-Key: k1\r\n"] {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let head = format!(
            "POST /api/v1/plans HTTP/1.1\r\n{}{key}Content-Type: application/json\r\n",
            headers(&server)
        );
        stream.write_all(format!("{head}Content-Length: {LENGTH}\r\n\r\n").as_bytes()).unwrap();
        let (mut reader, part) = (stream.try_clone().unwrap(), vec![b' '; 1024 * 1024]);
        // It may hang up on us before we are through.
        for _ in 0..LENGTH / part.len() {
            if stream.write_all(&part).is_err() {
                break;
            }
        }
        stream.shutdown(Shutdown::Write).ok();
        let mut answer = Vec::new();
        reader.read_to_end(&mut answer).ok();
        let answer = String::from_utf8_lossy(&answer);
        assert!(answer.is_empty() || answer.contains(" 413 ") && answer.contains("too_large"), "{answer}");
    }
    assert!(is_well(&server));
    let grown = memory_kb(server.pid()).saturating_sub(before);
    assert!(grown < 40 * 1024, "it grew by {grown} kB");
}

/// Breaks when somebody who connects very often and says nothing, or half of something, keeps others from being
/// answered.
#[test]
fn thousands_of_half_open_connections_keep_nobody_from_asking() {
    let many = if std::env::var_os("DRYDOCK_SOAK").is_some() { 10_000 } else { 1_500 };
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let (mut open, began) = (Vec::new(), Instant::now());
    for number in 0..many {
        let mut stream = TcpStream::connect_timeout(&server.address().parse().unwrap(), LIMIT).unwrap();
        if number % 2 == 0 {
            // One that was put off already may be gone.
            stream.write_all(b"GET /api/v1/plans HTTP/1.1\r\nHost: ").ok();
        }
        open.push(stream);
        if number % 500 == 499 {
            assert!(is_well(&server), "after {number}");
        }
    }
    assert!(is_well(&server));
    println!("{many} half-open connections in {:.1?}, peak {} kB", began.elapsed(), peak_kb(server.pid()));
    // And those that said nothing are put off in the end.
    let first = &mut open[1];
    first.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    wait::until("a silent connection to be put off", LIMIT, || {
        let is_gone = match first.read(&mut [0; 256]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == ErrorKind::ConnectionReset,
        };
        is_gone.then_some(())
    });
    server.stop().expect(0);
}

/// Asks on a connection that stays open, without a token; says whether it was answered.
fn asks_on(stream: &mut TcpStream, server: &Server) -> bool {
    let line = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", server.address());
    let mut part = [0; 4096];
    stream.write_all(line.as_bytes()).is_ok()
        && stream.read(&mut part).is_ok_and(|read| part[..read].starts_with(b"HTTP/1.1 200"))
}

/// Breaks when connections that asked once, as anybody may, and are then kept open keep others from being answered, or when
/// a stream that somebody reads is cut off to make room for others.
#[test]
fn connections_that_were_answered_keep_nobody_from_asking() {
    const PLACES: usize = 64;
    let world = World::new(Kind::Sqlite);
    let serve = world.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0"]);
    // The places are half of the files where there are few of them.
    let mut few = Command::new("sh");
    few.args(["-c", &format!("ulimit -n {}; exec \"$0\" \"$@\"", 2 * PLACES)]);
    few.arg(serve.get_program()).args(serve.get_args()).current_dir(serve.get_current_dir().unwrap());
    few.env_clear().envs(serve.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let server = Server::of(proc::spawn(&mut few));
    let mut reader = TcpStream::connect(server.address()).unwrap();
    reader.set_read_timeout(Some(LIMIT)).unwrap();
    let line = "GET /api/v1/events HTTP/1.1\r\nAccept: text/event-stream\r\n";
    reader.write_all(format!("{line}{}\r\n", headers(&server)).as_bytes()).unwrap();
    let mut reader = BufReader::new(reader);
    hear(&mut reader, "retry: 1000");
    let mut open = Vec::new();
    for number in 0..2 * PLACES {
        let mut stream = TcpStream::connect(server.address()).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        assert!(asks_on(&mut stream, &server), "connection {number} is not answered");
        open.push(stream);
    }
    assert!(is_well(&server));
    assert!(!asks_on(&mut open[0], &server), "the one that was silent longest is still there");
    assert!(asks_on(open.last_mut().unwrap(), &server), "one that asked a moment ago was put off");
    world.agent("writer", "true");
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let plan = world.plan(&[]);
    hear(&mut reader, &plan);
    server.stop().expect(0);
}

/// Reads a stream until it has said this.
fn hear(reader: &mut impl BufRead, what: &str) {
    let mut heard = String::new();
    while !heard.contains(what) {
        assert_ne!(reader.read_line(&mut heard).unwrap(), 0, "the stream ended: {heard}");
    }
}
