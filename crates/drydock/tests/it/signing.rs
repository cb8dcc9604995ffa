//! Signing a browser in: one link, once; a session of which the cookie is but half; and streams that end with their token.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::tokens::{ask, ask_with, create, ended, knock};
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, list, text};

fn host(server: &Server) -> String {
    format!("Host: {}\r\n", server.address())
}

/// What a browser has that is signed in, as the headers that it sends.
struct Session {
    cookie: String,
    page: String,
}

impl Session {
    fn both(&self) -> String {
        format!("{}{}", self.cookie, self.page)
    }
}

/// Opens a link as a browser does, whose page then trades it.
fn open(server: &Server, link: &str) -> Option<Session> {
    let host = host(server);
    let shown = knock(server, &host, &format!("GET {link}"), &Value::Null);
    assert!(shown.status == 200 && !shown.head.contains("set-cookie"), "{}", shown.head);
    let once = link.split_once("once=").map_or("", |(_, once)| once);
    let reply = knock(server, &host, "POST /welcome", &json!({ "once": once }));
    let Some(cookie) = reply.head.lines().find_map(|line| line.strip_prefix("set-cookie: ")) else {
        assert_eq!(reply.status, 401, "{reply:?}");
        return None;
    };
    assert!(reply.status == 200 && reply.head.contains("cache-control: no-store"), "{}", reply.head);
    for wanted in ["httponly", "samesite=strict", "path=/"] {
        assert!(cookie.contains(wanted), "{cookie}");
    }
    Some(Session {
        cookie: format!("Cookie: {}\r\n", cookie.split(';').next().unwrap()),
        page: format!("X-Drydock-Page: {}\r\n", text(&reply.body["page"])),
    })
}

