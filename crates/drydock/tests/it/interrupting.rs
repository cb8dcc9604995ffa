//! Stops and restarts continue (N11): the agent finds the files of the interrupted run, is told so, and does only the rest. Each
//! step of an agent is counted, so that a step that is done twice shows.

use std::fs;

use drydock_testkit::proc::RunningProcess;
use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::fanning::{self, piece, subplan};
use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// An agent of three steps, each done only if its file is not there. After the second it waits for the file `go`.
fn stepping(world: &World) -> String {
    let (ran, half, go, told) =
        (world.place("ran"), world.place("half"), world.place("go"), world.place("told"));
    format!(
        "printf '%s\\n' \"$DRYDOCK_TASK\" >> {told}; \
         step() {{ [ -e step$1 ] || {{ echo $1 >> {ran}; echo done > step$1; }}; }}; \
         step 1; step 2; touch {half}; while [ ! -e {go} ]; do sleep 0.02; done; step 3"
    )
}

fn world(kind: Kind) -> World {
    let world = World::with_writer(kind, "");
    world.agent("writer", &stepping(&world));
    quick(&world);
    world
}

/// Adds an action that workers land at once.
fn quick(world: &World) {
    world.agent("quick", "echo quick > quick.txt");
    world.action("other", "[agents]\nexecute = \"quick\"");
}

/// Requires that all steps ran once, that the last agent was told to continue, and that the result has all files.
fn assert_continued(world: &World, id: &str) {
    assert_eq!(world.lines("ran"), ["1", "2", "3"], "each step once");
    let tasks = world.lines("told");
    let feedback = |task: &String| serde_json::from_str::<Value>(task).unwrap()["feedback"].clone();
    assert_eq!(feedback(&tasks[0]), json!([]));
    let last = feedback(tasks.last().unwrap()).to_string();
    assert!(last.contains("was interrupted") && last.contains("(checkpoint 1)"), "{last}");
    let files = world.repo.git(&["ls-tree", "--name-only", "main"]);
    for step in ["step1", "step2", "step3"] {
        assert!(files.lines().any(|file| file == step), "{files}");
    }
    world.assert_landed_once(id);
    world.assert_sound(id);
    assert!(world.show(id).get("interruption").is_none(), "the phase ended");
}

fn why(world: &World, id: &str) -> String {
    world.ok(&["plan", "why", id])["why"]["holds"].to_string()
}

/// Returns the checkpoint and the cause of the only interruption of a plan.
fn taken_over(world: &World, id: &str) -> (Value, Value) {
    let events = world.events(id);
    let found: Vec<_> = events.iter().filter(|event| event["kind"] == "plan.taken_over").collect();
    assert_eq!(found.len(), 1, "{found:#?}");
    (found[0]["data"]["cause"].clone(), found[0]["data"]["checkpoint"].clone())
}

/// Waits until the next run works, and looks at what is said of it.
fn assert_said(world: &World, id: &str) {
    wait::until("the next run", LIMIT, || (world.lines("told").len() == 2).then_some(()));
    assert!(why(world, id).contains("interrupted, continued from checkpoint 1"), "{}", why(world, id));
    let shown = world.show(id);
    assert_eq!(shown["interruption"]["checkpoint"], 1, "{shown:#}");
    let diff = world.ok(&["plan", "diff", id])["diff"].clone();
    assert_eq!(
        (&diff["of"]["kind"], &diff["of"]["earlier_run"]),
        (&json!("goes_on"), &json!(true)),
        "{diff:#}"
    );
}

on_both! {
    /// N11, page B7. Breaks when a SIGTERM of `serve` makes an agent start over, holds the plan from other workers, or does not
    /// say that the next run continues; and when Changes shows the old run's files as work of the new one.
    fn a_restart_of_the_server_continues_the_work(kind: Kind) {
        let world = world(kind);
        let id = world.plan(&["--profile", "auto"]);
        let server = Server::start(&world, &["--workers", "1"]);
        world.wait_file("half");
        server.stop();
        let shown = world.show(&id);
        assert_eq!((world.stage(&id).as_str(), &shown["pending_decision"]), ("execute/queued", &Value::Null));
        assert_eq!(taken_over(&world, &id), (json!("interrupted"), json!(1)));
        assert!(why(&world, &id).contains("interrupted, continues from checkpoint 1"), "{}", why(&world, &id));
        let worker = world.spawn(&["worker", "--workers", "1"]);
        assert_said(&world, &id);
        world.write("go", "");
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        end(worker);
        assert_continued(&world, &id);
    }
}

