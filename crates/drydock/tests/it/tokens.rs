//! Tokens: who may ask, what each role may do, and that a secret is nowhere but with its bearer.

use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;

use drydock_testkit::{proc, wait};
use serde_json::{Value, json};

use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

const REQUIRED: &[&str] = &["--workers", "0", "--tokens", "required"];

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn seen(&self) -> (u16, &str) {
        (self.status, self.body["code"].as_str().unwrap_or_default())
    }
}

/// Asks as a program would that has this token, or none.
pub(crate) fn ask(server: &Server, token: Option<&str>, line: &str, body: &Value) -> Reply {
    let bearer = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    ask_with(server, &format!("Host: {}\r\n{bearer}", server.address()), line, body)
}

pub(crate) fn ask_with(server: &Server, headers: &str, line: &str, body: &Value) -> Reply {
    let (method, path) = line.split_once(' ').unwrap();
    knock(server, headers, &format!("{method} /api/v1{path}"), body)
}

/// Asks for any path.
pub(crate) fn knock(server: &Server, headers: &str, line: &str, body: &Value) -> Reply {
    let address = server.address().replace("0.0.0.0", "127.0.0.1");
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let head = format!(
        "{line} HTTP/1.0\r\n{headers}Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Reply { status, head: head.to_lowercase(), body: serde_json::from_str(body).unwrap_or(Value::from(body)) }
}

/// Makes a token at the prompt, and returns its secret and its id.
pub(crate) fn create(world: &World, name: &str, more: &[&str]) -> (String, String) {
    let made = world.ok(&[&["token", "create", name], more].concat());
    (text(&made["secret"]), text(&made["token"]["id"]))
}

pub(crate) fn human(world: &World) -> String {
    create(world, "captain", &["--role", "human"]).0
}

/// Waits until those who ask with these headers may not look any more; another process has taken back what they show.
pub(crate) fn ended(server: &Server, headers: &str) {
    wait::until("the token to be refused", LIMIT, || {
        let reply = ask_with(server, headers, "GET /plans", &Value::Null);
        (reply.status != 200).then(|| assert_eq!(reply.seen(), (401, "unauthorized")))
    });
}

/// A machine with a plan whose gate is open.
fn gated(kind: Kind) -> (World, String, String) {
    let world = World::with_writer(kind, "echo hi > hello.txt");
    let plan = world.plan_after("strategize");
    let gate = open(&world, &plan);
    (world, plan, gate)
}

fn open(world: &World, plan: &str) -> String {
    let open = list(&world.ok(&["decision", "list", "--open", "--plan", plan])["decisions"]);
    assert_eq!(open.len(), 1, "{open:?}");
    text(&open[0]["id"])
}

on_both! {
    /// Breaks when a request is answered without a token that counts, where one is required.
    fn only_a_token_that_counts_opens_the_door(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, REQUIRED);
        let secret = human(&world);
        assert_eq!(ask(&server, Some(&secret), "GET /plans", &Value::Null).status, 200);
        let refused = |token: Option<&str>| {
            let reply = ask(&server, token, "GET /plans", &Value::Null);
            assert!(reply.head.contains("www-authenticate: bearer"), "{}", reply.head);
            assert_eq!(reply.seen(), (401, "unauthorized"), "{:#}", reply.body);
            assert!(!reply.body["hint"].is_null());
            text(&reply.body["detail"])
        };
        refused(None);
        let other = secret.replace("dry_human_", "dry_human_0");
        for wrong in ["x", &secret[..secret.len() - 1], &other, &secret.to_uppercase()] {
            assert!(!refused(Some(wrong)).contains(wrong));
        }
        let (brief, _) = create(&world, "brief", &["--role", "human", "--expires", "1s"]);
        wait::until("the token to expire", LIMIT, || {
            (ask(&server, Some(&brief), "GET /plans", &Value::Null).status == 401).then_some(())
        });
        assert!(refused(Some(&brief)).contains("expired"));
        let (lost, id) = create(&world, "lost", &["--role", "human"]);
        assert_eq!(ask(&server, Some(&lost), "GET /plans", &Value::Null).status, 200);
        world.ok(&["token", "revoke", &id]);
        ended(&server, &format!("Host: {}\r\nAuthorization: Bearer {lost}\r\n", server.address()));
        assert!(refused(Some(&lost)).contains("revoked"));
        let states: Vec<_> = list(&world.ok(&["token", "list"])["tokens"]).iter()
            .map(|token| (text(&token["name"]), text(&token["state"]), token["last_used_at"].is_string()))
            .collect();
        let expected = [("captain", "valid", true), ("brief", "expired", true), ("lost", "revoked", true)];
        for (name, state, used) in expected {
            assert!(states.contains(&(name.to_owned(), state.to_owned(), used)), "{states:?}");
        }
    }
}

