//! Logs of runs: all that was printed can be read while it is printed and afterwards, from any place, and a log that cannot be
//! written holds nothing up (N9, issue 13).

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use drydock_testkit::wait;
use serde_json::Value;

use crate::working::Server;
use crate::world::{Kind, LIMIT, World, list, text};

/// Returns the texts of a plan's log, each with its stream.
pub(crate) fn log(world: &World, plan: &str, more: &[&str]) -> Vec<(String, String)> {
    let log = world.ok(&[&["plan", "log", plan], more].concat())["log"].clone();
    list(&log["lines"]).iter().map(|line| (text(&line["stream"]), text(&line["text"]))).collect()
}

/// Returns the texts that one stream has.
pub(crate) fn of_stream(log: &[(String, String)], stream: &str) -> Vec<String> {
    log.iter().filter(|(one, _)| one == stream).map(|(_, text)| text.clone()).collect()
}

/// Asks a server, and returns head and body of the answer.
pub(crate) fn get(server: &Server, path: &str, headers: &str) -> (String, String) {
    let address = server.address();
    let mut stream = TcpStream::connect(&address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    let bearer = server.bearer();
    // An old version of HTTP, in which a body is nothing but itself.
    write!(stream, "GET /api/v1{path} HTTP/1.0\r\nHost: {address}\r\n{bearer}{headers}\r\n").unwrap();
    let (mut answer, mut part, deadline) = (Vec::new(), [0; 4096], Instant::now() + LIMIT);
    loop {
        let read = stream.read(&mut part).unwrap();
        if read == 0 {
            break;
        }
        answer.extend_from_slice(&part[..read]);
        assert!(Instant::now() < deadline, "the answer does not end: {}", String::from_utf8_lossy(&answer));
    }
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_lowercase(), body.to_owned())
}

pub(crate) fn header<'h>(head: &'h str, name: &str) -> &'h str {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .unwrap_or_else(|| panic!("{head}"))
}

on_both! {
    /// N9, page B2. Breaks when a log ends after a number of parts, or can be read only when the run is over.
    fn all_that_an_agent_prints_is_read_live_and_afterwards(kind: Kind) {
        let world = World::new(kind);
        // A message made a part of the output before it: there were 200 parts at most.
        let print = r#"print() { while [ $i -lt $1 ]; do i=$((i+1)); echo "line $i of 300"; echo '{"drydock":"progress","text":"p"}'; done; }"#;
        let go = world.place("go");
        world.agent("writer", &format!("i=0; {print}; print 250; until [ -e {go} ]; do sleep 0.05; done; print 300; echo x > x"));
        world.action("fix", "[agents]\nexecute = \"writer\"");
        let id = world.plan_after("strategize");
        let execute = world.spawn(&["plan", "execute", &id]);
        wait::until("the log to begin", LIMIT, || {
            world.drydock(&["plan", "log", &id]).json["data"]["log"]["run"].as_str().map(str::to_owned)
        });
        let follow = world.spawn(&["plan", "log", &id, "--follow"]);
        wait::until("line 250, while the agent waits", LIMIT, || follow.stdout().contains("line 250 of 300").then_some(()));
        world.write("go", "");
        assert_eq!(execute.wait(LIMIT).code(), Some(0));
        let followed = follow.wait(LIMIT);
        assert_eq!(followed.code(), Some(0), "{}", followed.stderr);
        let expected: Vec<_> = (1..=300).map(|number| format!("line {number} of 300")).collect();
        let live: Vec<Value> = followed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let live: Vec<_> = live.iter().filter(|line| line["line"]["stream"] == "stdout").map(|line| text(&line["line"]["text"])).collect();
        assert_eq!(live, expected);
        let afterwards = log(&world, &id, &[]);
        assert_eq!(of_stream(&afterwards, "stdout"), expected);
        assert_eq!(of_stream(&afterwards, "message").len(), 300);
        assert_eq!(world.count(&id, "agent.output"), 0, "events are milestones");
    }
}