on_both! {
    /// N11. Breaks when the work of a process that was killed with `kill -9` is not what the next run starts from.
    fn a_killed_process_leaves_work_that_is_continued(kind: Kind) {
        let world = world(kind);
        let id = world.plan(&["--profile", "auto"]);
        let worker = world.spawn(&["worker", "--workers", "1"]);
        world.wait_file("half");
        worker.kill();
        worker.wait(LIMIT);
        world.wait_dead(&id);
        let worker = world.spawn(&["worker", "--workers", "1"]);
        assert_said(&world, &id);
        world.write("go", "");
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        end(worker);
        assert_eq!(taken_over(&world, &id), (json!("owner_gone"), json!(1)));
        assert_continued(&world, &id);
    }
}

on_both! {
    /// page B10. Breaks when a worker of a server on the same store continues what a person stopped with Ctrl-C, when the message
    /// names no command that continues it, or when that command starts over.
    fn what_a_person_stopped_rests_beside_a_server(kind: Kind) {
        let world = world(kind);
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("half");
        let server = Server::start(&world, &["--workers", "2"]);
        running.interrupt();
        let ended = Answer::of(running.wait(LIMIT)).expect(130);
        let resume = format!("drydock plan execute {id}");
        assert!(ended.json["error"]["hint"].as_str().unwrap().contains(&resume), "{:#}", ended.json);
        assert!(ended.stderr.contains("no worker continues the plan until you do"), "{}", ended.stderr);
        rests(&world, &id);
        world.write("go", "");
        let words: Vec<_> = resume.split(' ').skip(1).collect();
        world.drydock(&words).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        server.stop();
        assert_continued(&world, &id);
    }
}

/// Requires that the plan waits for a person, and that workers which are there and work do not take it.
fn rests(world: &World, id: &str) {
    let asked = fanning::decision(world, id);
    assert_eq!((&asked["kind"], &asked["details"]["stopped"]), (&json!("gate"), &json!(true)), "{asked:#}");
    let runs = world.show(id)["runs"].clone();
    let other =
        text(&world.ok(&["plan", "use", "other", "--project", "app", "--profile", "auto"])["plan"]["id"]);
    wait::until("the workers to land another plan", LIMIT, || {
        (world.stage(&other) == "apply/applied").then_some(())
    });
    assert_eq!((world.stage(id).as_str(), &world.show(id)["runs"]), ("execute/queued", &runs));
}