on_both! {
    /// S4 "agents never resolve". Breaks when the token of an agent answers a decision, its own or another's, or moves
    /// a plan past its gate, or outlives its run.
    fn an_agents_token_reads_its_plan_and_decides_nothing(kind: Kind) {
        let (world, other, gate) = gated(kind);
        let question = r#"{"drydock":"ask","question":"Which colour?","options":[{"id":"red","label":"Red"}]}"#;
        world.agent("writer", &format!("[ -e {0} ] && exit; touch {0}; echo '{question}'; sleep 300", world.place("asked")));
        let own = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &own]).expect(6);
        let (asked, run) = (open(&world, &own), text(&world.show(&own)["run"]));
        let (agent, _) = create(&world, "writer", &["--role", "agent", "--run", &run]);
        let server = Server::start(&world, &["--workers", "0"]);
        let (own_before, other_before) = (world.show(&own), world.show(&other));
        let answer = json!({ "option": "red" });
        for (line, body) in [
            (format!("POST /decisions/{asked}/resolve"), &answer),
            (format!("POST /decisions/{gate}/resolve"), &json!({ "option": "approve" })),
            (format!("POST /plans/{own}/execute"), &Value::Null),
            (format!("POST /plans/{other}/execute"), &Value::Null),
            (format!("POST /plans/{own}/cancel"), &Value::Null),
            (format!("POST /plans/{own}/retry"), &Value::Null),
            ("POST /gc".to_owned(), &Value::Null),
            ("POST /tokens".to_owned(), &json!({ "name": "mine", "role": "human" })),
            ("GET /tokens".to_owned(), &Value::Null),
            ("GET /plans".to_owned(), &Value::Null),
            (format!("GET /plans/{other}"), &Value::Null),
            (format!("GET /plans/{}", &own[..8]), &Value::Null),
            (format!("GET /decisions/{asked}"), &Value::Null),
        ] {
            let reply = ask(&server, Some(&agent), &line, body);
            assert_eq!(reply.seen(), (403, "forbidden"), "{line}: {:#}", reply.body);
        }
        assert_eq!((open(&world, &own), open(&world, &other)), (asked.clone(), gate));
        assert_eq!((world.show(&own), world.show(&other)), (own_before, other_before));
        let shown = ask(&server, Some(&agent), &format!("GET /plans/{own}"), &Value::Null);
        assert_eq!((shown.status, &shown.body["plan"]["id"]), (200, &Value::from(own.as_str())));
        // The next run has nothing to do with this token.
        world.ok(&["decision", "resolve", &asked, "--option", "red"]);
        world.ok(&["plan", "execute", &own]);
        let late = ask(&server, Some(&agent), &format!("GET /plans/{own}"), &Value::Null);
        assert_eq!(late.seen(), (401, "unauthorized"), "{:#}", late.body);
        world.drydock(&["token", "create", "late", "--role", "agent", "--run", &run]).expect(3);
    }
}

