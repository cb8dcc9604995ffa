//! Which log a reader gets, and where it ends: before the first run, while an agent prints, over several runs, and after a
//! broken connection (N9, issue 13).

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use drydock_testkit::{proc, wait};
use serde_json::Value;

use crate::logging::{get, header, log, of_stream};
use crate::working::Server;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// Returns the texts of `stdout` that a follower printed.
fn followed(stdout: &str) -> Vec<String> {
    let lines = stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    lines.filter(|line| line["line"]["stream"] == "stdout").map(|line| text(&line["line"]["text"])).collect()
}

on_both! {
    /// N9. Breaks when a plan whose Execute no worker has taken yet has no log to read, or a follower does not wait for it.
    fn a_queued_plan_has_an_empty_log_and_its_first_run_is_waited_for(kind: Kind) {
        let world = World::with_writer(kind, "echo hello; echo x > x");
        let id = world.plan_after("strategize");
        world.ok(&["plan", "execute", &id, "--detach"]);
        assert_eq!(world.stage(&id), "execute/queued");
        let answer = world.drydock(&["plan", "log", &id]).expect(0);
        assert_eq!(answer.json["data"]["log"]["lines"], Value::Array(Vec::new()), "{answer:?}");
        assert!(format!("{answer:?}").contains("execute is queued"), "{answer:?}");
        let server = Server::start(&world, &["--workers", "0"]);
        let (head, body) = get(&server, &format!("/plans/{id}/log"), "");
        assert!(head.starts_with("http/1.0 200") && body.is_empty(), "{head}\n{body}");
        assert_eq!(header(&head, "x-run-over"), "false");
        let follow = world.spawn(&["plan", "log", &id, "--follow"]);
        let streamed = thread::scope(|scope| {
            let stream = scope.spawn(|| get(&server, &format!("/plans/{id}/log"), "Accept: text/event-stream\r\n"));
            let waiting = scope.spawn(|| get(&server, &format!("/plans/{id}/log?wait_ms=30000"), ""));
            thread::sleep(Duration::from_millis(600));
            world.ok(&["plan", "execute", &id]);
            let (head, body) = waiting.join().unwrap();
            assert!(head.starts_with("http/1.0 200") && body.contains("execute begins"), "{head}\n{body}");
            stream.join().unwrap()
        });
        assert!(streamed.0.starts_with("http/1.0 200"), "{}", streamed.0);
        assert!(streamed.1.contains("\"text\":\"hello\"") && streamed.1.contains("event: log.end"), "{}", streamed.1);
        let follow = follow.wait(LIMIT);
        assert_eq!((follow.code(), followed(&follow.stdout)), (Some(0), vec!["hello".to_owned()]), "{}", follow.stderr);
        server.stop();
    }
}

on_both! {
    /// N9. Breaks when the stream of a plan that ended before its first run waits for a run that cannot start, or when that plan
    /// has its log on another machine.
    fn a_plan_cancelled_before_its_first_run_ends_its_streams(kind: Kind) {
        let world = World::with_writer(kind, "echo x > x");
        let server = Server::start(&world, &["--workers", "0"]);
        let stream = |id: &str| get(&server, &format!("/plans/{id}/log"), "Accept: text/event-stream\r\n");
        for id in [world.plan(&[]), world.plan_after("strategize")] {
            if world.stage(&id) == "strategize/complete" {
                world.ok(&["plan", "execute", &id, "--detach"]);
            }
            let waiting = thread::scope(|scope| {
                let waiting = scope.spawn(|| stream(&id));
                world.ok(&["plan", "cancel", &id]);
                waiting.join().unwrap()
            });
            for (head, body) in [waiting, stream(&id)] {
                assert!(head.starts_with("http/1.0 200"), "{head}\n{body}");
                assert!(body.ends_with("event: log.end\ndata: {\"run\":null}\n\n"), "{body}");
            }
            let (head, body) = get(&server, &format!("/plans/{id}/log?wait_ms=30000"), "");
            assert_eq!((header(&head, "x-run-over"), body.as_str()), ("true", ""), "{head}");
            world.drydock(&["plan", "log", &id, "--follow"]).expect(0);
        }
        server.stop();
    }
}