/// Opens a stream of events and waits until it flows.
fn follow(server: &Server, headers: &str) -> BufReader<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let line = "GET /api/v1/events HTTP/1.0\r\nAccept: text/event-stream\r\n";
    stream.write_all(format!("{line}{headers}\r\n").as_bytes()).unwrap();
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("retry: 1000\n") {
        assert_ne!(stream.read_line(&mut head).unwrap(), 0, "{head}");
    }
    stream
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
        let signed = open(&server, &link).expect("the link signs in");
        assert!(open(&server, &link).is_none(), "a link is for one browser");
        let with = format!("{}{}", host(&server), signed.both());
        assert_eq!(ask_with(&server, &with, "GET /plans", &Value::Null).status, 200);
        let session = sessions(&world).remove(0);
        assert_eq!((&session["role"], &session["state"]), (&"human".into(), &"valid".into()));
        assert!(text(&session["name"]).starts_with("tester-") && session["expires_at"].is_string(), "{session:#}");
        // The secret of a link is good for nothing else, and that of a session for no program.
        let made = world.ok(&["token", "link", "--at", "https://dock.example/"]);
        let once = text(&made["link"]).strip_prefix("https://dock.example/welcome?once=").unwrap().to_owned();
        let in_cookie = signed.cookie.trim().split_once('=').unwrap().1;
        let in_page = signed.page.trim().split_once(' ').unwrap().1;
        for secret in [once.as_str(), in_cookie, in_page, &format!("{in_cookie} {in_page}")] {
            assert_eq!(ask(&server, Some(secret), "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        }
        let forged = format!("{}{}", host(&server), signed.both().replace(in_cookie, &once));
        assert_eq!(ask_with(&server, &forged, "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        assert!(open(&server, &format!("/welcome?once={once}")).is_some());
        world.ok(&["token", "revoke", &text(&session["id"])]);
        ended(&server, &with);
        let page = knock(&server, &format!("{with}Accept: text/html\r\n"), "GET /", &Value::Null);
        assert!(page.status == 401 && page.body.to_string().contains("drydock token link"), "{page:?}");
        for wrong in ["/welcome", "/welcome?once=", "/welcome?once=x", "/welcome?once=a&once=b"] {
            assert!(open(&server, wrong).is_none(), "{wrong}");
        }
    }
}

/// Everything that a session can be used for: reading, following, and the page's own views.
const LOOKS: [&str; 12] = [
    "/",
    "/plans",
    "/plans/PLAN",
    "/plans/PLAN/diff",
    "/plans/PLAN/log",
    "/questions",
    "/api/v1/plans",
    "/api/v1/plans/PLAN",
    "/api/v1/decisions",
    "/api/v1/tokens",
    "/api/v1/events",
    "/api/v1/events/last",
];

/// Breaks when whoever is sent a person's cookie, as every port of the host is by a browser, can read, follow or decide
/// anything with it, whatever else they send.
#[test]
fn a_cookie_alone_opens_nothing_but_an_empty_page() {
    let world = World::with_writer(Kind::Sqlite, "true");
    let plan = world.plan_after("strategize");
    let gate = text(&world.show(&plan)["pending_decision"]);
    let server = Server::start(&world, &["--workers", "0"]);
    let session = open(&server, &server.link()).unwrap();
    let other = open(&server, &text(&world.ok(&["token", "link", "--at", "http://h"])["link"])[8..]).unwrap();
    let ours = format!("{}Origin: http://{}\r\n", host(&server), server.address());
    let (html, stream) = ("Accept: text/html\r\n", "Accept: text/event-stream\r\n");
    let pages = ["", "X-Drydock-Page: 1\r\n", "X-Drydock-Page: \r\n", &other.page];
    let cookie_as_page = session.cookie.split_once('=').unwrap().1;
    let pages = pages.map(str::to_owned).into_iter().chain([format!("X-Drydock-Page: {cookie_as_page}")]);
    for page in pages {
        for accept in ["", html, stream] {
            for path in LOOKS {
                let line = format!("GET {}", path.replace("PLAN", &plan));
                let reply =
                    knock(&server, &format!("{ours}{}{page}{accept}", session.cookie), &line, &Value::Null);
                let said = reply.body.to_string();
                let is_empty = !said.contains(&plan) && !said.contains("Do fix") && !said.contains("tester");
                assert!(is_empty, "{line} with {page:?}: {said}");
                let is_shell = page.is_empty() && said.contains("data-opens");
                assert!(reply.status == 401 || is_shell, "{line} with {page:?} and {accept:?}: {reply:?}");
            }
        }
        for (line, body) in [
            (format!("POST /decisions/{gate}/resolve"), json!({ "option": "approve" })),
            (format!("POST /plans/{plan}/execute"), json!({})),
            (format!("POST /plans/{plan}/cancel"), json!({ "reason": "no" })),
            ("POST /tokens".to_owned(), json!({ "name": "mine", "role": "human" })),
            ("POST /tokens/link".to_owned(), json!({})),
        ] {
            let reply = ask_with(&server, &format!("{ours}{}{page}", session.cookie), &line, &body);
            assert_eq!(reply.seen(), (401, "unauthorized"), "{line} with {page:?}");
        }
    }
    // What a page has is worth as little without the cookie.
    let alone = ask_with(&server, &format!("{ours}{}", session.page), "GET /plans", &Value::Null);
    assert_eq!(alone.seen(), (401, "unauthorized"));
    assert_eq!(world.show(&plan)["pending_decision"], gate.as_str());
    let both = format!("{ours}{}", session.both());
    for path in LOOKS {
        let line = format!("GET {}", path.replace("PLAN", &plan));
        assert_eq!(knock(&server, &format!("{both}{html}"), &line, &Value::Null).status, 200, "{line}");
    }
    let approve = json!({ "option": "approve" });
    assert_eq!(ask_with(&server, &both, &format!("POST /decisions/{gate}/resolve"), &approve).status, 200);
}

/// Breaks when a page of another server, on another port of this machine too, can act with a person's session.
#[test]
fn a_session_changes_nothing_unless_a_page_of_ours_asks() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let session = open(&server, &server.link()).unwrap().both();
    let ours = format!("Origin: http://{}\r\n", server.address());
    let collect = |headers: &str| {
        let with = format!("{}{session}{headers}", host(&server));
        ask_with(&server, &with, "POST /gc", &json!({ "dry_run": true }))
    };
    for foreign in ["", "Origin: null\r\n"] {
        assert_eq!(collect(foreign).seen(), (403, "forbidden"), "{foreign}");
    }
    for port in [1, 3000, 8080] {
        let near = format!("Origin: http://127.0.0.1:{port}\r\n");
        assert_eq!(collect(&near).seen(), (403, "forbidden"), "{near}");
    }
    let done = collect(&ours);
    assert_eq!(done.status, 200, "{done:?}");
}

on_both! {
    /// Breaks when whoever lost a token stays signed in, or hears on, by a link that was made with it; when somebody else
    /// is signed out; or when nobody can see which session came from which token.
    fn taking_a_token_back_ends_the_sessions_that_its_links_began(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let ((lost, id), (kept, kept_id)) =
            (create(&world, "lost", &["--role", "human"]), create(&world, "kept", &["--role", "human"]));
        let link = |secret: &str| {
            let made = ask(&server, Some(secret), "POST /tokens/link", &json!({}));
            assert_eq!(made.status, 200, "{made:?}");
            text(&made.body["path"])
        };
        let signed = |secret: &str| format!("{}{}", host(&server), open(&server, &link(secret)).unwrap().both());
        let (first, second, others) = (signed(&lost), signed(&lost), signed(&kept));
        let at_start = format!("{}{}", host(&server), open(&server, &server.link()).unwrap().both());
        let unopened = link(&lost);
        let looks = |session: &str| ask_with(&server, session, "GET /plans", &Value::Null).status;
        assert_eq!([&first, &second, &others, &at_start].map(|session| looks(session)), [200; 4]);
        let mut makers: Vec<_> = sessions(&world).iter().map(|session| session["made_by"].clone()).collect();
        makers.sort_by_key(Value::to_string);
        let mut expected = [json!(id), json!(id), json!(kept_id), Value::Null];
        expected.sort_by_key(Value::to_string);
        assert_eq!(makers, expected);
        let mut stream = follow(&server, &second);
        let revoked = world.ok(&["token", "revoke", &id]);
        let at = Instant::now();
        assert_eq!((&revoked["token"]["state"], &revoked["sessions_ended"]), (&json!("revoked"), &json!(2)));
        for session in [&first, &second] {
            ended(&server, session);
        }
        assert_eq!([&others, &at_start].map(|session| looks(session)), [200; 2]);
        assert!(open(&server, &unopened).is_none(), "a link that was not opened yet");
        let mut rest = String::new();
        stream.read_to_string(&mut rest).unwrap();
        // A second is the promise; the rest is for a machine that is busy with other tests.
        assert!(at.elapsed().as_secs() < 5, "it went on for {:?}", at.elapsed());
    }
}

/// Breaks when a restart of the server signs out whoever was let in by the token that it keeps for its own machine.
#[test]
fn a_session_outlives_the_server_that_it_began_on() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let own = server.bearer();
    let made = ask_with(&server, &format!("{}{own}", host(&server)), "POST /tokens/link", &json!({}));
    let session = open(&server, &text(&made.body["path"])).unwrap();
    assert!(sessions(&world)[0]["made_by"].is_string());
    let port = server.address().rsplit(':').next().unwrap().to_owned();
    server.stop();
    let server = Server::start(&world, &["--workers", "0"]);
    // The name of the cookie has the port.
    let now = server.address().rsplit(':').next().unwrap().to_owned();
    let with = format!(
        "{}{}",
        host(&server),
        session.both().replace(&format!("drydock-{port}="), &format!("drydock-{now}="))
    );
    assert_eq!(ask_with(&server, &with, "GET /plans", &Value::Null).status, 200);
    assert_eq!(ask_with(&server, &format!("{}{own}", host(&server)), "GET /plans", &Value::Null).status, 401);
}

/// Breaks when a route that is there answers another method with nothing, or a link that is written wrong in bare text.
#[test]
fn what_a_route_does_not_take_is_a_problem_with_a_next_step() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let with = format!("{}{}", host(&server), server.bearer());
    for (line, status, code) in [
        ("POST /", 405, "method_not_allowed"),
        ("DELETE /plans", 405, "method_not_allowed"),
        ("PUT /assets/page.css", 405, "method_not_allowed"),
        ("POST /metrics", 405, "method_not_allowed"),
        ("DELETE /healthz", 405, "method_not_allowed"),
        ("DELETE /welcome", 405, "method_not_allowed"),
        ("POST /reference", 405, "method_not_allowed"),
        ("POST /welcome", 422, "invalid"),
    ] {
        let reply = knock(&server, &with, line, &Value::Null);
        assert_eq!(reply.seen(), (status, code), "{line}: {reply:?}");
        assert!(reply.head.contains("content-type: application/problem+json"), "{line}: {}", reply.head);
        assert!(status != 405 || reply.head.contains("\nallow: "), "{line}: {}", reply.head);
        assert!(reply.head.contains("content-security-policy: default-src 'none'"), "{line}: {}", reply.head);
        assert!(!reply.body["hint"].is_null(), "{line}");
    }
    let twice = knock(&server, &host(&server), "GET /welcome?once=a&once=b", &Value::Null);
    assert!(twice.status == 200 && twice.head.contains("content-type: text/html"), "{twice:?}");
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
        let open = |bearer: &str| follow(&server, &format!("{}{bearer}", host(&server)));
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
