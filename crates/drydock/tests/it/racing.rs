//! Many processes, one plan; many plans, one project.

use std::time::Duration;

use drydock_testkit::proc::RunningProcess;
use drydock_testkit::wait;

use crate::world::{Answer, CONFLICT, Kind, LIMIT, World, list};

fn all(world: &World, count: usize, args: &[&str]) -> Vec<Answer> {
    let running: Vec<RunningProcess> = (0..count).map(|_| world.spawn(args)).collect();
    running.into_iter().map(|one| Answer::of(one.wait(LIMIT))).collect()
}

fn counting(kind: Kind, rest: &str) -> World {
    let world = World::with_writer(kind, "");
    world.agent("writer", &format!("echo run >> {}; {rest}", world.place("runs")));
    world
}

on_both! {
    /// S1.1, S1.6, S2.3. Breaks when two processes can hold one plan, or when the loser is told less than who has it.
    fn twenty_processes_execute_one_plan_once(kind: Kind) {
        let world = counting(kind, "sleep 2; echo hi > hello.txt");
        let id = world.plan_after("strategize");
        let running: Vec<RunningProcess> = (0..20).map(|_| world.spawn(&["plan", "execute", &id])).collect();
        let pids: Vec<u64> = running.iter().map(|one| u64::from(one.pid())).collect();
        let lock = wait::until("the lock of the one that works", LIMIT, || {
            let locks = world.locks();
            locks.into_iter().find(|lock| lock["key"] == id.as_str() && lock["purpose"] == "drive a phase")
        });
        assert_eq!((&lock["scope"], &lock["stale"]), (&"plan".into(), &false.into()));
        assert!(pids.contains(&lock["pid"].as_u64().unwrap()), "{lock}");
        let mut finished = 0;
        for answer in running.into_iter().map(|one| Answer::of(one.wait(LIMIT))) {
            if answer.code == Some(0) {
                finished += 1;
                assert_eq!(crate::world::stage(answer.plan()), "execute/complete");
                continue;
            }
            let error = &answer.expect(CONFLICT).json["error"];
            assert_eq!(error["code"], "lock_held", "{error}");
            let details = &error["details"];
            assert!(pids.contains(&details["pid"].as_u64().unwrap()), "{error}");
            assert!(details["owner"].is_string() && details["host"] == lock["host"], "{error}");
        }
        assert!(finished >= 1);
        assert_eq!(world.lines("runs").len(), 1, "agents run");
        let started = world.events(&id).into_iter().filter(|event| {
            event["kind"] == "plan.started" && event["data"]["phase"] == "execute"
        });
        assert_eq!(started.count(), 1);
        world.assert_sound(&id);
        assert_eq!(world.locks().len(), 0);
    }
}

on_both! {
    /// S2.3. Breaks when the landing is not under the plan's and the project's lock.
    fn ten_processes_apply_one_plan_once(kind: Kind) {
        let world = counting(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let answers = all(&world, 10, &["plan", "apply", &id]);
        assert!(answers.iter().any(|answer| answer.code == Some(0)), "{answers:?}");
        for answer in answers.iter().filter(|answer| answer.code != Some(0)) {
            // Held by another, or landed by it before this one looked.
            assert_eq!(answer.code, Some(CONFLICT), "{answer:?}");
            assert!(["lock_held", "wrong_state"].contains(&answer.error_code()), "{answer:?}");
        }
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// S2.1, S2.2. Breaks when a process trusts what it read earlier.
    fn a_plan_that_another_process_applied_cannot_be_executed_again(kind: Kind) {
        let world = counting(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let server = crate::working::Server::start(&world, &["--workers", "0"]);
        let known = server.drydock(&world, &["plan", "show", &id]).expect(0);
        assert_eq!(crate::world::stage(known.plan()), "execute/complete");
        world.ok(&["plan", "apply", &id]);
        let (seen, told) = (world.show(&id), world.events(&id));
        let refused = server.post(&format!("/api/v1/plans/{id}/execute"));
        assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("\"wrong_state\""), "{refused}");
        for answer in [server.drydock(&world, &["plan", "execute", &id]), world.drydock(&["plan", "execute", &id])] {
            // D4: nothing is left to do, and that nothing was done is said.
            let answer = answer.expect(0);
            let landed = answer.plan()["landed_commit"].as_str().unwrap().to_owned();
            assert_eq!(answer.json["messages"][0]["text"], format!("already landed as {landed}"));
        }
        for phase in ["strategize", "apply"] {
            world.drydock(&["plan", phase, &id]).expect(0);
        }
        assert_eq!((world.show(&id), world.events(&id)), (seen, told));
        let now = server.drydock(&world, &["plan", "list", "--state", "applied"]).expect(0);
        assert_eq!(list(&now.json["data"]["plans"]).len(), 1);
        assert_eq!(world.lines("runs").len(), 1);
        world.assert_landed_once(&id);
    }
}

on_both! {
    /// S1.2. Breaks when a landing does not hold the project's lock from before it merges until it is recorded.
    fn a_landing_waits_for_the_one_before_it(kind: Kind) {
        let world = World::with_writer(kind, "echo one > one.txt");
        let (judging, go) = (world.place("judging"), world.place("go"));
        // The first to judge a merged result waits to be told; whoever comes second is quick.
        let judge = format!("mkdir {judging} 2>/dev/null || exit 0; while [ ! -e {go} ]; do sleep 0.05; done");
        let one = world.plan_after("execute");
        world.agent("writer", "echo two > two.txt");
        let two = world.plan_after("execute");
        world.ok(&["plan", "apply", &one, "--detach"]);
        world.ok(&["plan", "apply", &two, "--detach"]);
        world.ok(&["invariant", "add", "slow", "--command", &judge, "--at", "apply"]);
        let first = world.spawn(&["plan", "apply", &one]);
        world.wait_file("judging");
        let second = world.spawn(&["plan", "apply", &two]);
        wait::until("the second landing to begin", LIMIT, || (world.stage(&two) == "apply/processing").then_some(()));
        let projects = world.locks().iter().filter(|lock| lock["scope"] == "project").count();
        assert_eq!(projects, 1);
        // Time enough for a landing that does not wait; one that does has nothing to do with it.
        std::thread::sleep(Duration::from_secs(2));
        world.write("go", "");
        for ended in [first, second] {
            Answer::of(ended.wait(LIMIT)).expect(0);
        }
        let seq = |plan: &str, kind: &str| {
            let events = world.events(plan);
            events.iter().find(|event| event["kind"] == kind).unwrap()["seq"].as_i64().unwrap()
        };
        assert!(seq(&one, "plan.applied") < seq(&two, "apply.intended"));
        world.assert_landed_once(&one);
        world.assert_landed_once(&two);
    }
}

on_both! {
    /// Breaks when a landing overwrites what landed meanwhile.
    fn two_plans_of_one_project_land_at_the_same_time(kind: Kind) {
        let world = World::with_writer(kind, "echo one > one.txt");
        let one = world.plan_after("execute");
        world.agent("writer", "echo two > two.txt");
        let two = world.plan_after("execute");
        let running = [world.spawn(&["plan", "apply", &one]), world.spawn(&["plan", "apply", &two])];
        for ended in running.map(|one| Answer::of(one.wait(LIMIT))) {
            ended.expect(0);
        }
        world.assert_landed_once(&one);
        world.assert_landed_once(&two);
        assert_eq!(world.repo.git(&["show", "main:one.txt"]), "one");
        assert_eq!(world.repo.git(&["show", "main:two.txt"]), "two");
        assert_eq!(world.repo.log_subjects("main").len(), 3);
    }
}
