//! SIGINT, SIGTERM and SIGHUP while an agent works: the plan can be resumed at once (S1.5).

use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;

use crate::seeing::seen;
use crate::world::{Answer, Kind, LIMIT, World};

fn handed_back(kind: Kind, signal: fn(&RunningProcess), code: i32) {
    let world = World::with_writer(kind, "");
    world.agent("writer", &format!("echo half > half.txt; sleep 300 & touch {}; wait", world.place("began")));
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    world.assert_held(&id);
    signal(&running);
    let ended = Answer::of(running.wait(LIMIT)).expect(code);
    assert!(ended.json["error"]["hint"].as_str().unwrap().contains(&id), "{:#}", ended.json);
    assert_eq!(world.stage(&id), "execute/queued");
    assert_eq!(world.locks().len(), 0);
    world.wait_dead(&id);
    let seen = seen(&world, &id);
    assert_eq!(
        seen,
        ("goes_on".to_owned(), vec!["half.txt".to_owned()]),
        "what it wrote can be seen at once, and the next run continues it"
    );
    assert_eq!(world.ok(&["changeset", "list", &id])["changesets"][0]["entries"][0]["path"], "half.txt");
    world.agent("writer", "echo hi > hello.txt");
    world.drydock(&["plan", "execute", &id]).expect(0);
    world.drydock(&["plan", "apply", &id]).expect(0);
    world.assert_landed_once(&id);
    world.assert_sound(&id);
}

on_both! {
    /// S1.1, S1.5. Breaks when a run does not hold its lock, or an interruption leaves the lock, the agent, or a plan that nobody may go on with.
    fn an_interrupted_plan_is_handed_back(kind: Kind) {
        handed_back(kind, RunningProcess::interrupt, 130);
    }
}

/// S1.1, S1.5. Breaks when a process that is told to end leaves the lock, the agent, or a stuck plan. What is handed back
/// to either store is shown above; here it is which signals do it.
#[test]
fn a_terminated_plan_is_handed_back() {
    handed_back(Kind::Sqlite, RunningProcess::terminate, 143);
}

/// S1.1, S1.5. Breaks when closing the terminal leaves the lock, the agent, or a stuck plan.
#[test]
fn a_plan_whose_terminal_is_closed_is_handed_back() {
    handed_back(Kind::Sqlite, RunningProcess::hang_up, 143);
}

on_both! {
    /// S1.1. Breaks when a run works without its lock, or keeps it after it succeeded or failed.
    fn a_run_holds_its_lock_until_its_end(kind: Kind) {
        let world = World::with_writer(kind, "");
        for (end, code) in [("echo hi > hello.txt", 0), ("exit 3", 1)] {
            let (began, go) = (world.place("began"), world.place("go"));
            world.agent("writer", &format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; {end}"));
            let id = world.plan_after("strategize");
            let running = world.spawn(&["plan", "execute", &id]);
            world.wait_file("began");
            world.assert_held(&id);
            world.write("go", "");
            Answer::of(running.wait(LIMIT)).expect(code);
            assert_eq!(world.locks().len(), 0, "after {end}");
            for place in [began, go] {
                std::fs::remove_file(place).unwrap();
            }
        }
    }
}

/// Breaks when what was started to outlive its terminal, as with `nohup`, ends with it.
#[test]
fn a_plan_that_was_to_outlive_its_terminal_does() {
    let world = World::with_writer(Kind::Sqlite, "");
    let (began, go) = (world.place("began"), world.place("go"));
    world.agent(
        "writer",
        &format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; echo hi > hello.txt"),
    );
    let id = world.plan_after("strategize");
    let plain = world.command(&["plan", "execute", &id]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(plain.get_program()).args(plain.get_args());
    command.env_clear().envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = proc::spawn(&mut command);
    world.wait_file("began");
    running.hang_up();
    world.write("go", "");
    Answer::of(running.wait(LIMIT)).expect(0);
    assert_eq!(world.stage(&id), "execute/complete");
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