/// N9. Breaks when the log of a plan that ended is reported as one that never existed: an agent strategized, but its log is
/// on another machine or was removed.
#[test]
fn a_log_that_is_gone_is_not_reported_as_no_output() {
    let world = World::with_writer(Kind::Sqlite, "echo x > x");
    world.agent("thinker", "echo thinking");
    world.action("think", "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
    let made = world.ok(&["plan", "use", "think", "--project", "app"]);
    let id = text(&made["plan"]["id"]);
    world.ok(&["plan", "strategize", &id]);
    world.ok(&["plan", "execute", &id, "--detach"]);
    world.ok(&["plan", "cancel", &id]);
    assert!(world.drydock(&["plan", "log", &id]).expect(0).json.to_string().contains("thinking"));
    fs::remove_dir_all(world.worktrees().parent().unwrap().join("logs").join(&id)).unwrap();
    world.drydock(&["plan", "log", &id]).expect(3);
}

/// N9. Breaks when a follower waits at a plan that starts no run before a person has answered.
#[test]
fn a_follower_ends_at_a_queued_plan_with_an_open_gate() {
    let world = World::with_writer(Kind::Sqlite, "echo hello; sleep 60");
    let id = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &id]);
    wait::until("the agent to print", LIMIT, || {
        world.drydock(&["plan", "log", &id]).json.to_string().contains("hello").then_some(())
    });
    running.interrupt();
    Answer::of(running.wait(LIMIT)).expect(130);
    let plan = world.show(&id);
    assert_eq!((plan["state"].as_str(), plan["gate"].is_string()), (Some("queued"), true), "{plan}");
    let follow = world.spawn(&["plan", "log", &id, "--follow"]).wait(LIMIT);
    assert_eq!(
        (follow.code(), followed(&follow.stdout)),
        (Some(0), vec!["hello".to_owned()]),
        "{}",
        follow.stderr
    );
}

/// N9. Breaks when `plan log` reads on for as long as lines come.
#[test]
fn a_log_is_read_to_the_end_that_it_had_when_the_command_began() {
    let world = World::with_writer(Kind::Sqlite, "echo begin; echo x > x");
    let id = world.plan_after("execute");
    let run = fs::read_dir(world.path(&format!("store/logs/{id}"))).unwrap().next().unwrap().unwrap();
    let file = fs::read_dir(run.path()).unwrap().next().unwrap().unwrap().path();
    let (stop, mut file) = (AtomicBool::new(false), OpenOptions::new().append(true).open(file).unwrap());
    thread::scope(|scope| {
        // An agent could print as fast as it is read; on a busy machine it does not always.
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                file.write_all(b"{\"at\":\"\",\"stream\":\"stdout\",\"text\":\"more\"}\n").unwrap();
                thread::sleep(Duration::from_micros(200));
            }
        });
        let mut reading = world.spawn(&["plan", "log", &id]);
        let ended = (0..300).any(|_| {
            thread::sleep(Duration::from_millis(50));
            !reading.is_alive()
        });
        stop.store(true, Ordering::Relaxed);
        let answer = Answer::of(reading.wait(LIMIT)).expect(0);
        assert!(ended, "it was read for as long as lines came");
        assert!(list(&answer.json["data"]["log"]["lines"]).iter().any(|line| line["text"] == "begin"));
    });
}

