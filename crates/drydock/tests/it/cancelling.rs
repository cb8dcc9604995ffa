//! Cancelling from another process while an agent works.

use serde_json::json;

use crate::fanning::{self, piece, subplan};
use crate::tokens::{ask, ask_with, create};
use crate::working::Server;
use crate::world::{Answer, LIMIT, World, list, text};

on_both! {
    /// S1.1. Breaks when the request does not reach the process that works, when it works without its lock or keeps it, or when cancelling throws work away.
    fn a_cancel_from_another_process_stops_the_agent_and_keeps_its_work(kind: Kind) {
        let world = World::with_writer(kind, "");
        world.agent("writer", &format!("echo half > half.txt; sleep 300 & touch {}; wait", world.place("began")));
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("began");
        world.assert_held(&id);
        let cancelled = world.drydock(&["plan", "cancel", &id, "--reason", "changed my mind"]).expect(0);
        assert_eq!(crate::world::stage(cancelled.plan()), "execute/cancelled");
        let ended = Answer::of(running.wait(LIMIT)).expect(1);
        assert_eq!(ended.error_code(), "plan_cancelled");
        assert!(ended.json["error"]["text"].as_str().unwrap().contains("changed my mind"), "{:#}", ended.json);
        world.wait_dead(&id);
        assert_eq!(world.locks().len(), 0);
        assert_eq!(world.count(&id, "plan.cancelled"), 1);
        let run = crate::world::text(&world.show(&id)["run"]);
        let worktrees = world.repo.git(&["worktree", "list", "--porcelain"]);
        let tree = worktrees.lines().find(|line| line.contains(&run)).expect("the worktree is kept");
        let tree = std::path::PathBuf::from(tree.trim_start_matches("worktree "));
        assert_eq!(std::fs::read_to_string(tree.join("half.txt")).unwrap(), "half\n");
        let removed = list(&world.ok(&["gc"])["gc"]["removed"]);
        assert_eq!(removed.len(), 1, "{removed:?}");
        assert!(!tree.exists());
        let snapshots = world.repo.git(&["for-each-ref", "--format=%(refname)", &format!("refs/drydock/snap/{id}/")]);
        let snapshot = snapshots.lines().last().expect("the work is kept as a snapshot");
        assert_eq!(world.repo.git(&["show", &format!("{snapshot}:half.txt")]), "half");
        assert_eq!(world.repo.git(&["status", "--porcelain"]), "");
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when somebody who saw an earlier revision cancels a plan that runs, or when one who saw the latest is told
    /// that they did not.
    fn a_plan_that_runs_is_cancelled_as_it_was_seen(kind: Kind) {
        let world = World::with_writer(kind, "");
        world.agent("writer", &format!("touch {}; sleep 300", world.place("began")));
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("began");
        let server = Server::start(&world, &["--workers", "0"]);
        let revision = world.show(&id)["revision"].as_i64().unwrap();
        let cancel = |seen: i64| {
            let headers = format!("Host: {}\r\n{}If-Match: {seen}\r\n", server.address(), server.bearer());
            ask_with(&server, &headers, &format!("POST /plans/{id}/cancel"), &json!({ "reason": "no" }))
        };
        let late = cancel(revision - 1);
        assert_eq!((late.status, world.stage(&id).as_str()), (412, "execute/processing"), "{late:?}");
        assert_eq!(world.query("SELECT count(*) FROM requests"), "0", "the run was asked to stop");
        let done = cancel(revision);
        assert_eq!((done.status, world.stage(&id).as_str()), (200, "execute/cancelled"), "{done:?}");
        Answer::of(running.wait(LIMIT)).expect(1);
        world.assert_sound(&id);
    }
}

on_both! {
    /// N5. Breaks when an operator's revert ends the question of a subplan, when the plan above it does not name that
    /// question, or when a person who cancels the plan leaves the question open.
    fn an_operator_s_revert_keeps_a_subplan_s_question_and_a_person_s_cancel_ends_it(kind: Kind) {
        let world = fanning::world(kind, &json!({}));
        world.write("ask", "{\"drydock\":\"ask\",\"question\":\"Which colour?\"}\n");
        let asks = piece("asks", &format!("cat {}; sleep 300", world.place("ask")), &[]);
        fanning::draft(&world, &json!({ "subplans": [asks] }));
        let (operator, _) = create(&world, "night-shift", &["--role", "operator"]);
        let id = world.plan(&[]);
        world.ok(&["plan", "strategize", &id]);
        world.drydock(&["plan", "execute", &id]).expect(6);
        let child = text(&subplan(&world, &id, "asks")["plan"]);
        let server = Server::start(&world, &["--workers", "0"]);
        let reverted = ask(&server, Some(&operator), &format!("POST /plans/{id}/revert"), &json!({ "reason": "again" }));
        assert_eq!((reverted.status, world.stage(&child).as_str()), (200, "execute/waiting"), "{reverted:?}");
        let waits = world.drydock(&["plan", "strategize", &id]).expect(6);
        let asked = text(&world.show(&child)["pending_decision"]);
        assert_eq!(waits.json["error"]["details"]["decision_id"], asked.as_str());
        world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
        assert_eq!(world.stage(&child), "execute/cancelled", "a person ended the plan above it");
        assert!(list(&world.ok(&["decision", "list", "--open"])["decisions"]).is_empty());
    }
}
