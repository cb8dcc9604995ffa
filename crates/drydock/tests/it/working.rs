//! Workers and servers: plans go on with nobody at the prompt, and the same answers come over HTTP.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;

use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;

use serde_json::json;

use crate::fanning::{self, piece};
use crate::world::{Answer, Kind, LIMIT, World, list};

/// A `drydock serve` and its address.
pub(crate) struct Server {
    running: RunningProcess,
    link: String,
}

impl Server {
    pub(crate) fn start(world: &World, more: &[&str]) -> Self {
        let listen: &[&str] = if more.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        Self::of(world.spawn(&[&["serve"], listen, more].concat()))
    }

    /// Starts one that dies at a point of a commit.
    pub(crate) fn crashing(world: &World, point: &str) -> Self {
        let mut command =
            world.command(&["serve", "--listen", "127.0.0.1:0", "--workers", "0", "--tokens", "optional"]);
        Self::of(proc::spawn(command.env("DRYDOCK_CRASH_AT", point)))
    }

    pub(crate) fn of(running: RunningProcess) -> Self {
        let link = wait::until("the server's address", LIMIT, || {
            let said = running.stderr();
            let at = said.find("http://").or_else(|| said.find("https://"))?;
            said[at..].split_whitespace().next().map(str::to_owned)
        });
        Self { running, link }
    }

    /// Returns where it listens, as host and port.
    pub(crate) fn address(&self) -> String {
        self.link.trim_start_matches("http://").trim_start_matches("https://").to_owned()
    }

    /// Returns the header with the token that the server keeps for the command line of its user.
    pub(crate) fn bearer(&self) -> String {
        let environment = fs::read(format!("/proc/{}/environ", self.pid())).unwrap();
        let home = environment.split(|byte| *byte == 0).find_map(|pair| pair.strip_prefix(b"HOME="));
        let home = String::from_utf8(home.unwrap().to_vec()).unwrap();
        let file = format!("{home}/.local/state/drydock/servers/{}", self.address());
        format!("Authorization: Bearer {}\r\n", fs::read_to_string(file).unwrap().trim())
    }

    /// Returns the link that signs a browser in, without the server before it.
    pub(crate) fn link(&self) -> String {
        let said =
            wait::until("the link", LIMIT, || Some(self.said()).filter(|said| said.contains("to sign in")));
        let link = said.split_whitespace().find(|word| word.contains("/welcome?once=")).unwrap();
        link.trim_start_matches(&self.link).to_owned()
    }

    /// Returns all it has said so far.
    pub(crate) fn said(&self) -> String {
        self.running.stdout() + &self.running.stderr()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.running.pid()
    }

    pub(crate) fn hang_up(&self) {
        self.running.hang_up();
    }

    /// Runs the binary against this server.
    #[track_caller]
    pub(crate) fn drydock(&self, world: &World, args: &[&str]) -> Answer {
        world.drydock(&[&["--server", self.link.as_str()], args].concat())
    }