/// N9. Breaks when a follower that was slow misses a run that began and ended meanwhile.
#[test]
fn a_follower_prints_each_run_in_order() {
    let world = World::new(Kind::Sqlite);
    let (go, count) = (world.place("go"), world.place("count"));
    world.agent(
        "writer",
        &format!(
            "echo n >> {count}; n=$(wc -l < {count}); echo run $n; until [ -e {go} ]; do sleep 0.05; done; \
             [ $n -gt 2 ] || exit 1; echo x > x"
        ),
    );
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("strategize");
    let execute = world.spawn(&["plan", "execute", &id]);
    wait::until("the first run", LIMIT, || world.path("count").exists().then_some(()));
    let follow = world.spawn(&["plan", "log", &id, "--follow"]);
    wait::until("the follower to print", LIMIT, || follow.stdout().contains("run 1").then_some(()));
    follow.pause();
    world.write("go", "");
    execute.wait(LIMIT);
    for _ in 0..2 {
        world.ok(&["plan", "retry", &id]);
        world.drydock(&["plan", "execute", &id]);
    }
    follow.resume();
    let follow = follow.wait(LIMIT);
    assert_eq!(followed(&follow.stdout), ["run 1", "run 2", "run 3"], "{}", follow.stderr);
}

/// N9. Breaks when a stream that comes back after a new run began continues at its offset in the log of another run.
#[test]
fn the_id_of_a_streamed_line_names_its_run() {
    let world = World::new(Kind::Sqlite);
    let count = world.place("count");
    let script = format!(
        "echo n >> {count}; n=$(wc -l < {count}); for i in 1 2 3; do echo line $i of run $n; done; [ $n -gt 1 ] || exit 1; echo x > x"
    );
    world.agent("writer", &script);
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("strategize");
    world.drydock(&["plan", "execute", &id]);
    let server = Server::start(&world, &["--workers", "0"]);
    let path = format!("/plans/{id}/log");
    let stream = |path: &str, more: &str| get(&server, path, &format!("Accept: text/event-stream\r\n{more}"));
    let (_, first) = stream(&path, "");
    let event = first.split("\n\n").find(|event| event.contains("line 2 of run 1")).unwrap();
    let seen = event.lines().find_map(|line| line.strip_prefix("id: ")).unwrap();
    let run = text(&world.show(&id)["run"]);
    world.ok(&["plan", "retry", &id]);
    world.ok(&["plan", "execute", &id]);
    assert_ne!(text(&world.show(&id)["run"]), run);
    let (_, rest) = stream(&path, &format!("Last-Event-ID: {seen}\r\n"));
    assert!(rest.contains("line 3 of run 1") && rest.contains(&run), "{seen}: {rest}");
    assert!(!rest.contains("line 2 of run 1") && !rest.contains("run 2"), "{seen}: {rest}");
    // A plain offset is still a place in the log of the run that is named, and the ids of that stream are offsets.
    let offset = seen.split('@').next().unwrap();
    let (_, rest) = stream(&format!("{path}?run={run}"), &format!("Last-Event-ID: {offset}\r\n"));
    assert!(rest.contains("line 3 of run 1") && !rest.contains("line 2 of run 1"), "{rest}");
    assert!(
        rest.lines().filter_map(|line| line.strip_prefix("id: ")).all(|id| id.parse::<u64>().is_ok()),
        "{rest}"
    );
    for bad in ["x", "5@", "@run-1", "5@run-nothing@2"] {
        let (head, body) = stream(&path, &format!("Last-Event-ID: {bad}\r\n"));
        assert!(head.starts_with("http/1.0 400") && body.contains("Last-Event-ID"), "{bad}: {head}\n{body}");
    }
    let other = format!("Last-Event-ID: {seen}\r\n");
    let (head, _) = stream(&format!("{path}?run={}", text(&world.show(&id)["run"])), &other);
    assert!(head.starts_with("http/1.0 400"), "the id and the address name different runs: {head}");
    server.stop();
}

