//! Alerts reach whoever is configured to get them: at least once, signed, after a crash too, and without standing in
//! anybody's way.

use std::net::TcpListener;

use drydock_testkit::proc::{self, RunningProcess};
use drydock_testkit::wait;
use serde_json::Value;

use crate::receiver::Receiver;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

const SECRET: &str = "a key that nobody else has";

/// A machine with a plan whose gate is open, so that a wrong answer raises an alert.
struct Desk {
    world: World,
    plan: String,
    gate: String,
}

impl Desk {
    fn new(kind: Kind) -> Self {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let plan = world.plan_after("strategize");
        let gate = text(&world.ok(&["decision", "list", "--open", "--plan", &plan])["decisions"][0]["id"]);
        Self { world, plan, gate }
    }

    /// Writes a configuration with hooks, and has their place in the feed noted.
    fn hooks(&self, hooks: &str) {
        let agent =
            "[agents.writer]\nprotocol = \"command\"\ncommand = [\"sh\", \"-c\", \"echo hi > hello.txt\"]\n";
        let sandbox = format!("[sandbox]\nwrite = [{}]\n", Value::from(self.world.place("")));
        self.world.write("hooks.toml", &format!("[locks]\nttl = \"5s\"\n{sandbox}{agent}{hooks}"));
        self.drydock(&["plan", "list"]).expect(0);
    }

    /// Makes a hook that is a shell script, and has its place in the feed noted.
    fn script(&self, script: &str) {
        let script = Value::from(script);
        self.hooks(&format!(
            "[[hooks]]\nname = \"pager\"\ncommand = [\"sh\", \"-c\", {script}]\ntimeout = \"1m\"\n"
        ));
    }

    /// Runs the binary with the hooks configured.
    #[track_caller]
    fn drydock(&self, args: &[&str]) -> Answer {
        let config = self.world.place("hooks.toml");
        let mut command = self.world.command(&[&["--config", &config], args].concat());
        Answer::of(proc::run(command.env("PAGER_KEY", SECRET), LIMIT))
    }

    fn spawn(&self, args: &[&str]) -> RunningProcess {
        let config = self.world.place("hooks.toml");
        let mut command = self.world.command(&[&["--config", &config], args].concat());
        proc::spawn(command.env("PAGER_KEY", SECRET).env("SSL_CERT_FILE", self.world.place("ca.crt")))
    }

    /// Answers the gate with what it does not offer, from a machine that has no hooks.
    #[track_caller]
    fn raise(&self) {
        self.world.drydock(&["decision", "resolve", &self.gate, "--option", "nope"]).expect(2);
    }

    /// Returns the numbers of the alerts in the feed.
    fn alerts(&self) -> Vec<i64> {
        let events = self.world.events(&self.plan);
        events
            .iter()
            .filter(|event| event["kind"] == "alert")
            .map(|event| event["seq"].as_i64().unwrap())
            .collect()
    }

    /// Returns how the hooks are.
    #[track_caller]
    fn checkup(&self) -> (String, String) {
        let doctor = self.drydock(&["doctor"]).json["data"]["doctor"].clone();
        let check = list(&doctor["checks"]).into_iter().find(|check| check["name"] == "hooks").unwrap();
        (text(&check["status"]), text(&check["text"]))
    }

