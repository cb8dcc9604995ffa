//! Tokens that were taken back: at once by the server that did it, within a second by others, and at once everywhere for
//! what changes something.

use std::thread;

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::tokens::{ask, create, human};
use crate::working::Server;
use crate::world::{LIMIT, World};

const REQUIRED: &[&str] = &["--workers", "0", "--tokens", "required"];
const ROUNDS: usize = 5;
const ASKERS: usize = 4;

fn looks(server: &Server, secret: &str) -> u16 {
    ask(server, Some(secret), "GET /plans", &Value::Null).status
}

/// Asks with a token again and again, until it is refused.
fn refused(server: &Server, secret: &str) {
    wait::until("the token to be refused", LIMIT, || {
        let status = looks(server, secret);
        (status != 200).then(|| assert_eq!(status, 401))
    });
}

on_both! {
    /// Breaks when a server goes on to know a token that it took back itself, or is reminded of it by a request that was
    /// under way.
    fn a_token_is_over_at_once_where_it_was_taken_back(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, REQUIRED);
        let captain = human(&world);
        for round in 0..ROUNDS {
            let (lost, id) = create(&world, &format!("lost-{round}"), &["--role", "reader"]);
            thread::scope(|scope| {
                for _ in 0..ASKERS {
                    scope.spawn(|| refused(&server, &lost));
                }
                assert_eq!(looks(&server, &lost), 200);
                let revoke = format!("POST /tokens/{id}/revoke");
                assert_eq!(ask(&server, Some(&captain), &revoke, &Value::Null).status, 200);
                let seen: Vec<_> = (0..ASKERS).map(|_| looks(&server, &lost)).collect();
                assert_eq!(seen, [401; ASKERS]);
            });
        }
    }
}

on_both! {
    /// Breaks when a token that another process took back counts for as long as somebody shows it, or when anything can be
    /// changed with it while it is remembered.
    fn a_token_taken_back_elsewhere_changes_nothing_and_soon_sees_nothing(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, REQUIRED);
        for round in 0..ROUNDS {
            let (lost, id) = create(&world, &format!("lost-{round}"), &["--role", "operator"]);
            let sweep = || ask(&server, Some(&lost), "POST /gc", &json!({ "dry_run": true })).status;
            assert_eq!((looks(&server, &lost), sweep()), (200, 200));
            thread::scope(|scope| {
                for _ in 0..ASKERS {
                    scope.spawn(|| refused(&server, &lost));
                }
                world.ok(&["token", "revoke", &id]);
                assert_eq!(sweep(), 401);
            });
        }
    }
}

on_both! {
    /// F6. Breaks when a token that was made with another one opens anything after that one was taken back, or when no one is
    /// alerted that it was made.
    fn a_token_made_with_a_token_ends_with_it(kind: Kind) {
        let world = World::new(kind);
        let server = Server::start(&world, REQUIRED);
        let (maker, id) = create(&world, "maker", &["--role", "human", "--expires", "1h"]);
        let make = |name: &str, life: Option<u64>| {
            ask(&server, Some(&maker), "POST /tokens", &json!({ "name": name, "role": "human", "expires_in_s": life }))
        };
        assert_eq!(make("late", Some(7_200)).seen(), (422, "invalid"));
        let made = make("made", None);
        assert_eq!((made.status, &made.body["token"]["made_by"]), (200, &id.as_str().into()), "{}", made.body);
        assert!(made.body["token"]["expires_at"].is_string(), "{}", made.body);
        let secret = made.body["secret"].as_str().unwrap();
        assert_eq!(looks(&server, secret), 200);
        let alerts = ask(&server, Some(secret), "GET /events", &Value::Null).body["events"].clone();
        let alert = alerts.as_array().unwrap().iter().find(|event| event["kind"] == "alert").unwrap();
        assert_eq!((&alert["data"]["token"], &alert["data"]["made_by"]), (&made.body["token"]["id"], &id.as_str().into()));
        let revoked = ask(&server, Some(secret), &format!("POST /tokens/{id}/revoke"), &Value::Null);
        assert_eq!((revoked.status, &revoked.body["tokens_ended"]), (200, &1.into()), "{}", revoked.body);
        assert_eq!((looks(&server, secret), looks(&server, &maker)), (401, 401));
    }
}
