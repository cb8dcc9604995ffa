//! Processes that were killed on this machine: what they held is free at once, not when its time is over.

use std::fs;

use drydock_testkit::wait;

use crate::world::{Answer, CONFLICT, Kind, LIMIT, World};

/// Makes a machine whose locks would outlast every test.
fn world(kind: Kind) -> World {
    let world = World::with_writer(kind, "sleep 300");
    world.settings("[locks]\nttl = \"1h\"\n");
    world
}

/// Makes a plan whose Execute is killed in the middle.
fn killed(world: &World) -> String {
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    wait::until("the agent to run", LIMIT, || (world.stage(&id) == "execute/processing").then_some(()));
    assert_eq!(world.ok(&["doctor"])["doctor"]["stale_locks"], 0, "it lives");
    running.kill();
    running.wait(LIMIT);
    id
}

on_both! {
    /// S1.7. Breaks when a command right after a `kill -9` has to wait for the dead process's lock to run out, or when
    /// `doctor` does not count that lock.
    fn the_next_command_after_a_kill_goes_on_at_once(kind: Kind) {
        let world = world(kind);
        let id = killed(&world);
        assert_eq!(world.ok(&["doctor"])["doctor"]["stale_locks"], 1);
        world.ok(&["plan", "takeover", &id]);
        assert_eq!((world.stage(&id), world.locks().len()), ("execute/queued".into(), 0));
        let id = killed(&world);
        world.ok(&["plan", "cancel", &id, "--reason", "enough"]);
        assert_eq!(world.stage(&id), "execute/cancelled");
        let id = killed(&world);
        world.agent("writer", "echo hi > hello.txt");
        world.ok(&["plan", "execute", &id]);
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// D6. Breaks when more than one of several processes takes over a plan at the same time, or one that did not gets exit code 0;
    /// and when a plan that no process works on can be taken over.
    fn of_eight_that_take_over_a_plan_one_does(kind: Kind) {
        let world = world(kind);
        let id = killed(&world);
        let takers: Vec<_> = (0..8).map(|_| world.spawn(&["plan", "takeover", &id])).collect();
        let answers = takers.into_iter().map(|taker| Answer::of(taker.wait(LIMIT)));
        let (took, others): (Vec<_>, Vec<_>) = answers.partition(|answer| answer.code == Some(0));
        assert_eq!((took.len(), world.count(&id, "plan.taken_over")), (1, 1), "{others:?}");
        assert_eq!(crate::world::stage(took[0].plan()), "execute/queued");
        for answer in others {
            assert_eq!(answer.code, Some(CONFLICT), "{answer:?}");
            // Held by another of them, or queued since one of them was done.
            assert!(["lock_held", "wrong_state"].contains(&answer.error_code()), "{answer:?}");
        }
        assert_eq!((world.stage(&id), world.locks().len()), ("execute/queued".into(), 0));
        let again = world.drydock(&["plan", "takeover", &id]).expect(CONFLICT);
        assert_eq!(again.error_code(), "wrong_state");
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
    }
}

on_both! {
    /// S1.7. Breaks when a worker that runs, or one that is started, waits for the claims and locks of a dead one to run out.
    fn a_killed_workers_plan_is_taken_up_at_once(kind: Kind) {
        let world = world(kind);
        // Under a limit, Execute is claimed, and not only continued with under the lock of Strategize.
        world.settings("[limits]\nrunning_per_project = 4\n");
        let id = world.plan(&["--profile", "auto"]);
        let first = world.spawn(&["worker", "--workers", "1"]);
        wait::until("the agent to run", LIMIT, || (world.stage(&id) == "execute/processing").then_some(()));
        let claimed = format!("SELECT count(*) FROM outbox WHERE plan = '{id}' AND claimed_by IS NOT NULL");
        assert_eq!(world.query(&claimed).trim(), "1");
        world.agent("writer", "echo hi > hello.txt");
        let second = world.spawn(&["worker", "--workers", "1"]);
        first.kill();
        first.wait(LIMIT);
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        world.assert_landed_once(&id);
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
        second.terminate();
        Answer::of(second.wait(LIMIT)).expect(0);
    }
}

on_both! {
    /// BUG-1. Breaks when a worker that lacks a project's repository counts that against the plan, asks a person about it or
    /// keeps others from it; and when `doctor` does not name the project.
    fn a_project_that_cannot_be_opened_is_left_to_others(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan(&["--profile", "auto"]);
        let away = world.path("away");
        fs::rename(world.repo.path(), &away).unwrap();
        let lacking = drydock_testkit::proc::spawn(world.command(&["worker"]).env("DRYDOCK_LOG", "drydock=warn"));
        wait::until("the worker to give up on it", LIMIT, || {
            lacking.stderr().contains("cannot open the project").then_some(())
        });
        let doctor = world.drydock(&["doctor"]).json.to_string();
        assert!(doctor.contains("app: directory"), "{doctor}");
        let row = format!("SELECT attempts, claimed_by FROM outbox WHERE plan = '{id}'");
        wait::until("the claim to be given back", LIMIT, || (world.query(&row).trim() == "0|").then_some(()));
        fs::rename(&away, world.repo.path()).unwrap();
        let having = world.spawn(&["worker"]);
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        assert_eq!(world.count(&id, "decision.opened"), 0);
        let tries = lacking.stderr().matches("cannot open the project").count();
        assert!(tries <= 2, "it leaves the project alone for a minute, and tried it {tries} times");
        for worker in [lacking, having] {
            worker.terminate();
            Answer::of(worker.wait(LIMIT)).expect(0);
        }
    }
}