on_both! {
    /// page B10. Breaks when a worker continues a subplan of what a person stopped, when its turn does not come again, or when a
    /// subplan starts over.
    fn what_a_person_stopped_rests_with_its_subplans(kind: Kind) {
        let world = fanning::world(kind, &json!({}));
        quick(&world);
        let (ran, go) = (world.place("ran"), world.place("go"));
        let task = |name: &str| format!(
            "[ -e {name}1 ] || {{ echo {name}1 >> {ran}; echo x > {name}1; }}; touch {}; \
             while [ ! -e {go} ]; do sleep 0.02; done; echo {name}2 >> {ran}; echo x > {name}2",
            world.place(&format!("half-{name}"))
        );
        fanning::draft(&world, &json!({ "subplans": [piece("a", &task("a"), &[]), piece("b", &task("b"), &[]), piece("c", &task("c"), &["a"])] }));
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("half-a");
        world.wait_file("half-b");
        let server = Server::start(&world, &["--workers", "2"]);
        running.interrupt();
        Answer::of(running.wait(LIMIT)).expect(130);
        rests(&world, &id);
        for name in ["a", "b"] {
            let child = text(&subplan(&world, &id, name)["plan"]);
            assert_eq!((world.stage(&child).as_str(), world.count(&child, "plan.taken_over")), ("execute/queued", 1));
        }
        world.write("go", "");
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        server.stop();
        let mut lines = world.lines("ran");
        lines.sort();
        assert_eq!(lines, ["a1", "a2", "b1", "b2", "c1", "c2"], "each step once");
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// N11. Breaks when a run that is interrupted again and again without progress is started for ever, or when the answers to the
    /// question about it do not work.
    fn three_interruptions_without_a_checkpoint_ask_a_person(kind: Kind) {
        let world = world(kind);
        let began = world.path("began");
        world.agent("writer", &format!("touch {}; sleep 300", world.place("began")));
        let id = world.plan_after("strategize");
        let interrupt = || {
            let running = world.spawn(&["plan", "execute", &id]);
            world.wait_file("began");
            running.terminate();
            Answer::of(running.wait(LIMIT)).expect(143);
            fs::remove_file(&began).unwrap();
        };
        interrupt();
        interrupt();
        assert_eq!(world.show(&id)["pending_decision"], Value::Null);
        interrupt();
        let asked = fanning::decision(&world, &id);
        assert!(text(&asked["question"]).contains("interrupted 3 times in a row without a new checkpoint"), "{asked:#}");
        let options: Vec<_> = list(&asked["options"]).iter().map(|option| text(&option["id"])).collect();
        assert_eq!(options, ["approve", "reject"]);
        fanning::answer(&world, &id, "approve");
        world.agent("writer", &stepping(&world));
        world.write("go", "");
        world.drydock(&["plan", "execute", &id]).expect(0);
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
        assert_eq!(world.lines("ran"), ["1", "2", "3"]);
    }
}

/// N11. Breaks when what a validation wrote counts as work of the agent after an interruption, or when judged work is done again.
#[test]
fn an_interrupted_validation_starts_from_the_judged_work() {
    let world = World::new(Kind::Sqlite);
    let (ran, judging, go) = (world.place("ran"), world.place("judging"), world.place("go"));
    world.agent("writer", &format!("[ -e work ] || {{ echo 1 >> {ran}; echo x > work; }}"));
    let check = format!("echo junk > junk; touch {judging}; while [ ! -e {go} ]; do sleep 0.02; done");
    world.action(
        "fix",
        &format!(
            "[agents]\nexecute = \"writer\"\n[[validations]]\nname = \"slow\"\ncommand = {}",
            json!(check)
        ),
    );
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    world.wait_file("judging");
    running.kill();
    running.wait(LIMIT);
    world.wait_dead(&id);
    world.write("go", "");
    world.insist(&["plan", "execute", &id]).expect(0);
    world.drydock(&["plan", "apply", &id]).expect(0);
    assert_eq!(world.lines("ran"), ["1"]);
    assert_eq!(taken_over(&world, &id), (json!("owner_gone"), json!(1)));
    assert!(!world.repo.git(&["ls-tree", "--name-only", "main"]).contains("junk"));
    world.assert_landed_once(&id);
}

/// Adds a plan of an agent whose starts are counted. Its result is judged by a validation that waits for the file `go`, and by a
/// reviewer.
fn judged(world: &World, more: &[&str]) -> String {
    let (ran, checked, reviewed) = (world.place("ran"), world.place("checked"), world.place("reviewed"));
    let (judging, go) = (world.place("judging"), world.place("go"));
    world.agent("writer", &format!("echo start >> {ran}; echo \"$DRYDOCK_TASK\" >> work"));
    world.agent(
        "critic",
        &format!("echo start >> {reviewed}; echo '{{\"drydock\":\"verdict\",\"verdict\":\"ack\"}}'"),
    );
    let check = format!(
        "echo start >> {checked}; echo junk > junk; touch {judging}; while [ ! -e {go} ]; do sleep 0.02; done"
    );
    let validation = format!("[[validations]]\nname = \"slow\"\ncommand = {}", json!(check));
    world.action(
        "fix",
        &format!(
            "[agents]\nexecute = \"writer\"\nreviewers = [{{ agent = \"critic\", critical = true }}]\n{validation}"
        ),
    );
    world.plan(&[&["--profile", "auto"], more].concat())
}

on_both! {
    /// N11. Breaks when the agent of a finished result is started again because its worker was killed, or stopped, while the result
    /// was being judged; when its verdicts are carried over; or when the second interruption forgets that the result is finished.
    fn a_result_whose_judgement_was_interrupted_is_judged_again(kind: Kind) {
        let world = World::new(kind);
        let id = judged(&world, &[]);
        let worker = world.spawn(&["worker", "--workers", "1"]);
        world.wait_file("judging");
        worker.kill();
        worker.wait(LIMIT);
        world.wait_dead(&id);
        fs::remove_file(world.path("judging")).unwrap();
        let worker = world.spawn(&["worker", "--workers", "1"]);
        world.wait_file("judging");
        let said = "interrupted, continued from checkpoint 1; its finished result is validated and reviewed again";
        assert!(why(&world, &id).contains(said), "{}", why(&world, &id));
        end(worker);
        fs::remove_file(world.path("judging")).unwrap();
        world.write("go", "");
        let worker = world.spawn(&["worker", "--workers", "1"]);
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        end(worker);
        assert_eq!(world.lines("ran"), ["start"], "the agent");
        // In each run of Execute, and once for the merged result.
        assert_eq!((world.lines("checked").len(), world.lines("reviewed").len()), (4, 1));
        let events = world.events(&id);
        let taken: Vec<_> = events.iter().filter(|event| event["kind"] == "plan.taken_over").collect();
        assert_eq!(
            taken.iter().map(|event| &event["data"]["cause"]).collect::<Vec<_>>(),
            ["owner_gone", "interrupted"]
        );
        assert!(taken.iter().all(|event| event["data"]["judges"] == true), "{taken:#?}");
        assert!(!world.repo.git(&["ls-tree", "--name-only", "main"]).contains("junk"));
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

/// N11. Breaks when a result that fails on its second judgement is not sent back to its agent, or when guidance that a person gives
/// after the interruption reaches no agent.
#[test]
fn a_result_that_is_judged_again_can_be_sent_back() {
    for guided in [false, true] {
        let world = World::new(Kind::Sqlite);
        let (told, judging, go) = (world.place("told"), world.place("judging"), world.place("go"));
        world.agent("writer", &format!("printf '%s\\n' \"$DRYDOCK_TASK\" >> {told}; echo x >> work"));
        let check = format!(
            "touch {judging}; while [ ! -e {go} ]; do sleep 0.02; done; [ $(wc -l < work) = 2 ] || {{ echo too few; exit 1; }}"
        );
        let validation = format!("[[validations]]\nname = \"slow\"\ncommand = {}", json!(check));
        world.action("fix", &format!("[agents]\nexecute = \"writer\"\n{validation}"));
        let id = world.plan_after("strategize");
        let running = world.spawn(&["plan", "execute", &id]);
        world.wait_file("judging");
        running.terminate();
        Answer::of(running.wait(LIMIT)).expect(143);
        if guided {
            world.ok(&["plan", "prompt", &id, "write two lines"]);
        }
        world.write("go", "");
        world.drydock(&["plan", "execute", &id]).expect(0);
        let tasks = world.lines("told");
        assert_eq!(tasks.len(), 2, "{tasks:#?}");
        let feedback = serde_json::from_str::<Value>(&tasks[1]).unwrap()["feedback"].to_string();
        assert!(feedback.contains(if guided { "write two lines" } else { "too few" }), "{feedback}");
    }
}

/// N11. Breaks when a reviewer's rate limit or a used-up budget starts the agent of the finished result again, in the first
/// judgement of the result or in the one after an interruption.
#[test]
fn a_limit_during_a_judgement_starts_no_agent() {
    let limited = (r#"{"drydock":"rate_limited","retry_after":1}"#, 0);
    let used_up = (r#"{"drydock":"usage","tokens":150}"#, 6);
    for ((says, exits), interrupted) in [(limited, false), (used_up, false), (limited, true), (used_up, true)]
    {
        let world = World::new(Kind::Sqlite);
        let id = judged(&world, &["--budget", "tokens=100"]);
        limit_critic(&world, says);
        world.ok(&["plan", "strategize", &id]);
        if interrupted {
            let running = world.spawn(&["plan", "execute", &id]);
            world.wait_file("judging");
            running.terminate();
            Answer::of(running.wait(LIMIT)).expect(143);
        }
        world.write("go", "");
        world.drydock(&["plan", "execute", &id]).expect(exits);
        if exits == 6 {
            let asked =
                list(&world.ok(&["decision", "list", "--open", "--plan", &id])["decisions"])[0].clone();
            assert_eq!(asked["kind"], "budget");
            world.ok(&["decision", "resolve", &text(&asked["id"]), "--option", "raise"]);
            world.drydock(&["plan", "execute", &id]).expect(0);
        }
        let seen = (world.lines("ran").len(), world.lines("reviewed").len());
        assert_eq!(seen, (1, 2), "{says}, interrupted: {interrupted}");
        world.drydock(&["plan", "apply", &id]).expect(0);
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

/// Replaces the reviewer: it prints this at its first start and does not end; later it agrees.
fn limit_critic(world: &World, says: &str) {
    let reviewed = world.place("reviewed");
    world.agent(
        "critic",
        &format!(
            "echo start >> {reviewed}; if [ $(wc -l < {reviewed}) = 1 ]; then echo '{says}'; sleep 60; fi; \
             echo '{{\"drydock\":\"verdict\",\"verdict\":\"ack\"}}'"
        ),
    );
}

fn end(worker: RunningProcess) {
    worker.terminate();
    Answer::of(worker.wait(LIMIT)).expect(0);
}
