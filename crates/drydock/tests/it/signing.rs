//! Signing a browser in: one link, once; a cookie that only our own pages can use; and streams that end with their token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::tokens::{ask, ask_with, create, knock};
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, list, text};

fn host(server: &Server) -> String {
    format!("Host: {}\r\n", server.address())
}

/// Opens a link as a browser does, and returns the cookie header that the browser then sends.
fn open(server: &Server, link: &str) -> Option<String> {
    let reply = knock(server, &host(server), &format!("GET {link}"), &Value::Null);
    let cookie = reply.head.lines().find_map(|line| line.strip_prefix("set-cookie: ").map(str::to_owned))?;
    assert_eq!(reply.status, 303, "{}", reply.head);
    assert!(reply.head.contains("\nlocation: /\r"), "no secret stays in the address: {}", reply.head);
    for wanted in ["httponly", "samesite=strict", "path=/"] {
        assert!(cookie.contains(wanted), "{cookie}");
    }
    Some(format!("Cookie: {}\r\n", cookie.split(';').next().unwrap()))
}

fn sessions(world: &World) -> Vec<Value> {
    let mut tokens = list(&world.ok(&["token", "list"])["tokens"]);
    tokens.retain(|token| token["kind"] == "session");
    tokens
}

on_both! {
    /// Breaks when a link signs in twice, or when what it leaves in the browser is not a token that is listed and can be
    /// taken back.
    fn a_link_signs_one_browser_in(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let link = server.link();
        // A program that looks at links before people open them uses none up.
        let glance = knock(&server, &host(&server), &format!("HEAD {link}"), &Value::Null);
        assert!(glance.status == 405 && !glance.head.contains("set-cookie"), "{}", glance.head);
        let cookie = open(&server, &link).expect("the link signs in");
        assert!(open(&server, &link).is_none(), "a link is for one browser");
        let with = format!("{}{cookie}", host(&server));
        assert_eq!(ask_with(&server, &with, "GET /plans", &Value::Null).status, 200);
        let session = sessions(&world).remove(0);
        assert_eq!((&session["role"], &session["state"]), (&"human".into(), &"valid".into()));
        assert!(text(&session["name"]).starts_with("tester-") && session["expires_at"].is_string(), "{session:#}");
        // The secret of a link is good for nothing else, and that of a session for no program.
        let made = world.ok(&["token", "link", "--at", "https://dock.example/"]);
        let once = text(&made["link"]).strip_prefix("https://dock.example/welcome?once=").unwrap().to_owned();
        let session_secret = cookie.trim().split_once('=').unwrap().1;
        for secret in [once.as_str(), session_secret] {
            assert_eq!(ask(&server, Some(secret), "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        }
        let forged = format!("{}{}", host(&server), cookie.replace(session_secret, &once));
        assert_eq!(ask_with(&server, &forged, "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        assert!(open(&server, &format!("/welcome?once={once}")).is_some());
        world.ok(&["token", "revoke", &text(&session["id"])]);
        assert_eq!(ask_with(&server, &with, "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        let page = knock(&server, &format!("{with}Accept: text/html\r\n"), "GET /", &Value::Null);
        assert!(page.status == 401 && page.body.to_string().contains("drydock token link"), "{page:?}");
        for wrong in ["/welcome", "/welcome?once=", "/welcome?once=x"] {
            assert!(open(&server, wrong).is_none(), "{wrong}");
        }
    }
}

/// Breaks when a page of another server, on another port of this machine too, can act with a person's cookie.
#[test]
fn a_cookie_changes_nothing_unless_a_page_of_ours_asks() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let cookie = open(&server, &server.link()).unwrap();
    let ours = format!("Origin: http://{}\r\n", server.address());
    let collect = |headers: &str| {
        let with = format!("{}{cookie}{headers}", host(&server));
        ask_with(&server, &with, "POST /gc", &json!({ "dry_run": true }))
    };
    let marked = "X-Drydock-Page: 1\r\n";
    for foreign in ["", marked, &ours, "Origin: null\r\nX-Drydock-Page: 1\r\n"] {
        assert_eq!(collect(foreign).seen(), (403, "forbidden"), "{foreign}");
    }
    for port in [1, 3000, 8080] {
        let near = format!("Origin: http://127.0.0.1:{port}\r\n{marked}");
        assert_eq!(collect(&near).seen(), (403, "forbidden"), "{near}");
    }
    let done = collect(&format!("{ours}{marked}"));
    assert_eq!(done.status, 200, "{done:?}");
    // Nor does it help to name ourselves in the address of another page's form.
    let text = format!("{}{cookie}{ours}", host(&server));
    assert_eq!(ask_with(&server, &text, "POST /gc", &Value::Null).seen(), (403, "forbidden"));
}

/// Breaks when an answer of any kind lets a browser run, frame, guess, tell or keep what it should not.
#[test]
fn every_answer_has_strict_headers() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let (host, bearer) = (host(&server), server.bearer());
    for (headers, line) in [
        (format!("{host}{bearer}"), "GET /api/v1/plans"),
        (format!("{host}{bearer}"), "GET /api/v1/moon"),
        (format!("{host}{bearer}"), "DELETE /api/v1/plans"),
        (host.clone(), "GET /api/v1/plans"),
        (host.clone(), "GET /welcome?once=x"),
        (format!("{host}Accept: text/html\r\n"), "GET /"),
        ("Host: evil.example\r\n".to_owned(), "GET /"),
    ] {
        let reply = knock(&server, &headers, line, &Value::Null);
        let policy = reply.head.lines().find(|line| line.starts_with("content-security-policy:")).unwrap();
        assert!(
            policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{policy}"
        );
        assert!(!policy.contains("unsafe"), "{policy}");
        for wanted in
            ["x-content-type-options: nosniff", "referrer-policy: no-referrer", "cache-control: no-store"]
        {
            assert!(reply.head.contains(wanted), "{line}: no {wanted} in {}", reply.head);
        }
    }
}

on_both! {
    /// Breaks when whoever lost their token goes on hearing what happens.
    fn a_stream_ends_within_a_second_of_its_token(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let open = |bearer: &str| {
            let mut stream = TcpStream::connect(server.address()).unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            let line = "GET /api/v1/events HTTP/1.0\r\nAccept: text/event-stream\r\n";
            stream.write_all(format!("{line}{}{bearer}\r\n", host(&server)).as_bytes()).unwrap();
            let mut stream = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("retry: 1000\n") {
                assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
            }
            stream
        };
        let (secret, id) = create(&world, "lost", &["--role", "reader"]);
        let mut lost = open(&format!("Authorization: Bearer {secret}\r\n"));
        let mut other = open(&server.bearer());
        world.ok(&["token", "revoke", &id]);
        let revoked = Instant::now();
        let mut rest = String::new();
        lost.read_to_string(&mut rest).unwrap();
        // A second is the promise; the rest is for a machine that is busy with other tests.
        assert!(revoked.elapsed().as_secs() < 5, "it went on for {:?}", revoked.elapsed());
        world.agent("writer", "true");
        world.action("fix", "[agents]\nexecute = \"writer\"");
        let plan = world.plan(&[]);
        let mut heard = String::new();
        wait::until("the others to hear on", LIMIT, || {
            other.read_line(&mut heard).unwrap();
            heard.contains(&plan).then_some(())
        });
    }
}