on_both! {
    /// Breaks when an agent cannot ask about its plan, can do more with what it is given, keeps it after its run, or lets it
    /// out by what it says.
    fn an_agent_has_a_token_for_as_long_as_its_run(kind: Kind) {
        let (world, other, gate) = gated(kind);
        let program = env!("CARGO_BIN_EXE_drydock");
        let choice = r#"{"drydock":"choice","question":"Which colour?","chosen":"red","alternatives":["blue"]}"#;
        let script = "echo \"mine is $DRYDOCK_TOKEN\"; echo 'CHOICE'; PROGRAM --json plan show $DRYDOCK_PLAN > HOME/shown 2>&1; \
            PROGRAM --json decision resolve GATE --option approve > HOME/resolved 2>&1; \
            echo $DRYDOCK_TOKEN > HOME/token.new; mv HOME/token.new HOME/token; \
            while [ ! -e HOME/go ]; do sleep 0.05; done; echo hi > hello.txt";
        let script = script.replace("CHOICE", choice).replace("PROGRAM", program).replace("GATE", &gate);
        world.agent("writer", &script.replace("HOME/", &world.place("")));
        let start = || Server::start(&world, &["--workers", "1"]);
        let server = start();
        let plan = world.plan(&["--profile", "auto"]);
        let token = || {
            world.wait_file("token");
            std::fs::read_to_string(world.path("token")).unwrap().trim().to_owned()
        };
        let first = token();
        let shown: Value = serde_json::from_str(&std::fs::read_to_string(world.path("shown")).unwrap()).unwrap();
        assert_eq!(shown["data"]["plan"]["id"], plan.as_str(), "{shown:#}");
        let resolved = std::fs::read_to_string(world.path("resolved")).unwrap();
        assert!(resolved.contains("agents cannot answer decisions"), "{resolved}");
        let own = format!("GET /plans/{plan}");
        assert_eq!(ask(&server, Some(&first), &own, &Value::Null).status, 200);
        for line in [format!("POST /decisions/{gate}/resolve"), format!("GET /plans/{other}"), "GET /events".to_owned()] {
            let reply = ask(&server, Some(&first), &line, &json!({ "option": "approve" }));
            assert_eq!(reply.seen(), (403, "forbidden"), "{line}");
        }
        // Whoever made it dies. The next run has one of its own, and the first does not count any more.
        std::fs::remove_file(world.path("token")).unwrap();
        server.kill();
        let server = start();
        let second = token();
        assert_ne!(first, second);
        assert_eq!(ask(&server, Some(&first), &own, &Value::Null).seen(), (401, "unauthorized"));
        assert_eq!(ask(&server, Some(&second), &own, &Value::Null).status, 200);
        world.write("go", "");
        wait::until("the plan to land", LIMIT, || (world.stage(&plan) == "apply/applied").then_some(()));
        assert_eq!(ask(&server, Some(&second), &own, &Value::Null).seen(), (401, "unauthorized"));
        assert_eq!(open(&world, &other), gate);
        assert_eq!(world.query("SELECT count(*) FROM tokens WHERE role = 'agent'"), "1", "that of the run that was killed");
        let told = format!("{}{}", Value::from(world.events(&plan)), world.ok(&["plan", "log", &plan]));
        assert!(told.contains("mine is [hidden]") && !told.contains(&second) && told.contains("Which colour?"), "{told}");
        server.stop().expect(0);
    }
}

/// Breaks when agents of a worker cannot ask a server that the configuration names, or have a token where nobody could be
/// asked with it.
#[test]
fn agents_of_a_worker_have_a_token_when_a_server_is_named() {
    let world = World::new(Kind::Sqlite);
    let script = "echo ${DRYDOCK_TOKEN-none} > HOME/token; PROGRAM --json plan show $DRYDOCK_PLAN > HOME/shown 2>&1; \
        echo $DRYDOCK_PLAN > hello.txt";
    let script = script.replace("PROGRAM", env!("CARGO_BIN_EXE_drydock"));
    world.agent("writer", &script.replace("HOME/", &world.place("")));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let server = Server::start(&world, &["--workers", "0"]);
    world.plan_after("apply");
    assert_eq!(world.lines("token"), ["none"]);
    world.settings(&format!("[server]\nurl = \"http://{}\"\n", server.address()));
    let plan = world.plan(&["--profile", "auto"]);
    let worker = world.spawn(&["worker"]);
    wait::until("the plan to land", LIMIT, || (world.stage(&plan) == "apply/applied").then_some(()));
    let shown: Value = serde_json::from_str(&world.lines("shown").concat()).unwrap();
    assert_eq!(shown["data"]["plan"]["id"], plan.as_str(), "{shown:#}");
    let token = world.lines("token").concat();
    let own = format!("GET /plans/{plan}");
    assert_eq!(ask(&server, Some(&token), &own, &Value::Null).seen(), (401, "unauthorized"));
    worker.terminate();
    Answer::of(worker.wait(LIMIT)).expect(0);
}

