//! What a collector of traces sees of a server. The collector is a real one on loopback, and reads what it is sent by
//! itself: the format is a fact, not a library of ours.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;

use drydock_testkit::wait;
use serde_json::json;

use crate::tokens::{ask_with, human};
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, text};

/// A span as it was sent.
#[derive(Debug, Clone, Default)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    name: String,
    told: BTreeMap<String, String>,
}

/// Somebody who takes traces.
struct Collector {
    address: String,
    bodies: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let bodies = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&bodies);
        // It ends with the test's process.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut stream = BufReader::new(stream);
                let (mut head, mut length) = (Vec::new(), 0);
                loop {
                    let mut line = String::new();
                    if stream.read_line(&mut line).unwrap() <= 2 {
                        break;
                    }
                    let line = line.trim().to_lowercase();
                    if let Some(text) = line.strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                    head.push(line);
                }
                assert_eq!(head[0], "post /v1/traces http/1.1");
                assert!(head.contains(&"content-type: application/x-protobuf".to_owned()), "{head:?}");
                let mut body = vec![0; length];
                stream.read_exact(&mut body).unwrap();
                kept.lock().unwrap().push(body);
                write!(stream.get_mut(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
            }
        });
        Self { address, bodies }
    }

    fn spans(&self) -> Vec<Span> {
        let bodies = self.bodies.lock().unwrap();
        let resources = bodies.iter().flat_map(|body| within(body, 1));
        let scopes = resources.flat_map(|resource| within(resource, 2)).flat_map(|scope| within(scope, 2));
        scopes.map(span).collect()
    }

    fn bytes(&self) -> String {
        String::from_utf8_lossy(&self.bodies.lock().unwrap().concat()).into_owned()
    }
}

/// Reads a span: fields 1, 2, 4, 5 and 9 of the message.
fn span(message: &[u8]) -> Span {
    let hex = |number| {
        let bytes = within(message, number).into_iter().next().unwrap_or_default();
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let words = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let told = within(message, 9).into_iter().map(|pair| {
        let value = within(within(pair, 2)[0], 1).first().map(|text| words(text)).unwrap_or_default();
        (words(within(pair, 1)[0]), value)
    });
    let name = words(within(message, 5)[0]);
    Span { trace: hex(1), id: hex(2), parent: hex(4), name, told: told.collect() }
}

/// Returns the parts of a protocol buffer message that are of this number and have a length.
fn within(mut message: &[u8], wanted: u64) -> Vec<&[u8]> {
    let mut found = Vec::new();
    while !message.is_empty() {
        let key = varint(&mut message);
        let length = match key & 7 {
            0 => {
                varint(&mut message);
                continue;
            }
            1 => 8,
            2 => usize::try_from(varint(&mut message)).unwrap(),
            5 => 4,
            other => panic!("no such wire type: {other}"),
        };
        let (part, rest) = message.split_at(length);
        if key == wanted << 3 | 2 {
            found.push(part);
        }
        message = rest;
    }
    found
}

fn varint(message: &mut &[u8]) -> u64 {
    let length = message.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (bytes, rest) = message.split_at(length);
    *message = rest;
    bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
}

/// Says whether one span is somewhere below another.
fn is_below(spans: &[Span], span: &Span, above: &Span) -> bool {
    let parent = spans.iter().find(|one| one.id == span.parent);
    parent.is_some_and(|parent| parent.id == above.id || is_below(spans, parent, above))
}

/// Breaks when a run, what happens in it or a request is in no trace or in the wrong one, or when a secret or what
/// somebody wrote is told.
#[test]
fn a_collector_sees_requests_and_the_runs_of_a_plan() {
    let collector = Collector::start();
    let world = World::new(Kind::Sqlite);
    world.agent("writer", "echo hi > hello.txt # scripts stay here");
    let judge = "[[validations]]\nname = \"judge\"\ncommand = \"test -e hello.txt\"\nrequired = true";
    world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{judge}"));
    let secret = human(&world);
    world.settings(&format!("[telemetry]\notlp = \"{}\"\n", collector.address));
    let server = Server::start(&world, &[]);
    let (trace, caller) = ("4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7");
    let headers = format!(
        "Host: {}\r\nAuthorization: Bearer {secret}\r\ntraceparent: 00-{trace}-{caller}-01\r\n",
        server.address()
    );
    let asked = json!({ "action": "fix", "project": "app", "profile": "auto" });
    let made = ask_with(&server, &headers, "POST /plans", &asked);
    let plan = text(&made.body["plan"]["id"]);
    wait::until("the plan to land", LIMIT, || (world.stage(&plan) == "apply/applied").then_some(()));
    server.stop().expect(0);

    // What is left is told before the server is gone.
    let spans = collector.spans();
    let one = |name: &str| {
        // A run goes by its phase.
        let is_it = |span: &&Span| {
            span.name == name
                || (span.name == "run" && span.told.get("drydock.phase").is_some_and(|phase| phase == name))
        };
        let mut found = spans.iter().filter(is_it);
        let span = found.next().unwrap_or_else(|| panic!("no {name} in {spans:#?}"));
        assert!(found.next().is_none(), "{name} twice");
        span
    };
    let request = one("POST /api/v1/plans");
    assert_eq!((request.trace.as_str(), request.parent.as_str()), (trace, caller));
    for phase in ["strategize", "execute", "apply"] {
        let run = one(phase);
        assert_eq!(run.told["drydock.plan"], plan);
        assert!(run.told["drydock.run"].starts_with("run-"), "{run:?}");
        let inside = |name: &str| spans.iter().any(|span| span.name == name && is_below(&spans, span, run));
        assert!(inside("transition"), "{phase}: {spans:#?}");
    }
    for (name, phase) in [("agent", "execute"), ("landing", "apply"), ("git update-ref", "landing")] {
        let above = one(phase);
        let inside = spans.iter().any(|span| span.name == name && is_below(&spans, span, above));
        assert!(inside, "no {name} in {phase}: {spans:#?}");
    }
    assert_eq!(
        spans.iter().filter(|span| span.name == "validation").count(),
        2,
        "of the work, and when it landed"
    );
    assert!(collector.bytes().contains("service.name"));
    for hidden in [secret.as_str(), "scripts stay here", "Do fix", "test -e"] {
        assert!(!collector.bytes().contains(hidden), "{hidden} is told");
    }
}

/// Breaks when plans wait for a collector that is not there, or a server cannot end without it.
#[test]
fn a_collector_that_is_away_holds_nothing_up() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let args = ["serve", "--listen", "127.0.0.1:0", "--log-format", "text"];
    let mut command = world.command(&args);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{nobody}"));
    let server = Server::of(drydock_testkit::proc::spawn(&mut command));
    let plan = world.plan(&["--profile", "auto"]);
    wait::until("the plan to land", LIMIT, || (world.stage(&plan) == "apply/applied").then_some(()));
    wait::until("it to be told", LIMIT, || server.said().contains("could not send traces").then_some(()));
    server.stop().expect(0);
}

/// Breaks when an address that cannot be one is found out only when traces are missing.
#[test]
fn an_address_that_is_none_is_refused_at_the_start() {
    let world = World::new(Kind::Sqlite);
    world.settings("[telemetry]\notlp = \"127.0.0.1:4318\"\n");
    let refused = world.drydock(&["serve"]).expect(2);
    assert!(refused.json["error"]["hint"].to_string().contains("[telemetry] otlp"), "{:#}", refused.json);
}
