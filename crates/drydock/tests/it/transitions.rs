//! S0: a transition that fails leaves everything as it was, for every observer.

use drydock_store::CrashPoint;
use drydock_testkit::wait;
use serde_json::Value;

use crate::tokens::{ask, human};
use crate::working::Server;
use crate::world::{LIMIT, World, text};

const WRITE: &str = "echo hi > hello.txt";

/// The phase that an invariant guards, what the plan has done before, and where it stands.
const GUARDED: [(&str, &str, &str); 3] = [
    ("strategize", "use", "strategize/queued"),
    ("execute", "strategize", "strategize/complete"),
    ("apply", "execute", "execute/complete"),
];

/// Returns the plan without what its rules said last and what follows from that.
fn record(world: &World, id: &str) -> serde_json::Value {
    let mut plan = world.show(id);
    let fields = plan.as_object_mut().unwrap();
    fields.retain(|name, _| name != "blocked" && name != "offers");
    plan
}

on_both! {
    /// S0.1, S0.2, S0.3, S0.5. Breaks when a blocked command records anything of the transition that it refused.
    fn a_blocked_transition_leaves_the_plan_as_it_was(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        for (phase, before, stands) in GUARDED {
            let id = if before == "use" { world.plan(&[]) } else { world.plan_after(before) };
            let seen = record(&world, &id);
            assert_eq!(crate::world::stage(&seen), stands);
            world.ok(&["invariant", "add", "frozen", "--cel", "false", "--at", phase]);
            let refused = world.drydock(&["plan", phase, &id]).expect(5);
            assert_eq!(refused.error_code(), "invariant_blocked");
            assert!(refused.json["error"]["text"].as_str().unwrap().contains("frozen"), "{:#}", refused.json);
            assert_eq!(record(&world, &id), seen, "blocked before {phase}");
            assert_eq!(world.show(&id)["blocked"]["phase"], phase);
            assert_eq!(world.count(&id, "invariant.blocked"), 1);
            assert_eq!(world.locks().len(), 0);
            world.ok(&["invariant", "remove", "frozen"]);
            world.ok(&["plan", phase, &id]);
        }
    }
}

on_both! {
    /// S0.2, S0.3, S0.4. Breaks when a refused command changes anything of a plan, keeps its lock, or leaves a server and
    /// the command line with different views of it.
    fn a_refused_command_leaves_the_plan_as_it_was(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let server = Server::start(&world, &["--workers", "0"]);
        let asking = world.plan(&["--profile", "manual"]);
        let decision = text(&world.show(&asking)["pending_decision"]);
        let applied = world.plan_after("execute");
        world.ok(&["plan", "apply", &applied]);
        let refused: [(&str, &[&str], i32); 11] = [
            (&asking, &["plan", "execute", &asking], 4),
            (&asking, &["plan", "apply", &asking], 4),
            (&asking, &["plan", "retry", &asking], 4),
            (&asking, &["plan", "revert", &asking, "--reason", "no"], 4),
            (&asking, &["decision", "resolve", &decision, "--option", "perhaps"], 2),
            (&applied, &["plan", "retry", &applied], 4),
            (&applied, &["plan", "revert", &applied, "--reason", "no"], 4),
            // Its checkpoints went with the landing.
            (&applied, &["plan", "rollback", &applied, "1"], 3),
            (&applied, &["plan", "adopt", &applied], 4),
            (&applied, &["plan", "sync", &applied], 4),
            (&applied, &["plan", "cancel", &applied, "--reason", "no"], 4),
        ];
        for (number, (id, command, code)) in refused.into_iter().enumerate() {
            let seen = world.show(id);
            // Each is asked for by one process and looked at by the other, in turns.
            let answer = if number % 2 == 0 { world.drydock(command) } else { server.drydock(&world, command) };
            answer.expect(code);
            assert_eq!(world.show(id), seen, "{command:?}");
            assert_eq!(server.drydock(&world, &["plan", "show", id]).expect(0).plan(), &seen, "{command:?}");
        }
        assert_eq!(world.locks().len(), 0);
        // Another process than the one that was refused continues from there.
        world.ok(&["plan", "strategize", &asking]);
        assert_eq!(world.stage(&asking), "strategize/complete");
    }
}

