//! `Idempotency-Key`: a request is carried out once, however often it is sent and whatever dies meanwhile.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::working::Server;
use crate::world::{LIMIT, World, list};

/// Any server may be asked again under a key, by whoever asked first: here the person at this machine.
const OPEN: &[&str] = &["--workers", "0", "--tokens", "optional"];

/// What came back.
#[derive(Debug, Clone, PartialEq)]
struct Reply {
    status: u16,
    replayed: bool,
    body: Value,
}

impl Reply {
    fn code(&self) -> &str {
        self.body["code"].as_str().unwrap_or_default()
    }
}

/// Sends a request under a key; none when the server died over it.
fn send(server: &Server, path: &str, key: &str, body: &Value) -> Option<Reply> {
    let (address, body) = (server.address(), body.to_string());
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /api/v1{path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\n\
         Idempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    // A reset is no answer either.
    stream.read_to_string(&mut answer).ok();
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().unwrap();
    let replayed = head.to_lowercase().contains("idempotent-replayed: true");
    Some(Reply { status, replayed, body: serde_json::from_str(body).unwrap() })
}

fn task() -> Value {
    json!({ "action": "fix", "project": "app" })
}

fn plans(world: &World) -> Vec<Value> {
    list(&world.ok(&["plan", "list"])["plans"])
}

on_both! {
    /// Breaks when a request that is sent again makes a second plan, or gets another answer; or when a key that is used
    /// for something else goes through.
    fn a_plan_that_is_asked_for_twice_under_one_key_is_made_once(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let (one, two) = (Server::start(&world, OPEN), Server::start(&world, OPEN));
        let first = send(&one, "/plans", "k1", &task()).unwrap();
        assert_eq!((first.status, first.replayed), (200, false), "{first:?}");
        for server in [&one, &two] {
            let again = send(server, "/plans", "k1", &task()).unwrap();
            assert_eq!(again, Reply { replayed: true, ..first.clone() });
        }
        assert_eq!(plans(&world).len(), 1);
        let other = json!({ "action": "fix", "project": "app", "profile": "auto" });
        for (path, body) in [("/plans", &other), ("/gc", &task())] {
            let refused = send(&two, path, "k1", body).unwrap();
            assert_eq!((refused.status, refused.code()), (422, "idempotency_key_reused"));
        }
        assert_eq!(send(&two, "/plans", "k2", &task()).unwrap().status, 200);
        assert_eq!(plans(&world).len(), 2);
        // What is refused for good is refused again, without being tried again.
        let nobody = json!({ "action": "fix", "project": "nobody" });
        let refused = send(&one, "/plans", "k3", &nobody).unwrap();
        assert_eq!(send(&one, "/plans", "k3", &nobody).unwrap(), Reply { replayed: true, ..refused.clone() });
        assert_eq!((refused.status, send(&one, "/plans", " ", &task()).unwrap().status), (404, 400));
    }
}

on_both! {
    /// Breaks when two requests under one key that come at once are both carried out.
    fn of_many_at_once_under_one_key_one_is_carried_out(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let servers = [Server::start(&world, OPEN), Server::start(&world, OPEN)];
        let replies: Vec<_> = thread::scope(|scope| {
            let asked: Vec<_> = (0..12)
                .map(|n| scope.spawn({ let server = &servers[n % 2]; move || send(server, "/plans", "k", &task()).unwrap() }))
                .collect();
            asked.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let plan = &plans(&world)[..];
        assert_eq!(plan.len(), 1);
        assert_eq!(replies.iter().filter(|reply| reply.status == 200 && !reply.replayed).count(), 1);
        for reply in replies {
            match reply.status {
                200 => assert_eq!(reply.body["plan"]["id"], plan[0]["id"]),
                _ => assert_eq!((reply.status, reply.code()), (409, "request_under_way")),
            }
        }
    }
}

/// Sends a request until nobody is at it any more.
fn insist(server: &Server, path: &str, key: &str, body: &Value) -> Reply {
    wait::until("the claim of the dead server to run out", LIMIT, || {
        let reply = send(server, path, key, body).unwrap();
        (!["request_under_way", "lock_held"].contains(&reply.code())).then_some(reply)
    })
}

on_both! {
    /// Breaks when a crash between a plan and its answer leads to a second plan, or to none.
    fn a_crash_between_a_plan_and_its_answer_makes_no_second_plan(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        for (made, point) in ["before_commit", "after_commit"].into_iter().enumerate() {
            let crashing = Server::crashing(&world, point);
            assert_eq!(send(&crashing, "/plans", point, &task()), None);
            crashing.died();
            let server = Server::start(&world, OPEN);
            let again = insist(&server, "/plans", point, &task());
            assert_eq!(again.status, 200, "{again:?}");
            let plans = plans(&world);
            assert_eq!((plans.len(), &plans[0]["id"]), (made + 1, &again.body["plan"]["id"]), "{point}");
            assert!(send(&server, "/plans", point, &task()).unwrap().replayed);
        }
    }
}

on_both! {
    /// Breaks when something that cannot be repeated is repeated because a crash hid whether it was done.
    fn what_a_crash_left_in_the_dark_is_not_done_again(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan(&[]);
        let (path, body) = (format!("/plans/{id}/prompt"), json!({ "text": "mind the door" }));
        let crashing = Server::crashing(&world, "after_commit");
        assert_eq!(send(&crashing, &path, "k", &body), None);
        crashing.died();
        let server = Server::start(&world, OPEN);
        for _ in 0..2 {
            let told = insist(&server, &path, "k", &body);
            assert_eq!((told.status, told.code()), (409, "request_outcome_unknown"));
        }
        assert_eq!(world.show(&id)["feedback"], json!(["mind the door"]));
    }
}