/// N9. Breaks when an offset is not a place in the log, or a stream that comes back repeats or misses a line.
#[test]
fn a_log_is_read_over_http_from_any_offset() {
    let world = World::with_writer(Kind::Sqlite, "echo one; echo two >&2; sleep 0.2; echo three; echo x > x");
    let id = world.plan_after("execute");
    let server = Server::start(&world, &["--workers", "0"]);
    let (head, all) = get(&server, &format!("/plans/{id}/log"), "");
    assert_eq!(header(&head, "content-type"), "application/x-ndjson");
    assert_eq!(header(&head, "x-run"), text(&world.show(&id)["run"]));
    let end: usize = header(&head, "x-next-offset").parse().unwrap();
    assert_eq!(end, all.len(), "{all}");
    let lines: Vec<&str> = all.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 4, "{all}");
    let behind = lines[0].len() + lines[1].len();
    let (_, rest) = get(&server, &format!("/plans/{id}/log?offset={behind}"), "");
    assert_eq!(rest, lines[2..].concat());
    let (head, none) = get(&server, &format!("/plans/{id}/log?offset={end}&wait_ms=60000"), "");
    assert_eq!(
        (none.as_str(), header(&head, "x-run-over")),
        ("", "true"),
        "a run that is over is not waited for"
    );
    let (_, last) = get(&server, &format!("/plans/{id}/log?offset=-5"), "");
    assert_eq!(last, "");
    // The stream of a run that is over ends, so this reads all of it.
    let (head, stream) = get(&server, &format!("/plans/{id}/log"), "Accept: text/event-stream\r\n");
    assert_eq!(header(&head, "content-type"), "text/event-stream");
    let run = format!("@{}", text(&world.show(&id)["run"]));
    let place = |line: &str| line.strip_prefix("id: ")?.strip_suffix(&run)?.parse().ok();
    let ids: Vec<usize> = stream.lines().filter_map(place).collect();
    assert_eq!((ids.len(), ids[1], ids[3]), (4, behind, end), "{stream}");
    assert!(stream.contains("event: log.end\n"), "{stream}");
    let again = format!("Accept: text/event-stream\r\nLast-Event-ID: {behind}\r\n");
    let (_, stream) = get(&server, &format!("/plans/{id}/log"), &again);
    assert_eq!(stream.matches("event: log\n").count(), 2, "{stream}");
    let (head, body) = get(&server, &format!("/plans/{id}/log?run=run-nothing"), "");
    assert!(
        head.starts_with("http/1.0 404") && body.contains("on the machine that ran it"),
        "{head}\n{body}"
    );
    server.stop();
}