on_both! {
    /// N5, B3: breaks when an operator or a reader can do a person's part, when an operator cannot do its own, or when
    /// the record does not say whose token it was.
    fn operators_run_readers_read_and_people_decide(kind: Kind) {
        let (world, plan, gate) = gated(kind);
        let server = Server::start(&world, REQUIRED);
        let (operator, _) = create(&world, "night-shift", &["--role", "operator"]);
        let (reader, _) = create(&world, "screen", &["--role", "reader"]);
        let approve = json!({ "option": "approve" });
        let resolve = format!("POST /decisions/{gate}/resolve");
        for token in [&operator, &reader] {
            assert_eq!(ask(&server, Some(token), &resolve, &approve).seen(), (403, "forbidden"));
            assert_eq!(ask(&server, Some(token), "GET /tokens", &Value::Null).seen(), (403, "forbidden"));
            assert_eq!(ask(&server, Some(token), &format!("GET /decisions/{gate}"), &Value::Null).status, 200);
        }
        // A move that a person types is the approval; an operator's is not.
        let execute = format!("POST /plans/{plan}/execute");
        assert_eq!(ask(&server, Some(&reader), &execute, &Value::Null).seen(), (403, "forbidden"));
        assert_eq!(ask(&server, Some(&operator), &execute, &Value::Null).seen(), (409, "decision_open"));
        let seen = world.show(&plan);
        for (way, body) in [
            ("retry", Value::Null),
            ("revert", json!({ "reason": "another way" })),
            ("rollback", json!({ "checkpoint": "1" })),
            ("cancel", json!({ "reason": "enough" })),
            ("sync", Value::Null),
            ("strategy/adopt", Value::Null),
            ("takeover", Value::Null),
        ] {
            let reply = ask(&server, Some(&operator), &format!("POST /plans/{plan}/{way}"), &body);
            assert_eq!(reply.seen(), (409, "decision_open"), "{way}: {:#}", reply.body);
            assert_eq!(world.show(&plan), seen, "{way}");
        }
        let guidance = json!({ "text": "mind the tests" });
        assert_eq!(ask(&server, Some(&operator), &format!("POST /plans/{plan}/prompt"), &guidance).status, 200);
        assert_eq!(open(&world, &plan), gate);
        let guarded = text(&world.ok(&["plan", "use", "fix", "--project", "app", "--profile", "manual"])["plan"]["id"]);
        let asked = open(&world, &guarded);
        let strategize = format!("POST /plans/{guarded}/strategize");
        assert_eq!(ask(&server, Some(&operator), &strategize, &Value::Null).seen(), (409, "decision_open"));
        assert_eq!(open(&world, &guarded), asked);
        let captain = human(&world);
        let resolved = ask(&server, Some(&captain), &resolve, &approve);
        assert_eq!(resolved.status, 200, "{:#}", resolved.body);
        let resolution = &resolved.body["decision"]["resolution"];
        assert_eq!((&resolution["by"], &resolution["via"]), (&"captain".into(), &"http".into()));
        // Nobody asks any more, so whoever runs things may run this.
        assert_eq!(ask(&server, Some(&operator), &execute, &Value::Null).status, 200);
        assert_eq!(ask(&server, Some(&operator), &format!("POST /plans/{plan}/cancel"), &Value::Null).status, 200);
        assert_eq!(world.stage(&plan), "execute/cancelled");
    }
}

