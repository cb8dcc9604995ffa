//! Rate limits: a run that meets one ends with its work kept, and its phase goes on by itself when the limit is over.

use drydock_testkit::program::acp_agent;
use drydock_testkit::wait;

use crate::shared::Shared;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// Makes a machine whose writer meets a limit on its first `times` runs, then does its work. Each run leaves a line.
fn world(kind: Kind, times: usize, message: &str) -> World {
    let world = World::with_writer(kind, "");
    limit_writer(&world, times, message);
    world
}

fn limit_writer(world: &World, times: usize, message: &str) {
    let starts = world.place("starts");
    let script = format!(
        "echo x >> {starts}\nif [ $(wc -l < {starts}) -le {times} ]; then echo half > half.txt\n\
         echo '{{\"drydock\":\"rate_limited\",{message}}}'; sleep 60; fi\necho hi > hello.txt"
    );
    world.agent("writer", &script);
}

fn waits(world: &World, plan: &str) -> serde_json::Value {
    world.show(plan)["waits"].clone()
}

on_both! {
    /// Breaks when the foreground gives up or does not say until when it waits, when the work so far is lost, or when
    /// the limit counts as a failure.
    fn a_limited_run_waits_in_the_foreground_and_goes_on_with_its_work(kind: Kind) {
        let world = world(kind, 2, "\"retry_after\":2");
        let id = world.plan_after("strategize");
        let done = world.drydock(&["plan", "execute", &id]).expect(0);
        assert!(done.stderr.contains("waiting until 20") && done.stderr.contains("reached its rate limit"), "{}", done.stderr);
        assert_eq!((world.lines("starts").len(), world.count(&id, "agent.rate_limited")), (3, 2));
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        let landed = world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["half.txt", "hello.txt"], "the work so far is kept");
        world.assert_sound(&id);
    }
}

on_both! {
    /// page B8: breaks when a backup with a false reason is made of work that a checkpoint keeps.
    fn work_before_a_rate_limit_is_a_checkpoint_and_no_backup(kind: Kind) {
        let shared = Shared::new(kind, "");
        let world = &shared.world;
        limit_writer(world, 1, "\"retry_after\":1");
        let id = shared.plan("fix");
        for phase in ["strategize", "execute"] {
            world.drydock(&["plan", phase, &id]).expect(0);
        }
        let backups = list(&world.ok(&["backup", "list", "--plan", &id])["backups"]);
        assert!(backups.is_empty(), "{backups:#?}");
        let checkpoints = list(&world.ok(&["checkpoint", "list", &id])["checkpoints"]);
        assert_eq!(checkpoints.len(), 2, "before the limit, and the result: {checkpoints:#?}");
    }
}

on_both! {
    /// Breaks when the wait dies with its process, when a worker does not heed it, or when nobody is told of it.
    fn a_wait_survives_its_worker_and_another_heeds_it(kind: Kind) {
        let world = world(kind, 1, "\"retry_after\":\"6s\"");
        let id = world.plan(&["--profile", "auto"]);
        let first = world.spawn(&["worker"]);
        let until = wait::until("the plan to wait", LIMIT, || waits(&world, &id)["until"].as_str().map(str::to_owned));
        first.terminate();
        Answer::of(first.wait(LIMIT)).expect(0);
        let why = world.ok(&["plan", "why", &id]);
        let said = text(&why["why"]["summary"]);
        assert!(said.contains("waits until") && said.contains("rate limit"), "{said}");
        let second = world.spawn(&["worker"]);
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        let started: Vec<_> = world.events(&id).into_iter().filter(|event| event["kind"] == "plan.started").collect();
        let executed: Vec<_> = started.iter().filter(|event| event["data"]["phase"] == "execute").collect();
        assert_eq!(executed.len(), 2);
        assert!(text(&executed[1]["at"]) >= until, "{} is before {until}", executed[1]["at"]);
        second.terminate();
        Answer::of(second.wait(LIMIT)).expect(0);
        world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a person cannot go on at once, or an interrupted wait is lost.
    fn a_wait_is_interrupted_and_ended_by_a_person(kind: Kind) {
        let world = world(kind, 2, "\"retry_after\":\"20h\"");
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        wait::until("the plan to wait", LIMIT, || waits(&world, &id)["until"].as_str().map(drop));
        running.interrupt();
        let ended = Answer::of(running.wait(LIMIT)).expect(130);
        assert!(text(&ended.json["error"]["hint"]).contains(&id), "{:#}", ended.json);
        assert_eq!((world.stage(&id).as_str(), world.locks().len()), ("execute/queued", 0));
        // Typing the phase is the wish to go on now; it meets the limit again, and is let go of by `retry`.
        let running = world.spawn(&["plan", "execute", &id]);
        wait::until("the second wait", LIMIT, || (waits(&world, &id)["times"].as_u64() == Some(1) && world.lines("starts").len() == 2).then_some(()));
        world.ok(&["plan", "retry", &id]);
        Answer::of(running.wait(LIMIT)).expect(0);
        assert_eq!((world.stage(&id).as_str(), world.lines("starts").len()), ("execute/complete", 3));
    }
}

on_both! {
    /// Breaks when a plan waits for days unasked, or cannot go on after the answer.
    fn a_limit_that_lasts_for_days_is_asked_about(kind: Kind) {
        let world = world(kind, 1, "\"retry_after\":\"90h\"");
        let id = world.plan_after("strategize");
        world.drydock(&["plan", "execute", &id]).expect(6);
        assert_eq!(world.stage(&id), "execute/waiting");
        let decision = list(&world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"])[0].clone();
        assert_eq!(decision["kind"], "rate_limit");
        world.ok(&["decision", "resolve", &text(&decision["id"]), "--option", "wait"]);
        assert!(waits(&world, &id)["until"].is_string());
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.assert_sound(&id);
    }
}

/// Breaks when an error of the protocol that says it is a limit ends the plan.
#[test]
fn a_limit_told_by_the_protocol_is_waited_for() {
    let world = World::new(Kind::Sqlite);
    let mark = world.place("met");
    let script = format!("exec {} limited 1 {mark}", acp_agent());
    world.settings(&format!(
        "[agents.writer]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{script}\"]\n"
    ));
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("apply");
    world.assert_landed_once(&id);
    assert_eq!(world.count(&id, "agent.rate_limited"), 1);
    assert!(world.repo.path().join("half.txt").exists() && world.repo.path().join("hello.txt").exists());
}
