//! A plan over HTTP is the plan as it is stored now, whoever changed it and however.

use serde_json::Value;

use crate::tokens::ask;
use crate::working::Server;
use crate::world::{World, text};

const OPEN: &[&str] = &["--workers", "0", "--tokens", "optional"];

/// Returns the plan as the server tells it, the same twice.
#[track_caller]
fn told(server: &Server, id: &str) -> Value {
    let look = || ask(server, None, &format!("GET /plans/{id}"), &Value::Null);
    let (first, again) = (look(), look());
    assert_eq!((first.status, again.status), (200, 200), "{}", first.body);
    assert_eq!(first.body, again.body);
    first.body["plan"].clone()
}

on_both! {
    /// Breaks when a server that told a plan goes on to tell it after another process has changed it.
    fn a_plan_that_another_process_changed_is_told_as_it_is_now(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let server = Server::start(&world, OPEN);
        let (id, other) = (world.plan(&[]), world.plan(&[]));
        let untouched = told(&server, &other);
        for step in ["strategize", "execute", "apply"] {
            let before = told(&server, &id);
            world.ok(&["plan", step, &id]);
            // Another process, which has told nobody anything before.
            let after = world.show(&id);
            assert_ne!(before, after);
            assert_eq!(told(&server, &id), after, "after {step}");
            assert_eq!(told(&server, &other), untouched);
        }
    }
}

on_both! {
    /// Breaks when a plan is taken for the one that was told before because some of it is the same: a store that was put back
    /// has its revisions again, and a row that disagrees with itself is never told.
    fn a_plan_that_differs_in_anything_is_told_anew(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let server = Server::start(&world, OPEN);
        let id = world.plan(&[]);
        let before = told(&server, &id);
        let meddle = |set: &str| world.query(&format!("UPDATE plans SET {set} WHERE id = '{id}'"));
        meddle("body = replace(body, 'Do fix', 'Do fax')");
        assert_eq!(text(&told(&server, &id)["task"]), "Do fax");
        meddle("body = replace(body, 'Do fax', 'Do fix')");
        assert_eq!(told(&server, &id), before);
        for (damage, repair) in [
            ("state = 'applied'", "state = 'queued'"),
            ("phase = 'apply'", "phase = 'strategize'"),
            ("revision = 7", "revision = 1"),
            ("project = 'canoe'", "project = 'app'"),
            ("action = 'row'", "action = 'fix'"),
        ] {
            meddle(damage);
            let refused = ask(&server, None, &format!("GET /plans/{id}"), &Value::Null);
            assert_eq!((refused.status, &refused.body["code"]), (503, &"store_damaged".into()), "{damage}");
            meddle(repair);
            assert_eq!(told(&server, &id), before, "{repair}");
        }
    }
}