/// N9. Breaks when the agent of `[defaults]` has a log of the default size instead of its own `output_max`.
#[test]
fn the_log_of_the_default_agent_has_its_own_size() {
    let world = World::new(Kind::Sqlite);
    world.settings(
        "[defaults]\nagent = \"loud\"\n[agents.loud]\nprotocol = \"command\"\noutput_max = \"128KiB\"\n\
         command = [\"sh\", \"-c\", \"seq 1 8000; echo x > x\"]\n",
    );
    world.action("fix", "");
    let log = log(&world, &world.plan_after("execute"), &[]);
    assert!(of_stream(&log, "drydock").iter().any(|text| text.contains("bytes of this log were dropped")));
    assert_eq!(of_stream(&log, "stdout").last().map(String::as_str), Some("8000"));
}

/// Issue 13, "a log directory that is full". Breaks when a disk without room for the log stops the run, warns for each line or
/// not at all, or leaves no mark where lines are missing. Runs where user namespaces may be made.
#[test]
fn a_log_on_a_full_disk_has_a_marked_gap_and_the_run_continues() {
    let mount = ["--user", "--map-root-user", "--mount", "sh", "-c"];
    let may = Command::new("unshare").args(mount).arg("mount -t tmpfs tmpfs /mnt").status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("skipped: no mount namespace can be made here");
        return;
    }
    let world = World::new(Kind::Sqlite);
    let (logs, go) = (world.place("store/logs"), world.place("go"));
    world.agent(
        "writer",
        &format!(
            "until_logged() {{ until grep -qrs \"$1\" {logs}; do $2; sleep 0.05; done; }}; \
             again() {{ n=$((n+1)); echo again; }}; n=0; echo before; until_logged 'text\":\"before' true; \
             dd if=/dev/zero of={logs}/filler bs=4k 2> /dev/null; seq 1 2000; until [ -e {go} ]; do sleep 0.05; done; \
             seq 2001 3000; rm {logs}/filler; until_logged 'text\":\"again' again; echo after; echo $n > n"
        ),
    );
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("strategize");
    fs::create_dir_all(&logs).unwrap();
    let command = world.command(&["plan", "execute", &id]);
    let mut inside = Command::new("unshare");
    inside
        .args(mount)
        .arg(format!("mount -t tmpfs -o size=128k tmpfs {logs} && \"$@\" && cp -r {logs} {logs}.kept"));
    inside.arg("sh").arg(command.get_program()).args(command.get_args());
    inside.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let running = proc::spawn(inside.current_dir(command.get_current_dir().unwrap()));
    // The disk stays full until the log could not be written to it.
    wait::until("the alert", LIMIT, || (world.count(&id, "alert") > 0).then_some(()));
    world.write("go", "");
    let answer = Answer::of(running.wait(LIMIT)).expect(0);
    assert_eq!(answer.plan()["state"], "complete", "{answer:?}");
    let alerts: Vec<_> = world.events(&id).into_iter().filter(|event| event["kind"] == "alert").collect();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    let alert = text(&alerts[0]["data"]["text"]);
    assert!(alert.contains("could not be written: No space left on device"), "{alert}");
    fs::remove_dir(&logs).unwrap();
    fs::rename(format!("{logs}.kept"), &logs).unwrap();
    let log = log(&world, &id, &[]);
    let printed = of_stream(&log, "stdout");
    assert!(printed.contains(&"before".to_owned()) && printed.contains(&"after".to_owned()), "{printed:?}");
    // A mark may fit on the disk while it is still full, so there can be several.
    let marks: Vec<_> = of_stream(&log, "drydock")
        .into_iter()
        .filter(|text| text.contains("could not be written here"))
        .collect();
    let missing = |mark: &String| mark[1..].split(' ').next().unwrap().parse::<usize>().unwrap();
    let missing: usize = marks.iter().map(missing).sum();
    world.ok(&["plan", "apply", &id]);
    let more: usize = world.repo.git(&["show", "main:n"]).parse().unwrap();
    assert_eq!(printed.len() + missing, 3002 + more, "{marks:?}");
    assert!(missing > 0, "{marks:?}");
}
