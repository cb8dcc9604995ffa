//! SIGINT and SIGTERM while an agent works: the plan can be resumed at once (S1.5).

use drydock_testkit::proc::Running;
use drydock_testkit::wait;

use crate::world::{Answer, Kind, LIMIT, World};

fn handed_back(kind: Kind, signal: fn(&Running), code: i32) {
    let world = World::with_writer(kind, "");
    world.agent("writer", &format!("sleep 300 & touch {}; wait", world.place("began")));
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    signal(&running);
    let ended = Answer::of(running.wait(LIMIT)).expect(code);
    assert!(ended.json["error"]["hint"].as_str().unwrap().contains(&id), "{:#}", ended.json);
    assert_eq!(world.stage(&id), "execute/queued");
    assert_eq!(world.locks().len(), 0);
    world.wait_dead(&id);
    world.agent("writer", "echo hi > hello.txt");
    world.drydock(&["plan", "execute", &id]).expect(0);
    world.drydock(&["plan", "apply", &id]).expect(0);
    world.assert_landed_once(&id);
    world.assert_sound(&id);
}

on_both! {
    /// S1.5. Breaks when an interruption leaves the lock, the agent, or a plan that nobody may go on with.
    fn an_interrupted_plan_is_handed_back(kind: Kind) {
        handed_back(kind, Running::interrupt, 130);
    }
}

on_both! {
    /// S1.5. Breaks when a process that is told to end leaves the lock, the agent, or a stuck plan.
    fn a_terminated_plan_is_handed_back(kind: Kind) {
        handed_back(kind, Running::terminate, 143);
    }
}

on_both! {
    /// S1.5. Breaks when a landing that waits for its turn counts as failed when it is interrupted.
    fn a_landing_interrupted_while_it_waits_for_another_is_handed_back(kind: Kind) {
        let world = World::with_writer(kind, "echo one > one.txt");
        let one = world.plan_after("execute");
        world.agent("writer", "echo two > two.txt");
        let two = world.plan_after("execute");
        let (judging, go) = (world.place("judging"), world.place("go"));
        let judge = format!("touch {judging}; while [ ! -e {go} ]; do sleep 0.05; done");
        let scope = format!("plan:{one}");
        world.ok(&["plan", "apply", &one, "--detach"]);
        world.ok(&["invariant", "add", "slow", "--command", &judge, "--scope", &scope, "--at", "apply"]);
        let landing = world.spawn(&["plan", "apply", &one]);
        world.wait_file("judging");
        let waiting = world.spawn(&["plan", "apply", &two]);
        wait::until("the second landing", LIMIT, || (world.stage(&two) == "apply/processing").then_some(()));
        waiting.interrupt();
        Answer::of(waiting.wait(LIMIT)).expect(130);
        assert_eq!(world.stage(&two), "apply/queued");
        world.write("go", "");
        Answer::of(landing.wait(LIMIT)).expect(0);
        world.drydock(&["plan", "apply", &two]).expect(0);
        world.assert_landed_once(&one);
        world.assert_landed_once(&two);
    }
}
