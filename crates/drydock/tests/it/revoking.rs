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