on_both! {
    /// Breaks when a secret is written anywhere: a log, an event, an error, the store, an answer that is kept.
    fn a_secret_is_nowhere_but_with_its_bearer(kind: Kind) {
        let world = World::new(kind);
        let loud = |command: &mut std::process::Command| {
            command.env("DRYDOCK_LOG", "trace").env("RUST_LOG", "trace");
        };
        let mut serve = world.command(&[&["serve", "--listen", "127.0.0.1:0"], REQUIRED].concat());
        loud(&mut serve);
        let server = Server::of(proc::spawn(&mut serve));
        let first = human(&world);
        let key = format!("Host: {}\r\nAuthorization: Bearer {first}\r\nIdempotency-Key: k1\r\n", server.address());
        let new = json!({ "name": "second", "role": "operator" });
        let made = ask_with(&server, &key, "POST /tokens", &new);
        assert!(made.status == 200 && made.head.contains("cache-control: no-store"), "{}", made.head);
        let second = text(&made.body["secret"]);
        // Asked again under its key it is not told again, and not made again either.
        assert_eq!(ask_with(&server, &key, "POST /tokens", &new).seen(), (409, "exists"));
        let wrong = format!("{first}0");
        for token in [&first, &second, &wrong] {
            ask(&server, Some(token), "GET /events", &Value::Null);
            ask(&server, Some(token), "POST /gc", &json!({ "dry_run": 7 }));
            ask(&server, Some(token), "POST /tokens", &new);
            ask(&server, Some(token), "GET /moon", &Value::Null);
        }
        let link = format!("http://{}", server.address());
        let mut told = Vec::new();
        for token in [&first, &wrong] {
            for args in [&["plan", "list"][..], &["token", "list"], &["events", "--limit", "5"]] {
                let mut command = world.command(&[&["--server", link.as_str()], args].concat());
                loud(command.env("DRYDOCK_TOKEN", token));
                let finished = proc::run(&mut command, LIMIT);
                told.push(finished.stdout + &finished.stderr);
            }
        }
        told.push(server.said());
        assert!(told.last().unwrap().contains("request refused"), "the server is not loud");
        for table in ["SELECT id, digest, name, role FROM tokens", "SELECT key, request, seed, media, body FROM answers",
            "SELECT kind, details FROM events"] {
            told.push(world.query(table));
        }
        for file in fs::read_dir(world.path("store")).unwrap().flatten().filter(|entry| entry.path().is_file()) {
            told.push(String::from_utf8_lossy(&fs::read(file.path()).unwrap()).into_owned());
        }
        told.push(world.ok(&["token", "list"]).to_string());
        for secret in [&first, &second, &wrong] {
            let digits = secret.rsplit('_').next().unwrap();
            for text in &told {
                assert!(!text.contains(&digits[..20]), "a secret is in {text}");
            }
        }
    }
}

/// Breaks when the right token opens the door to a request that a web page could have made.
#[test]
fn a_right_token_does_not_help_a_web_page() {
    let world = World::new(Kind::Sqlite);
    let server = Server::start(&world, REQUIRED);
    let bearer = format!("Authorization: Bearer {}\r\n", human(&world));
    let at = server.address();
    for headers in [
        format!("Host: evil.example\r\n{bearer}"),
        format!("Host: {at}\r\nOrigin: https://evil.example\r\n{bearer}"),
        bearer.clone(),
    ] {
        let reply = ask_with(&server, &headers, "GET /plans", &Value::Null);
        assert_eq!(reply.seen(), (403, "forbidden"), "{headers}");
    }
    assert_eq!(ask_with(&server, &format!("Host: {at}\r\n{bearer}"), "GET /plans", &Value::Null).status, 200);
}

