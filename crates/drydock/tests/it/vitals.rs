//! What programs that watch a server see, and TLS.

use std::process::Command;

use drydock_testkit::{proc, wait};
use serde_json::Value;

use crate::receiver::certify;
use crate::tokens::{create, human, knock};
use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World};

fn numbers(text: &str, name: &str) -> f64 {
    let line =
        text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("no {name} in {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

on_both! {
    /// Breaks when whoever watches cannot tell a server that works from one that does not, or numbers do not move.
    fn a_server_says_how_it_is(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let server = Server::start(&world, &["--log-format", "json"]);
        let host = format!("Host: {}\r\n", server.address());
        for (path, text) in [("/healthz", "alive"), ("/readyz", "ready")] {
            let reply = knock(&server, &host, &format!("GET {path}"), &Value::Null);
            assert_eq!((reply.status, reply.body.as_str().unwrap().trim()), (200, text));
        }
        let metrics = || {
            let reply = knock(&server, &host, "GET /metrics", &Value::Null);
            assert!(reply.status == 200 && reply.head.contains("text/plain; version=0.0.4"), "{}", reply.head);
            reply.body.as_str().unwrap().to_owned()
        };
        let before = metrics();
        assert!(!before.contains("state=\"applied\""), "{before}");
        for path in ["/plans", "/plans/pln-0000"] {
            knock(&server, &format!("{host}{}", server.bearer()), &format!("GET {path}"), &Value::Null);
        }
        let plan = world.plan(&["--profile", "auto"]);
        wait::until("the plan to land", LIMIT, || (world.stage(&plan) == "apply/applied").then_some(()));
        let after = metrics();
        assert_eq!(numbers(&after, "drydock_plans{state=\"applied\"}"), 1.0);
        let committed = "drydock_transitions_total{outcome=\"committed\"}";
        assert!(numbers(&after, committed) > numbers(&before, committed));
        assert!(numbers(&after, "drydock_commit_seconds_count") >= numbers(&after, "drydock_commit_seconds_bucket{le=\"2.5\"}"));
        assert!(numbers(&after, "drydock_http_requests_total{method=\"GET\",route=\"/metrics\",status=\"200\"}") >= 1.0);
        for (route, status) in [("/plans", 200), ("/plans/{id}", 404), ("/api/v1/plans", 200)] {
            let name = format!("drydock_http_requests_total{{method=\"GET\",route=\"{route}\",status=\"{status}\"}}");
            assert!(numbers(&after, &name) >= 1.0, "{name}");
        }
        for name in ["drydock_transitions_total{outcome=\"refused\"}", "drydock_transitions_total{outcome=\"failed\"}",
            "drydock_decisions_open", "drydock_outbox_effects", "drydock_outbox_overdue_seconds",
            "drydock_locks_held", "drydock_event_readers", "drydock_runs_active"] {
            numbers(&after, name);
        }
        let told = server.said();
        let line = told.lines().find(|line| line.contains("\"answered\"")).expect("requests are told");
        let line: Value = serde_json::from_str(line).unwrap();
        assert!(line["route"].is_string() && line["status"].is_number() && line["level"] == "INFO", "{line}");
        server.stop().expect(0);
    }
}

on_both! {
    /// Breaks when whoever sends requests on goes on sending them to a server that stops, or takes it for dead while it
    /// still hands back what runs.
    fn a_server_that_drains_is_alive_and_not_ready(kind: Kind) {
        // It does not end when it is asked to, so that the server has to wait for it.
        let script = "trap '' TERM; touch HOME/began; while [ ! -e HOME/go ]; do sleep 0.05; done";
        let world = World::new(kind);
        world.agent("writer", &script.replace("HOME/", &world.place("")));
        world.action("fix", "[agents]\nexecute = \"writer\"");
        let server = Server::start(&world, &[]);
        world.plan(&["--profile", "auto"]);
        world.wait_file("began");
        let host = format!("Host: {}\r\n", server.address());
        let seen = |path: &str| knock(&server, &host, &format!("GET {path}"), &Value::Null).status;
        assert_eq!(seen("/readyz"), 200);
        server.terminate();
        wait::until("it not to be ready", LIMIT, || (seen("/readyz") == 503).then_some(()));
        assert_eq!(seen("/healthz"), 200);
        world.write("go", "");
        server.ended().expect(0);
    }
}

on_both! {
    /// Breaks when a server whose store is away says that it is ready, begins a stream, or does not notice that the store is back.
    fn a_server_without_its_store_is_alive_and_not_ready(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let host = format!("Host: {}\r\n", server.address());
        let seen = |path: &str| knock(&server, &host, &format!("GET {path}"), &Value::Null).status;
        assert_eq!(seen("/readyz"), 200);
        world.query("ALTER TABLE events RENAME TO events_away");
        assert_eq!((seen("/readyz"), seen("/healthz")), (503, 200));
        let bearer = format!("{host}{}", server.bearer());
        let feed = |accept: &str| knock(&server, &format!("{bearer}Accept: {accept}\r\n"), "GET /api/v1/events", &Value::Null);
        let (page, stream) = (feed("application/json"), feed("text/event-stream"));
        assert!(page.status >= 500 && stream.status == page.status, "{} {}", page.status, stream.status);
        assert_eq!(stream.body["code"], page.body["code"]);
        world.query("ALTER TABLE events_away RENAME TO events");
        assert_eq!(seen("/readyz"), 200);
    }
}

/// Breaks when a stranger reads the numbers of a server that others can reach, or when any token does not.
#[test]
fn where_others_can_reach_it_numbers_need_a_token_of_any_role() {
    let world = World::new(Kind::Sqlite);
    human(&world);
    let (reader, _) = create(&world, "prometheus", &["--role", "reader"]);
    let server = Server::start(&world, &["--listen", "0.0.0.0:0", "--workers", "0"]);
    assert!(server.said().contains("--tls-cert"), "it warns: {}", server.said());
    let host = format!("Host: {}\r\n", server.address().replace("0.0.0.0", "127.0.0.1"));
    let status =
        |headers: &str, path: &str| knock(&server, headers, &format!("GET {path}"), &Value::Null).status;
    assert_eq!((status(&host, "/healthz"), status(&host, "/readyz")), (200, 200));
    assert_eq!(status(&host, "/metrics"), 401);
    assert_eq!(status(&format!("{host}Authorization: Bearer {reader}\r\n"), "/metrics"), 200);
}

/// Breaks when a server with a certificate speaks in the clear, or the command line speaks to one it cannot trust.
#[test]
fn a_certificate_makes_everything_private() {
    let world = World::new(Kind::Sqlite);
    certify(&world.path(""));
    let files = [world.place("server.crt"), world.place("server.key")];
    let tls = ["--workers", "0", "--tls-cert", &files[0], "--tls-key", &files[1]];
    let server = Server::start(&world, &tls);
    let link = server.link();
    assert!(link.starts_with("/welcome"), "{link}");
    let at = format!("https://{}", server.address());
    let list = |authority: &str, url: &str| {
        let mut command: Command = world.command(&["--server", url, "plan", "list"]);
        Answer::of(proc::run(command.env("SSL_CERT_FILE", world.place(authority)), LIMIT))
    };
    list("ca.crt", &at).expect(0);
    assert_eq!(list("server.key", &at).expect(1).error_code(), "server_unreachable");
    assert_eq!(list("ca.crt", &at.replace("https", "http")).expect(1).error_code(), "server_unreachable");
    world.write("wrong.pem", "no certificate");
    for wrong in [
        ["nowhere", &files[1]],
        [&world.place("wrong.pem"), &files[1]],
        [&files[0], &world.place("wrong.pem")],
    ] {
        let refused = world.drydock(&["serve", "--tls-cert", wrong[0], "--tls-key", wrong[1]]).expect(2);
        assert!(refused.json["error"]["hint"].to_string().contains("--tls-cert"), "{:#}", refused.json);
    }
}

/// Breaks when a server goes on showing a certificate that was replaced, or has none when the new one makes no sense.
#[test]
fn a_certificate_is_read_again_when_told() {
    let world = World::new(Kind::Sqlite);
    certify(&world.path(""));
    std::fs::rename(world.path("ca.crt"), world.path("old.crt")).unwrap();
    let files = [world.place("server.crt"), world.place("server.key")];
    let tls = ["--workers", "0", "--log-format", "text", "--tls-cert", &files[0], "--tls-key", &files[1]];
    let server = Server::start(&world, &tls);
    let at = format!("https://{}", server.address());
    let list = |authority: &str| {
        let mut command: Command = world.command(&["--server", &at, "plan", "list"]);
        Answer::of(proc::run(command.env("SSL_CERT_FILE", world.place(authority)), LIMIT)).code
    };
    assert_eq!(list("old.crt"), Some(0));
    certify(&world.path(""));
    assert_eq!((list("old.crt"), list("ca.crt")), (Some(0), Some(1)), "nobody said so yet");
    server.hang_up();
    wait::until("the new certificate", LIMIT, || (list("ca.crt") == Some(0)).then_some(()));
    assert_eq!(list("old.crt"), Some(1));
    world.write("server.crt", "no certificate");
    server.hang_up();
    wait::until("the refusal", LIMIT, || server.said().contains("stays in use").then_some(()));
    assert_eq!(list("ca.crt"), Some(0));
    server.stop().expect(0);
}