/// N9, issue 13. Breaks when validations or reviewers print to nowhere, or odd bytes or a long line lose what follows them.
#[test]
fn validations_reviewers_and_odd_lines_are_in_the_log() {
    let world = World::new(Kind::Sqlite);
    world.agent(
        "writer",
        "printf 'a\\377b\\n'; head -c 10000000 /dev/zero | tr '\\0' x; echo; echo end >&2; echo x > x",
    );
    world.agent("critic", r#"echo looks good; echo '{"drydock":"verdict","verdict":"ack"}'"#);
    let validation =
        "[[validations]]\nname = \"tests\"\ncommand = \"echo 1 passed; echo 0 failed >&2\"\nrequired = true";
    let reviewers = "reviewers = [{ agent = \"critic\", critical = true }]";
    world.action("fix", &format!("{reviewers}\n[agents]\nexecute = \"writer\"\n{validation}"));
    let log = log(&world, &world.plan_after("execute"), &[]);
    let stdout = of_stream(&log, "stdout");
    assert_eq!((stdout.len(), stdout[0].as_str()), (2, "a\u{fffd}b"));
    assert!(
        stdout[1].len() < 70_000 && stdout[1].ends_with("[9934464 more bytes cut]"),
        "{}",
        stdout[1].len()
    );
    assert_eq!(of_stream(&log, "stderr"), ["end"]);
    assert_eq!(of_stream(&log, "validation:tests"), ["1 passed", "0 failed"]);
    let critic = of_stream(&log, "reviewer:critic");
    assert!(critic[0] == "looks good" && critic[1].contains("ack"), "{critic:?}");
}

/// Issue 13. Breaks when a run fails because its log cannot be written, nobody is told, or everybody is told for each line.
#[test]
fn a_log_that_cannot_be_written_is_one_warning_and_the_run_goes_on() {
    let world = World::with_writer(Kind::Sqlite, "seq 1 2000; echo x > x");
    let id = world.plan_after("strategize");
    // A file where the folder belongs: permissions would not stop a user who is root.
    fs::write(world.path("store/logs"), "").unwrap();
    world.drydock(&["plan", "execute", &id]).expect(0);
    let alerts: Vec<_> = world.events(&id).into_iter().filter(|event| event["kind"] == "alert").collect();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(text(&alerts[0]["data"]["text"]).contains("could not be written"), "{alerts:?}");
    fs::remove_file(world.path("store/logs")).unwrap();
    let answer = world.drydock(&["plan", "log", &id]);
    assert_eq!(answer.error_code(), "not_found", "{answer:?}");
    world.ok(&["plan", "apply", &id]);
}

/// Issue 13. Breaks when a follower of a log that is removed waits for ever, or the run stops.
#[test]
fn a_log_that_is_removed_while_it_is_followed_continues_with_a_mark() {
    let world = World::new(Kind::Sqlite);
    let go = world.place("go");
    world.agent(
        "writer",
        &format!("echo before; until [ -e {go} ]; do sleep 0.05; done; echo after; echo x > x"),
    );
    world.action("fix", "[agents]\nexecute = \"writer\"");
    let id = world.plan_after("strategize");
    let execute = world.spawn(&["plan", "execute", &id]);
    wait::until("the first line", LIMIT, || {
        let answer = world.drydock(&["plan", "log", &id]);
        answer.json["data"]["log"]["lines"].to_string().contains("before").then_some(())
    });
    let follow = world.spawn(&["plan", "log", &id, "--follow"]);
    wait::until("the follower to print", LIMIT, || follow.stdout().contains("before").then_some(()));
    fs::remove_dir_all(world.path("store/logs")).unwrap();
    let followed = follow.wait(LIMIT);
    assert_eq!(followed.code(), Some(3), "{} {}", followed.stdout, followed.stderr);
    world.write("go", "");
    assert_eq!(execute.wait(LIMIT).code(), Some(0));
    let log = log(&world, &id, &[]);
    assert_eq!(of_stream(&log, "stdout"), ["after"]);
    assert!(log[0].0 == "drydock" && log[0].1.contains("bytes of this log were dropped"), "{log:?}");
}

/// N9. Breaks when the logs of plans that ended long ago stay for ever, or those of others are removed.
#[test]
fn gc_removes_the_logs_of_plans_that_ended_a_month_ago() {
    let world = World::with_writer(Kind::Sqlite, "echo hi; echo x > $DRYDOCK_PLAN");
    let (old, new, open) =
        (world.plan_after("apply"), world.plan_after("apply"), world.plan_after("execute"));
    let month_us: i64 = 31 * 24 * 3600 * 1_000_000;
    for id in [&old, &open] {
        let at = world
            .query(&format!("SELECT updated_at FROM plans WHERE id = '{id}'"))
            .trim()
            .parse::<i64>()
            .unwrap();
        let earlier = at - month_us;
        world.query(&format!(
            "UPDATE plans SET updated_at = {earlier}, body = replace(body, '\"updated_at\":{at}', '\"updated_at\":{earlier}') WHERE id = '{id}'"
        ));
    }
    let removed = |answer: &Value| {
        list(&answer["gc"]["removed"]).iter().map(|one| text(&one["what"])).collect::<Vec<_>>()
    };
    let logs = format!("logs of {old}");
    let told = removed(&world.ok(&["gc", "--dry-run"]));
    assert_eq!(told.iter().filter(|what| what.starts_with("logs of")).collect::<Vec<_>>(), [&logs]);
    assert!(removed(&world.ok(&["gc"])).contains(&logs));
    let kept: Vec<_> =
        fs::read_dir(world.path("store/logs")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        kept.len() == 2 && kept.iter().all(|plan| *plan == new.as_str() || *plan == open.as_str()),
        "{kept:?}"
    );
}

/// N9. Breaks when the time that logs are kept cannot be set.
#[test]
fn how_long_logs_are_kept_is_a_setting() {
    let world = World::with_writer(Kind::Sqlite, "echo hi; echo x > x");
    let id = world.plan_after("apply");
    let told = || list(&world.ok(&["gc", "--dry-run"])["gc"]["removed"]);
    assert!(!told().iter().any(|one| text(&one["what"]).starts_with("logs of")), "{:?}", told());
    world.settings("[logs]\nkeep_days = 0\n");
    let told = told();
    let logs = told.iter().find(|one| text(&one["what"]) == format!("logs of {id}"));
    assert!(text(&logs.unwrap()["proof"]).contains("kept for 0 days"), "{told:?}");
}