on_both! {
    /// Breaks when others can reach a server that no person has a token for, or that answers without one.
    fn a_server_for_others_starts_when_a_person_has_a_token(kind: Kind) {
        let world = World::new(kind);
        let everywhere = ["--listen", "0.0.0.0:0", "--workers", "0", "--tokens", "optional"];
        let refused = |world: &World| {
            let answer = world.drydock(&[&["serve"], &everywhere[..]].concat()).expect(2);
            let said = answer.json["error"].to_string();
            assert!(answer.error_code() == "usage" && said.contains("drydock token create"), "{said}");
        };
        refused(&world);
        create(&world, "screen", &["--role", "reader"]);
        refused(&world);
        // What a server on loopback makes for its own machine is no sign of a person who was given one.
        let near = Server::start(&world, &["--workers", "0"]);
        let link = near.link();
        let once = link.split_once("once=").unwrap().1;
        knock(&near, &format!("Host: {}\r\n", near.address()), "POST /welcome", &json!({ "once": once }));
        world.ok(&["token", "link"]);
        let kinds: Vec<_> = list(&world.ok(&["token", "list"])["tokens"]).iter().map(|one| text(&one["kind"])).collect();
        assert_eq!(kinds, ["bearer", "machine", "session", "link"]);
        near.stop().expect(0);
        refused(&world);
        let (secret, id) = create(&world, "captain", &["--role", "human"]);
        let server = Server::start(&world, &everywhere);
        assert_eq!(ask(&server, None, "GET /plans", &Value::Null).seen(), (401, "unauthorized"));
        assert_eq!(ask(&server, Some(&secret), "GET /plans", &Value::Null).status, 200);
        let foreign = format!("Host: evil.example\r\nAuthorization: Bearer {secret}\r\n");
        assert_eq!(ask_with(&server, &foreign, "GET /plans", &Value::Null).seen(), (403, "forbidden"));
        world.ok(&["token", "revoke", &id]);
        ended(&server, &format!("Host: {}\r\nAuthorization: Bearer {secret}\r\n", server.address()));
        refused(&world);
    }
}