on_both! {
    /// S0.1, S0.2, S0.4, B5, D1. Breaks when a Strategize that asks first and is blocked loses its gate, is answered
    /// otherwise than the other phases, or starts later without being asked.
    fn a_blocked_strategize_keeps_its_gate(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let id = world.plan(&["--profile", "manual"]);
        let seen = record(&world, &id);
        let gate = seen["pending_decision"].as_str().unwrap().to_owned();
        world.ok(&["invariant", "add", "frozen", "--cel", "false", "--at", "strategize"]);
        let ways = [&["plan", "strategize", &id][..], &["decision", "resolve", &gate, "--option", "approve"]];
        for way in ways {
            assert_eq!(world.drydock(way).expect(5).error_code(), "invariant_blocked", "{way:?}");
            assert_eq!(record(&world, &id), seen, "{way:?}");
        }
        let server = Server::start(&world, &["--workers", "1"]);
        let reply = ask(&server, Some(&human(&world)), &format!("POST /plans/{id}/strategize"), &Value::Null);
        assert_eq!(reply.seen(), (423, "invariant_blocked"), "{:#}", reply.body);
        world.ok(&["invariant", "remove", "frozen"]);
        // A plan that asks nobody shows that the worker looks for work.
        let other = world.plan(&["--profile", "auto"]);
        wait::until("the other plan to land", LIMIT, || (world.stage(&other) == "apply/applied").then_some(()));
        assert_eq!(record(&world, &id), seen, "nobody asked for it again");
    }
}

on_both! {
    /// S0.1, S0.5. Breaks when a step of the commit is visible before all of it is.
    fn a_commit_that_fails_changes_nothing(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        for (phase, before, _) in GUARDED {
            let id = if before == "use" { world.plan(&[]) } else { world.plan_after(before) };
            let (seen, told) = (world.show(&id), world.events(&id));
            for point in CrashPoint::all().into_iter().filter(|point| *point != CrashPoint::AfterCommit) {
                let failed = world.drydock_with("DRYDOCK_FAIL_AT", point.name(), &["plan", phase, &id]);
                assert_eq!(failed.code(), Some(1), "{phase} failing {point}\n{}", failed.stdout);
                assert_eq!(world.show(&id), seen, "{phase} failing {point}");
                assert_eq!(world.events(&id), told, "{phase} failing {point}");
                assert_eq!(world.locks().len(), 0, "{phase} failing {point}");
            }
            world.ok(&["plan", phase, &id]);
        }
    }
}

on_both! {
    /// S0.1, S0.3, S0.5, S2.3. Breaks when a crash in the commit tears it, or when what it leaves cannot be gone on with.
    fn a_crash_in_the_commit_leaves_all_or_nothing_and_another_process_goes_on(kind: Kind) {
        let world = World::with_writer(kind, WRITE);
        let mut plans = Vec::new();
        for point in CrashPoint::all() {
            let id = world.plan_after("strategize");
            let (seen, told) = (world.show(&id), world.events(&id));
            let crashed = world.drydock_with("DRYDOCK_CRASH_AT", point.name(), &["plan", "execute", &id]);
            assert_eq!(crashed.code(), None, "survived {point}");
            if point == CrashPoint::AfterCommit {
                assert_eq!(world.stage(&id), "execute/queued");
                assert_eq!(world.count(&id, "plan.advanced"), 1);
            } else {
                assert_eq!((world.show(&id), world.events(&id)), (seen, told), "torn {point}");
            }
            plans.push(id);
        }
        for id in plans {
            world.insist(&["plan", "execute", &id]).expect(0);
            assert_eq!(world.stage(&id), "execute/complete");
            assert_eq!((world.count(&id, "plan.advanced"), world.count(&id, "plan.completed")), (1, 2));
            world.assert_sound(&id);
        }
    }
}