    /// Posts without the command line in between, and returns the whole answer.
    pub(crate) fn post(&self, path: &str) -> String {
        let address = self.link.trim_start_matches("http://");
        let mut stream = TcpStream::connect(address).unwrap();
        write!(
            stream,
            "POST {path} HTTP/1.1\r\nHost: {address}\r\n{}Connection: close\r\nContent-Length: 0\r\n\r\n",
            self.bearer()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// Kills it at once.
    pub(crate) fn kill(self) {
        self.running.kill();
        self.running.wait(LIMIT);
    }

    /// Waits until it has died.
    pub(crate) fn died(self) {
        self.running.wait(LIMIT);
    }

    pub(crate) fn stop(self) -> Answer {
        self.terminate();
        self.ended()
    }

    /// Tells it to stop.
    pub(crate) fn terminate(&self) {
        self.running.terminate();
    }

    /// Waits until it has stopped, and returns what it said.
    pub(crate) fn ended(self) -> Answer {
        Answer::of(self.running.wait(LIMIT))
    }
}

fn auto(kind: Kind, script: &str) -> (World, String) {
    let world = World::with_writer(kind, script);
    let id = world.plan(&["--profile", "auto"]);
    (world, id)
}

fn wait_stage(world: &World, plan: &str, stage: &str) {
    wait::until(stage, LIMIT, || (world.stage(plan) == stage).then_some(()));
}

on_both! {
    /// Breaks when an automatic plan needs somebody, or when a worker leaves locks behind.
    fn a_worker_lands_an_automatic_plan_and_drains(kind: Kind) {
        let (world, id) = auto(kind, "echo hi > hello.txt");
        let worker = world.spawn(&["worker"]);
        wait_stage(&world, &id, "apply/applied");
        world.assert_landed_once(&id);
        world.assert_sound(&id);
        world.agent("writer", "sleep 300");
        worker.terminate();
        let ended = worker.wait(LIMIT);
        // Agents section 4: a line for each phase that is claimed, started and ended, without being asked for.
        for (what, phase) in [("claimed", "strategize"), ("started", "execute"), ("ended", "execute"), ("claimed", "apply")] {
            let is_said = |line: &str| {
                line.contains(&format!(" {what} ")) && line.contains(&id) && line.contains(&format!("phase=\"{phase}\""))
            };
            assert_eq!(ended.stderr.lines().filter(|line| is_said(line)).count(), 1, "{what} {phase}: {}", ended.stderr);
        }
        assert!(ended.stderr.lines().any(|line| line.contains("ended") && line.contains("state=\"applied\"")), "{}", ended.stderr);
        Answer::of(ended).expect(0);
        assert_eq!(world.locks().len(), 0);
    }
}

on_both! {
    /// S1.5. Breaks when a worker that is told to end keeps its plan, its lock or its agent.
    fn a_worker_that_is_told_to_end_hands_its_plan_back(kind: Kind) {
        let (world, id) = auto(kind, "sleep 300 & wait");
        let worker = world.spawn(&["worker"]);
        wait_stage(&world, &id, "execute/processing");
        worker.terminate();
        Answer::of(worker.wait(LIMIT)).expect(0);
        assert_eq!((world.stage(&id), world.locks().len()), ("execute/queued".into(), 0));
        world.wait_dead(&id);
        world.assert_sound(&id);
    }
}

on_both! {
    /// S1.7. Breaks when what a dead worker left is not looked at again.
    fn a_killed_workers_plan_is_finished_by_the_next_worker(kind: Kind) {
        let (world, id) = auto(kind, "sleep 0.5; echo hi > hello.txt");
        let first = world.spawn(&["worker"]);
        wait_stage(&world, &id, "execute/processing");
        first.kill();
        first.wait(LIMIT);
        let second = world.spawn(&["worker"]);
        wait_stage(&world, &id, "apply/applied");
        world.assert_landed_once(&id);
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
        world.assert_sound(&id);
        second.terminate();
        Answer::of(second.wait(LIMIT)).expect(0);
    }
}

on_both! {
    /// Breaks when the server's answers differ from those of the router in this process.
    fn a_server_answers_as_the_prompt_does(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let server = Server::start(&world, &[]);
        let made = server.drydock(&world, &["plan", "use", "fix", "--project", "app", "--profile", "auto"]).expect(0);
        let id = crate::world::text(&made.plan()["id"]);
        server.drydock(&world, &["plan", "watch", &id]).expect(0);
        wait_stage(&world, &id, "apply/applied");
        for args in [
            &["plan", "list"][..],
            &["plan", "show", &id],
            &["plan", "watch", &id],
            &["plan", "events", &id],
            &["plan", "diff", &id],
            &["plan", "why", &id],
            &["changeset", "list", &id],
            &["plan", "show", "pln-nothing"],
        ] {
            let (over, here) = (server.drydock(&world, args), world.drydock(args));
            assert_eq!((over.code, &over.json["data"]), (here.code, &here.json["data"]), "{args:?}");
            assert_eq!((&over.json["error"], &over.json["messages"]), (&here.json["error"], &here.json["messages"]), "{args:?}");
        }
        world.assert_landed_once(&id);
        assert_eq!(list(&world.ok(&["plan", "list"])["plans"]).len(), 1);
        server.stop().expect(0);
        assert_eq!(world.locks().len(), 0);
    }
}

/// How often a command and a worker begin at the same time.
const ROUNDS: usize = 8;

/// Requires that a command which asked for a phase beside a worker ended as if it had driven it.
fn assert_followed(answer: &Answer, plan: &str, phase: &str, code: i32) {
    assert_eq!(answer.code, Some(code), "{phase}: {:#}\n{}", answer.json, answer.stderr);
    assert_eq!(answer.plan()["id"], plan, "{:#}", answer.json);
}

on_both! {
    /// Breaks when a worker that is faster than the command is a conflict for whoever typed it, or when both do the work.
    fn a_command_beside_a_worker_ends_as_if_it_had_been_alone(kind: Kind) {
        let world = World::with_writer(kind, "");
        world.agent("writer", &format!("echo run >> {}; echo $$ > hello.txt", world.place("runs")));
        let workers = [world.spawn(&["worker"]), world.spawn(&["worker"])];
        for round in 0..ROUNDS {
            let profile = ["supervised", "auto"][round % 2];
            let id = world.plan(&["--profile", profile]);
            for phase in ["strategize", "execute", "apply"] {
                let answer = world.drydock(&["plan", phase, &id]);
                // An automatic plan can be far ahead of what is typed, and a plan that landed takes no earlier phase.
                let landed = profile == "auto" && phase != "apply" && world.stage(&id) == "apply/applied";
                if !(landed && answer.error_code() == "wrong_state") {
                    assert_followed(&answer, &id, phase, 0);
                }
            }
            let ran = world.drydock(&["run", "x", "--project", "app", "--agent", "writer", "--profile", profile, "--yes"]);
            let other = crate::world::text(&ran.expect(0).plan()["id"]);
            for id in [id, other] {
                world.assert_landed_once(&id);
                world.assert_sound(&id);
            }
        }
        assert_eq!(world.lines("runs").len(), 2 * ROUNDS, "agents run");
        for worker in workers {
            worker.terminate();
            Answer::of(worker.wait(LIMIT)).expect(0);
        }
        assert_eq!(world.locks().len(), 0);
    }
}

on_both! {
    /// Breaks when a command that comes while a worker runs the phase is refused, does not wait for the end, or ends otherwise
    /// than its own run would have.
    fn a_command_that_comes_late_follows_the_worker_to_the_end(kind: Kind) {
        for (end, code, stage) in [("echo hi > hello.txt", 0, "execute/complete"), ("exit 3", 1, "execute/errored")] {
            let world = World::with_writer(kind, "");
            let (began, go) = (world.place("began"), world.place("go"));
            world.agent("writer", &format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; {end}"));
            let id = world.plan_after("strategize");
            world.ok(&["plan", "execute", &id, "--detach"]);
            let worker = world.spawn(&["worker"]);
            world.wait_file("began");
            let late = world.spawn(&["plan", "execute", &id]);
            let follows = "running in another process";
            wait::until(follows, LIMIT, || late.stderr().contains(follows).then_some(()));
            world.write("go", "");
            let answer = Answer::of(late.wait(LIMIT));
            assert_followed(&answer, &id, "execute", code);
            assert_eq!(crate::world::stage(answer.plan()), stage);
            assert_eq!((world.stage(&id), world.count(&id, "plan.taken_over")), (stage.into(), 0));
            worker.terminate();
            Answer::of(worker.wait(LIMIT)).expect(0);
        }
    }
}

on_both! {
    /// Breaks when asking again for what took effect is a conflict over HTTP, so that it depends on how fast the worker was; or
    /// when a plan that landed takes an earlier phase (S2.2).
    fn a_landing_that_is_asked_for_again_is_answered(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let id = world.plan_after("execute");
        let server = Server::start(&world, &["--workers", "1"]);
        let ask = |phase: &str| server.post(&format!("/api/v1/plans/{id}/{phase}"));
        assert!(ask("apply").starts_with("HTTP/1.1 200"));
        wait_stage(&world, &id, "apply/applied");
        let revision = world.show(&id)["revision"].clone();
        let again = ask("apply");
        assert!(again.starts_with("HTTP/1.1 200") && again.contains("\"state\":\"applied\""), "{again}");
        assert!(ask("execute").starts_with("HTTP/1.1 409"));
        assert_eq!(world.show(&id)["revision"], revision);
        world.assert_landed_once(&id);
        server.stop().expect(0);
    }
}

on_both! {
    /// Breaks when a command that works on subplans beside a worker waits for ever, because the worker took what comes after them.
    fn a_command_that_shares_subplans_with_a_worker_ends(kind: Kind) {
        let pieces: Vec<_> = ["a", "b", "c"].map(|name| piece(name, &format!("echo {name} > {name}.txt"), &[])).into();
        let world = fanning::world(kind, &json!({ "subplans": pieces }));
        let worker = world.spawn(&["worker", "--workers", "4"]);
        // Who takes it is chance, so more than one try.
        for _ in 0..3 {
            let id = world.plan_after("strategize");
            Answer::of(world.spawn(&["plan", "execute", &id]).wait(LIMIT)).expect(0);
            assert_eq!(world.stage(&id), "execute/complete");
        }
        worker.terminate();
        Answer::of(worker.wait(LIMIT)).expect(0);
    }
}

on_both! {
    /// Breaks when interrupting a command that follows a worker stops the worker's run, or when it does not say that it goes on.
    fn an_interrupted_follower_leaves_the_workers_run_alone(kind: Kind) {
        let world = World::with_writer(kind, "");
        let (began, go) = (world.place("began"), world.place("go"));
        world.agent("writer", &format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; echo hi > hello.txt"));
        let id = world.plan_after("strategize");
        world.ok(&["plan", "execute", &id, "--detach"]);
        let worker = world.spawn(&["worker"]);
        world.wait_file("began");
        let follower = world.spawn(&["plan", "execute", &id]);
        let follows = "running in another process";
        wait::until(follows, LIMIT, || follower.stderr().contains(follows).then_some(()));
        let run = world.show(&id)["run"].clone();
        follower.interrupt();
        let ended = Answer::of(follower.wait(LIMIT)).expect(130);
        assert!(ended.stderr.contains("a worker continues the plan"), "{}", ended.stderr);
        world.write("go", "");
        wait_stage(&world, &id, "execute/complete");
        assert_eq!((&world.show(&id)["run"], world.count(&id, "plan.taken_over")), (&run, 0));
        worker.terminate();
        Answer::of(worker.wait(LIMIT)).expect(0);
    }
}

on_both! {
    /// Breaks when a command that follows a worker is left waiting by one that dies.
    fn a_follower_goes_on_with_what_a_dead_worker_left(kind: Kind) {
        let world = World::with_writer(kind, "");
        let began = world.place("began");
        world.agent("writer", &format!("touch {began}; sleep 300 & wait"));
        let id = world.plan_after("strategize");
        world.ok(&["plan", "execute", &id, "--detach"]);
        let worker = world.spawn(&["worker"]);
        world.wait_file("began");
        world.agent("writer", "echo hi > hello.txt");
        let follower = world.spawn(&["plan", "execute", &id]);
        let follows = "running in another process";
        wait::until(follows, LIMIT, || follower.stderr().contains(follows).then_some(()));
        worker.kill();
        worker.wait(LIMIT);
        let answer = Answer::of(follower.wait(LIMIT)).expect(0);
        assert_eq!(crate::world::stage(answer.plan()), "execute/complete");
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
        world.assert_sound(&id);
    }
}