/// Breaks when the command line does not find its token, prefers the wrong one, or uses one that others can read.
#[test]
fn the_command_line_finds_its_token() {
    let world = World::new(Kind::Sqlite);
    world.settings("[server]\ntokens = \"required\"\n");
    let server = Server::start(&world, &["--workers", "0"]);
    let link = format!("http://{}", server.address());
    let list = |token: &str, more: &[&str]| {
        let mut command = world.command(&[&["--server", link.as_str(), "plan", "list"], more].concat());
        Answer::of(proc::run(command.env("DRYDOCK_TOKEN", token), LIMIT))
    };
    // The server keeps one for whoever started it, for them alone.
    list("", &[]).expect(0);
    let own = world.path(&format!(".local/state/drydock/servers/{}", server.address()));
    assert_eq!(fs::metadata(&own).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(own).unwrap();
    let none = list("", &[]).expect(1);
    assert_eq!(none.error_code(), "unauthorized");
    let secret = human(&world);
    list(&secret, &[]).expect(0);
    assert_eq!(list("dry_human_no", &[]).expect(1).error_code(), "unauthorized");
    let kept = world.path(".config/drydock/token");
    world.write(".config/drydock/token", &format!("{secret}\n"));
    fs::set_permissions(&kept, Permissions::from_mode(0o644)).unwrap();
    let wide = list("", &[]).expect(2);
    assert!(wide.json["error"]["hint"].to_string().contains("chmod 600"), "{:#}", wide.json);
    fs::set_permissions(&kept, Permissions::from_mode(0o600)).unwrap();
    list("", &[]).expect(0);
    // What is closer at hand counts more.
    list("dry_human_no", &[]).expect(1);
    list("dry_human_no", &["--token-file", kept.to_str().unwrap()]).expect(0);
    list(&secret, &["--token-file", &world.place("nowhere")]).expect(2);
    let mut follow = world.command(&["--server", &link, "events", "--follow"]);
    let follower = proc::spawn(follow.env("DRYDOCK_TOKEN", &secret));
    world.agent("writer", "true");
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let plan = world.plan(&[]);
    wait::until("the stream to tell of the plan", LIMIT, || follower.stdout().contains(&plan).then_some(()));
    follower.kill();
}

on_both! {
    /// Breaks when the token that a server makes for its own machine counts after the server, is the same for the next, has no
    /// end, or piles up in the list; and when a command line that was refused with the old one does not find the new one.
    fn a_servers_own_token_ends_with_the_server(kind: Kind) {
        let world = World::new(kind);
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let listen = format!("127.0.0.1:{port}");
        let serve = || Server::start(&world, &["--workers", "0", "--listen", &listen]);
        let file = world.path(&format!(".local/state/drydock/servers/{listen}"));
        let own = || {
            let mut tokens = list(&world.ok(&["token", "list"])["tokens"]);
            tokens.retain(|token| token["kind"] == "machine");
            tokens
        };
        let counts = |server: &Server, bearer: &str| {
            let headers = format!("Host: {}\r\n{bearer}", server.address());
            ask_with(server, &headers, "GET /plans", &Value::Null).status == 200
        };
        let server = serve();
        let first = server.bearer();
        assert!(counts(&server, &first));
        let listed = own();
        assert!(listed.len() == 1 && listed[0]["expires_at"].is_string(), "{listed:#?}");
        // F6: a token that is made with it ends with it.
        let made = server.drydock(&world, &["token", "create", "made", "--role", "human"]).expect(0);
        let made = text(&made.json["data"]["token"]["id"]);
        server.stop().expect(0);
        assert!(!file.exists(), "the file outlives the server");
        assert_eq!(own()[0]["state"], "revoked");
        let tokens = list(&world.ok(&["token", "list"])["tokens"]);
        assert_eq!(tokens.iter().find(|token| token["id"] == made.as_str()).unwrap()["state"], "revoked");
        let events = list(&world.ok(&["events", "--limit", "1000"])["events"]);
        assert!(events.iter().any(|event| event["data"]["tokens"] == serde_json::json!([made])), "{events:#?}");
        let server = serve();
        let second = server.bearer();
        assert!(counts(&server, &second) && !counts(&server, &first));
        // One that crashed leaves its token to the next, which ends it.
        server.kill();
        assert!(file.exists());
        let server = serve();
        assert!(!counts(&server, &second));
        server.drydock(&world, &["plan", "list"]).expect(0);
        let states: Vec<_> = own().iter().map(|token| text(&token["state"])).collect();
        assert_eq!(states, ["valid"], "the ended ones are forgotten");
        server.stop().expect(0);
    }
}

/// Breaks when an agent can answer a decision through the program itself: with the mark of its run in its environment
/// the program refuses, without it the sandbox does.
#[test]
fn an_agent_cannot_answer_a_decision_at_the_prompt() {
    let (world, plan, gate) = gated(Kind::Sqlite);
    let (program, store) = (env!("CARGO_BIN_EXE_drydock"), world.place("store/drydock.db"));
    let tries = [
        ("resolve", format!("decision resolve {gate} --option approve")),
        ("execute", format!("plan execute {plan}")),
        ("cancel", format!("plan cancel {plan}")),
        ("token", "token create mine --role human".to_owned()),
        ("look", format!("decision show {gate}")),
    ];
    let mut script = String::new();
    for (name, words) in &tries {
        let run = format!("{program} --json --store {store} {words}");
        script += &format!(
            "{run} > with-{name} 2>&1; env -i PATH=\"$PATH\" HOME=\"$HOME\" {run} > without-{name} 2>&1; "
        );
    }
    world.agent("writer", &format!("{script} true"));
    let config = world.path(".config/drydock/config.toml");
    let written = fs::read_to_string(&config).unwrap();
    let (before, after) = written.split_once("write = [").unwrap();
    let after = after.split_once(']').unwrap().1;
    fs::write(&config, format!("{before}write = []\nmode = \"required\"{after}")).unwrap();
    let intruder = world.plan_after("execute");
    let head = text(&world.show(&intruder)["head_commit"]);
    let said = |file: String| {
        let text = world.repo.git(&["show", &format!("{head}:{file}")]);
        serde_json::from_str::<Value>(text.lines().last().unwrap_or_default())
            .unwrap_or_else(|_| panic!("{file}: {text}"))
    };
    for (name, _) in &tries[..4] {
        let with = said(format!("with-{name}"));
        assert_eq!(
            (&with["exit_code"], &with["error"]["code"]),
            (&1.into(), &"forbidden".into()),
            "{with:#}"
        );
        let without = said(format!("without-{name}"));
        assert_eq!(without["error"]["code"], "store_read_only", "{without:#}");
    }
    assert_ne!(said("with-look".to_owned())["error"]["code"], "forbidden");
    assert_eq!(said("with-resolve".to_owned())["error"]["text"], "agents cannot answer decisions");
    assert_eq!(open(&world, &plan), gate);
    assert_eq!(world.stage(&plan), "strategize/complete");
    assert_eq!(list(&world.ok(&["token", "list"])["tokens"]).len(), 0);
}