    /// Returns what a script wrote into the file `told`, a JSON value a line.
    fn told(&self) -> Vec<Value> {
        self.world.lines("told").iter().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[track_caller]
    fn wait_told(&self, count: usize) -> Vec<Value> {
        wait::until("the hook to be told", LIMIT, || Some(self.told()).filter(|told| told.len() >= count))
    }
}

fn seqs(told: &[Value]) -> Vec<i64> {
    told.iter().map(|event| event["seq"].as_i64().unwrap()).collect()
}

on_both! {
    /// S4.8. Breaks when somebody who works alone, without a server, never hears of an alert; or hears of old ones.
    fn a_program_is_told_of_an_answer_that_was_not_offered(kind: Kind) {
        let desk = Desk::new(kind);
        desk.raise();
        let (told, kinds) = (desk.world.place("told"), desk.world.place("kinds"));
        desk.script(&format!("cat >> {told}; echo $DRYDOCK_HOOK $DRYDOCK_EVENT_KIND $DRYDOCK_EVENT_SEQ >> {kinds}"));
        desk.drydock(&["decision", "resolve", &desk.gate, "--option", "nope"]).expect(2);
        let heard = desk.told();
        let alerts = desk.alerts();
        assert_eq!((alerts.len(), seqs(&heard)), (2, vec![alerts[1]]), "the first was raised before there was a hook");
        let event = desk.world.events(&desk.plan).into_iter().find(|event| event["seq"] == alerts[1]);
        assert_eq!(event, heard.first().cloned(), "it is told as the feed shows it");
        assert_eq!(desk.world.lines("kinds"), [format!("pager alert {}", alerts[1])]);
        assert_eq!(desk.checkup(), ("ok".into(), "pager: 1 delivered, 0 failed".into()));
        // Looking changes nothing, and moving the plan raises no alert.
        desk.drydock(&["plan", "execute", &desk.plan]).expect(0);
        assert_eq!(desk.told().len(), 1);
    }
}

on_both! {
    /// Breaks when a receiver that stumbles is forgotten, hears things twice for nothing, or cannot know who speaks.
    fn a_webhook_that_fails_twice_is_told_once_more_and_signed(kind: Kind) {
        let desk = Desk::new(kind);
        let receiver = Receiver::answering(&["500 Oh No", "302 Found\r\nLocation: /elsewhere"]);
        let address = receiver.address();
        desk.hooks(&format!(
            "[[hooks]]\nname = \"pager\"\nurl = \"http://me:pw@{address}/in?token=t0ken\"\nsecret_env = \"PAGER_KEY\"\n"
        ));
        let worker = desk.spawn(&["worker"]);
        desk.raise();
        let posts = receiver.wait(3);
        let alerts = desk.alerts();
        for post in &posts {
            assert_eq!((post.line.as_str(), &post.event()["seq"]), ("POST /in?token=t0ken HTTP/1.1", &alerts[0].into()));
            assert_eq!((post.header("drydock-event"), post.header("drydock-delivery")), ("alert", alerts[0].to_string().as_str()));
            assert_eq!((post.header("content-type"), post.header("authorization")), ("application/json", "Basic bWU6cHc="));
            assert!(post.is_signed(SECRET) && !post.is_signed("another"), "{post:?}");
        }
        desk.raise();
        let posts = receiver.wait(4);
        assert_eq!(posts[3].event()["seq"], desk.alerts()[1], "the first was told once more, and then no more");
        wait::until("the receipt to be written down", LIMIT, || (desk.checkup().1.contains("2 delivered")).then_some(()));
        assert_eq!(desk.checkup().0, "ok");
        worker.terminate();
        Answer::of(worker.wait(LIMIT)).expect(0);
        assert_eq!(receiver.posts().len(), 4);
    }
}

on_both! {
    /// Breaks when a receiver that is away holds up a plan, stays unseen, raises alerts itself, or blocks what comes after.
    fn a_receiver_that_is_away_is_in_nobodys_way_and_given_up_in_the_end(kind: Kind) {
        let desk = Desk::new(kind);
        let away = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://user:s3cret@{away}/s3cret?s3cret");
        desk.hooks(&format!("[[hooks]]\nname = \"pager\"\nevents = [\"*\"]\nurl = \"{url}\"\n"));
        desk.drydock(&["plan", "execute", &desk.plan]).expect(0);
        let (status, text) = desk.checkup();
        assert_eq!(status, "warn");
        assert!(text.contains("pager: 0 delivered, 0 failed, next event failed") && text.contains("could not connect"), "{text}");
        assert!(text.contains(&away.to_string()) && !text.contains("s3cret"), "{text}");
        let kept = desk.world.query("SELECT last_error FROM deliveries");
        assert!(kept.contains("could not connect") && !kept.contains("s3cret"), "{kept}");

        let position = |desk: &Desk| desk.world.query("SELECT position FROM deliveries").parse::<i64>().unwrap();
        let (before, events) = (position(&desk), desk.world.query("SELECT count(*) FROM events"));
        desk.world.query("UPDATE deliveries SET attempts = 9, next_at = 0");
        let worker = desk.spawn(&["worker"]);
        wait::until("it to be given up", LIMIT, || (position(&desk) > before).then_some(()));
        wait::until("the next to be tried", LIMIT, || desk.checkup().1.contains("1 failed, next event failed 1").then_some(()));
        worker.terminate();
        let said = worker.wait(LIMIT);
        assert_eq!(desk.world.query("SELECT count(*) FROM events"), events, "no event is made of it");
        assert!(!said.stderr.contains("s3cret"), "{}", said.stderr);
    }
}

on_both! {
    /// Breaks when what a process was telling when it died is lost, or waits longer than its claim.
    fn what_was_being_told_in_a_crash_is_told_after_it(kind: Kind) {
        let desk = Desk::new(kind);
        let (told, begun) = (desk.world.place("told"), desk.world.place("begun"));
        desk.script(&format!("[ -e {begun} ] || {{ touch {begun}; sleep 300; }}; cat >> {told}"));
        let first = desk.spawn(&["serve", "--listen", "127.0.0.1:0"]);
        desk.raise();
        desk.world.wait_file("begun");
        first.kill();
        first.wait(LIMIT);
        assert_eq!(desk.told().len(), 0);
        let second = desk.spawn(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(seqs(&desk.wait_told(1)), desk.alerts());
        second.terminate();
        Answer::of(second.wait(LIMIT)).expect(0);
        assert_eq!(desk.told().len(), 1);
    }
}

on_both! {
    /// S2.3. Breaks when two processes tell the same hook of the same event, or tell it out of order.
    fn two_servers_tell_a_hook_of_each_alert_once_and_in_order(kind: Kind) {
        const ALERTS: usize = 8;
        let desk = Desk::new(kind);
        desk.script(&format!("cat >> {}", desk.world.place("told")));
        let servers = [desk.spawn(&["serve", "--listen", "127.0.0.1:0"]), desk.spawn(&["worker"])];
        for _ in 0..ALERTS {
            desk.raise();
        }
        desk.wait_told(ALERTS);
        for server in servers {
            server.terminate();
            Answer::of(server.wait(LIMIT)).expect(0);
        }
        assert_eq!(seqs(&desk.told()), desk.alerts());
        assert_eq!(desk.checkup().1, format!("pager: {ALERTS} delivered, 0 failed"));
    }
}

/// Breaks when something is told unsigned by a process that does not have the secret, or that counts as a failure.
#[test]
fn a_process_without_the_secret_leaves_the_telling_to_others() {
    let desk = Desk::new(Kind::Sqlite);
    let receiver = Receiver::answering(&[]);
    let address = receiver.address();
    desk.hooks(&format!(
        "[[hooks]]\nname = \"pager\"\nurl = \"http://{address}\"\nsecret_env = \"OTHER_KEY\"\n"
    ));
    desk.drydock(&["decision", "resolve", &desk.gate, "--option", "nope"]).expect(2);
    let (status, text) = desk.checkup();
    assert_eq!((status.as_str(), receiver.posts().len()), ("warn", 0));
    assert!(text.contains("OTHER_KEY") && text.contains("0 failed"), "{text}");
    let config = desk.world.place("hooks.toml");
    let mut trusted =
        desk.world.command(&["--config", &config, "decision", "resolve", &desk.gate, "--option", "no"]);
    Answer::of(proc::run(trusted.env("OTHER_KEY", "k"), LIMIT)).expect(2);
    assert_eq!(receiver.posts().iter().map(|post| post.is_signed("k")).collect::<Vec<_>>(), [true, true]);
}

/// Breaks when an encrypted receiver cannot be told, or a stranger with another certificate can listen.
#[test]
fn an_encrypted_receiver_is_told_only_when_it_is_known() {
    let desk = Desk::new(Kind::Sqlite);
    let receiver = Receiver::encrypted(&desk.world.path(""));
    let address = receiver.address();
    desk.hooks(&format!("[[hooks]]\nname = \"pager\"\nurl = \"https://{address}/in\"\n"));
    // This process trusts the system's authorities, and they do not know the receiver.
    desk.drydock(&["decision", "resolve", &desk.gate, "--option", "nope"]).expect(2);
    let (status, text) = desk.checkup();
    assert!(status == "warn" && text.contains("TLS"), "{text}");
    assert_eq!(receiver.posts().len(), 0);
    let worker = desk.spawn(&["worker"]);
    assert_eq!(receiver.wait(1)[0].event()["seq"], desk.alerts()[0]);
    worker.terminate();
    Answer::of(worker.wait(LIMIT)).expect(0);
}

on_both! {
    /// Breaks when somebody who waits at a long run hears of an alert only when it is over.
    fn an_alert_is_told_while_a_plan_is_driven_in_the_foreground(kind: Kind) {
        let desk = Desk::new(kind);
        desk.script(&format!("cat >> {}", desk.world.place("told")));
        let other = desk.world.plan_after("strategize");
        let (begun, go) = (desk.world.place("begun"), desk.world.place("go"));
        let slow = format!("touch {begun}; while [ ! -e {go} ]; do sleep 0.05; done; echo hi > hello.txt");
        let config = std::fs::read_to_string(desk.world.path("hooks.toml")).unwrap();
        desk.world.write("hooks.toml", &config.replace("echo hi > hello.txt", &slow));
        let driving = desk.spawn(&["plan", "execute", &other]);
        desk.world.wait_file("begun");
        desk.raise();
        assert_eq!(seqs(&desk.wait_told(1)), desk.alerts());
        desk.world.write("go", "");
        Answer::of(driving.wait(LIMIT)).expect(0);
        assert_eq!(desk.told().len(), 1);
    }
}
