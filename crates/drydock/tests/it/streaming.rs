//! The feed as server-sent events: every event once and in order, whatever happens to the connection, the server or
//! the other readers.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicI64, Ordering};
use std::thread;
use std::time::Instant;

use drydock_testkit::wait;
use proptest::collection::vec;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;

use crate::attacks::peak_kb;
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, list, text};

/// One block of the stream that tells an event.
#[derive(Debug, Clone, PartialEq)]
struct Told {
    id: i64,
    kind: String,
    event: Value,
}

/// Somebody who reads the stream. A block that is cut off counts for nothing, as with a browser.
struct Reader {
    stream: BufReader<TcpStream>,
    head: String,
}

impl Reader {
    /// Connects with an old version of HTTP, in which a body is nothing but itself.
    fn connect(server: &Server, query: &str, headers: &str) -> Self {
        let address = server.address();
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let ask =
            format!("GET /api/v1/events{query} HTTP/1.0\r\nHost: {address}\r\nAccept: text/event-stream\r\n");
        let bearer = if headers.contains("Authorization") { String::new() } else { server.bearer() };
        stream.write_all(format!("{ask}{bearer}{headers}\r\n").as_bytes()).unwrap();
        Self { stream: BufReader::new(stream), head: String::new() }
    }

    /// Reads the head of the answer.
    fn listening(mut self) -> Self {
        while !self.head.ends_with("\r\n\r\n") {
            assert_ne!(self.stream.read_line(&mut self.head).unwrap(), 0, "{}", self.head);
        }
        self
    }

    /// Reads the next event; none when the stream has ended.
    fn next(&mut self) -> Option<Told> {
        self.read(told)
    }

    /// Reads the id of the next event, which is much less work where readers are many.
    fn next_id(&mut self) -> Option<i64> {
        self.read(|block| block.strip_prefix("id: ")?.lines().next()?.parse().ok())
    }

    /// Reads the next block that tells something. Signs of life alone are not enough for ever.
    fn read<T>(&mut self, told: impl Fn(&str) -> Option<T>) -> Option<T> {
        let began = Instant::now();
        loop {
            assert!(began.elapsed() < LIMIT, "no event came for {LIMIT:?}");
            let mut block = String::new();
            while !block.ends_with("\n\n") {
                if self.stream.read_line(&mut block).unwrap() == 0 {
                    assert_eq!(block, "", "the stream ended inside a block");
                    return None;
                }
            }
            if let Some(told) = told(&block) {
                return Some(told);
            }
        }
    }

    fn take(&mut self, count: usize) -> Vec<Told> {
        (0..count).map(|_| self.next().expect("the stream ended")).collect()
    }
}

fn told(block: &str) -> Option<Told> {
    let field = |name: &str| block.lines().find_map(|line| line.strip_prefix(name));
    let Some(id) = field("id: ") else {
        assert!(field("data:").is_none(), "only what is stored is told: {block}");
        return None;
    };
    let event = serde_json::from_str(field("data: ").unwrap()).unwrap();
    Some(Told { id: id.parse().unwrap(), kind: field("event: ").unwrap().to_owned(), event })
}

/// A machine with a plan whose gate is open, so that a wrong answer makes an event.
fn desk(kind: Kind) -> (World, String, String) {
    let world = World::with_writer(kind, "echo hi > hello.txt");
    let plan = world.plan_after("strategize");
    let gate = text(&world.ok(&["decision", "list", "--open", "--plan", &plan])["decisions"][0]["id"]);
    (world, plan, gate)
}

fn raise(world: &World, gate: &str) {
    world.drydock(&["decision", "resolve", gate, "--option", "nope"]).expect(2);
}

fn all(world: &World) -> Vec<Value> {
    list(&world.ok(&["events", "--limit", "5000"])["events"])
}

on_both! {
    /// Breaks when what another process commits does not arrive, or arrives other than the feed shows it.
    fn a_reader_gets_what_was_and_what_comes(kind: Kind) {
        let (world, plan, gate) = desk(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let before = all(&world);
        let mut reader = Reader::connect(&server, "", "").listening();
        assert!(reader.head.starts_with("HTTP/1.0 200") && reader.head.contains("content-type: text/event-stream"), "{}", reader.head);
        let mut alerts = Reader::connect(&server, "?kind=alert&after=1", "").listening();
        let mut family = Reader::connect(&server, &format!("?kind=plan.*&plan={plan}"), "").listening();
        let was = reader.take(before.len());
        assert_eq!(was.iter().map(|told| &told.event).collect::<Vec<_>>(), before.iter().collect::<Vec<_>>());
        raise(&world, &gate);
        let came = reader.next().unwrap();
        assert_eq!((came.id, came.kind.as_str()), (before.len() as i64 + 1, "alert"));
        assert_eq!(alerts.next().as_ref(), Some(&came));
        let of_plan = before.iter().filter(|event| event["plan"] == plan.as_str() && text(&event["kind"]).starts_with("plan."));
        let of_plan: Vec<_> = of_plan.collect();
        assert_eq!(family.take(of_plan.len()).iter().map(|told| &told.event).collect::<Vec<_>>(), of_plan);
        // The last id that was seen counts more than the address, which a browser keeps.
        let mut back = Reader::connect(&server, "?after=0", &format!("Last-Event-ID: {}\r\n", came.id - 1)).listening();
        assert_eq!(back.next(), Some(came));
        for (query, headers, status) in [
            ("?limit=5", "", "422"),
            ("?kind=Plan", "", "422"),
            ("?plan=pln-0000", "", "404"),
            ("", "Last-Event-ID: x\r\n", "400"),
        ] {
            let head = Reader::connect(&server, query, headers).listening().head;
            assert!(head.starts_with(&format!("HTTP/1.0 {status}")) && head.contains("problem+json"), "{query} {head}");
        }
    }
}

on_both! {
    /// Breaks when somebody who comes with a place beyond the end, as after a restored backup, waits in silence, is not told where
    /// the feed ends, or misses what comes.
    fn a_reader_from_beyond_the_end_is_told_and_hears_what_comes(kind: Kind) {
        let (world, _, gate) = desk(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let last = all(&world).last().unwrap()["seq"].as_i64().unwrap();
        let beyond = (last + 1000).to_string();
        let page = world.drydock(&["events", "--after", &beyond]).expect(0);
        assert_eq!((&page.json["data"]["ends_at"], list(&page.json["data"]["events"]).len()), (&last.into(), 0));
        let said = page.json["messages"].to_string();
        assert!(said.contains(&format!("the feed ends at event {last}")), "{said}");
        let mut reader = Reader::connect(&server, &format!("?after={beyond}"), "").listening();
        let end = reader.read(|block| block.contains("data:").then(|| block.to_owned())).unwrap();
        assert_eq!(end, format!("event: feed.end\ndata: {{\"after\":{beyond},\"ends_at\":{last}}}\n\n"));
        let follower = world.spawn(&["events", "--follow", "--after", &beyond]);
        let told = format!("the feed ends at event {last}, before {beyond}");
        wait::until(&told, LIMIT, || follower.stderr().contains(&told).then_some(()));
        raise(&world, &gate);
        assert_eq!(reader.next().unwrap().id, last + 1);
        let seq = format!("\"seq\":{}", last + 1);
        wait::until("the event that came", LIMIT, || follower.stdout().contains(&seq).then_some(()));
        follower.interrupt();
        follower.wait(LIMIT);
    }
}

on_both! {
    /// Breaks when a page of one kind loses an event of it, or does not say how far it looked.
    fn a_page_of_one_kind_has_all_of_it(kind: Kind) {
        let (world, _, gate) = desk(kind);
        for _ in 0..3 {
            raise(&world, &gate);
        }
        let wanted: Vec<_> = all(&world).into_iter().filter(|event| event["kind"] == "alert").collect();
        let first = world.ok(&["events", "--kind", "alert", "--limit", "2"]);
        assert_eq!((list(&first["events"]), &first["next"]), (wanted[..2].to_vec(), &wanted[1]["seq"]));
        let rest = world.ok(&["events", "--kind", "alert", "--after", &first["next"].to_string()]);
        assert_eq!((list(&rest["events"]), &rest["next"]), (wanted[2..].to_vec(), &Value::Null));
        assert_eq!(world.drydock(&["events", "--kind", "a b"]).expect(2).error_code(), "invalid");
    }
}

on_both! {
    /// Breaks when any sequence of broken connections loses an event, repeats one or changes their order.
    fn every_event_comes_once_and_in_order_whatever_breaks(kind: Kind) {
        let (world, _, gate) = desk(kind);
        // More than is kept ready, so that readers also come from far back.
        world.query(&many_events(kind, 1500, "tick"));
        let server = Server::start(&world, &["--workers", "0"]);
        let mut runner = TestRunner::new(Config { cases: 24, max_shrink_iters: 0, failure_persistence: None, ..Config::default() });
        let cuts = (0..1400_i64, vec(1..60_000_usize, 0..8));
        let held = runner.run(&cuts, |(after, cuts)| {
            raise(&world, &gate);
            let newest = world.query("SELECT count(*) FROM events").parse::<i64>().unwrap();
            let seen = thread::scope(|scope| {
                // Something happens meanwhile, too.
                scope.spawn(|| raise(&world, &gate));
                follow(&server, after, &cuts, newest)
            });
            let last = seen.last().copied().unwrap_or(after);
            assert!(last >= newest);
            assert_eq!(seen, (after + 1..=last).collect::<Vec<_>>());
            Ok(())
        });
        held.unwrap();
    }
}

/// Follows the feed up to an event over connections that break after so many bytes each, and returns the ids.
fn follow(server: &Server, after: i64, cuts: &[usize], newest: i64) -> Vec<i64> {
    let (mut last, mut seen) = (after, Vec::new());
    for cut in cuts.iter().map(Some).chain([None]) {
        let mut reader = Reader::connect(server, "", &format!("Last-Event-ID: {last}\r\n")).listening();
        let ids: Vec<_> = match cut {
            Some(cut) => whole(&broken_off(&mut reader, *cut, last, newest)),
            None => {
                reader.take(usize::try_from(newest - last).unwrap_or(0)).iter().map(|told| told.id).collect()
            }
        };
        last = ids.last().copied().unwrap_or(last);
        seen.extend(ids);
    }
    seen
}

/// Returns the ids of the events that a text tells to their end.
fn whole(text: &str) -> Vec<i64> {
    let blocks = text.split_inclusive("\n\n").filter(|block| block.ends_with("\n\n"));
    blocks.filter_map(told).map(|told| told.id).collect()
}

/// Reads so many bytes, wherever that is; fewer only when nothing would be left to wait for.
fn broken_off(reader: &mut Reader, cut: usize, mut last: i64, newest: i64) -> String {
    let (mut text, mut block) = (String::new(), 0);
    let (mut byte, began) = ([0], Instant::now());
    while last < newest && text.len() < cut {
        assert!(began.elapsed() < LIMIT, "{newest} did not come for {LIMIT:?}");
        reader.stream.read_exact(&mut byte).unwrap();
        // The feed of this test is plain letters.
        text.push(char::from(byte[0]));
        if text.ends_with("\n\n") {
            last = told(&text[block..]).map_or(last, |told| told.id);
            block = text.len();
        }
    }
    text
}

fn many_events(kind: Kind, count: usize, details: &str) -> String {
    let rows = match kind {
        Kind::Sqlite => {
            format!("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < {count})")
        }
        Kind::Postgres => format!("WITH n(x) AS (SELECT generate_series(1, {count}))"),
    };
    format!(
        "{rows} INSERT INTO events (at, kind, details)
        SELECT 1, 'agent.said', '{{\"text\":\"{details}\"}}' FROM n"
    )
}

on_both! {
    /// Breaks when many readers stand in each other's way.
    fn two_hundred_readers_at_once_all_hear_everything(kind: Kind) {
        const READERS: usize = 200;
        const ALERTS: usize = 5;
        let (world, _, gate) = desk(kind);
        let server = Server::start(&world, &["--workers", "0"]);
        let newest = all(&world).len();
        let readers: Vec<_> = (0..READERS)
            .map(|n| {
                // Some have all of it to catch up with, some have nothing.
                let after = newest * (n % 3) / 2;
                let mut reader = Reader::connect(&server, &format!("?after={after}"), "").listening();
                let count = newest - after + ALERTS;
                thread::spawn(move || (after, reader.take(count)))
            })
            .collect();
        for _ in 0..ALERTS {
            raise(&world, &gate);
        }
        let all = all(&world);
        for reader in readers {
            let (after, heard) = reader.join().unwrap();
            assert_eq!(heard.into_iter().map(|told| told.event).collect::<Vec<_>>(), all[after..]);
        }
    }
}

/// Breaks when readers miss something of what many plans do at once, or plans wait for readers.
#[test]
fn readers_hear_everything_while_plans_run() {
    let (readers, plans) = if std::env::var_os("DRYDOCK_SOAK").is_some() { (2_000, 100) } else { (60, 5) };
    // A file of its own each, so that none finds its work done by another.
    let world = World::with_writer(Kind::Sqlite, "echo hi > $DRYDOCK_PLAN.txt");
    let server = Server::start(&world, &["--workers", "4"]);
    let bearer = server.bearer();
    let over = AtomicI64::new(i64::MAX);
    thread::scope(|scope| {
        let listening: Vec<_> = (0..readers)
            .map(|_| {
                let mut reader = Reader::connect(&server, "", &bearer).listening();
                let over = &over;
                scope.spawn(move || {
                    let mut heard = Vec::new();
                    while heard.last() < Some(&over.load(Ordering::Relaxed)) {
                        heard.push(reader.next_id().expect("the stream ended"));
                    }
                    heard
                })
            })
            .collect();
        let began = Instant::now();
        for _ in 0..plans {
            world.plan(&["--profile", "auto"]);
        }
        // While some plan moves, each reader hears something within its own limit.
        wait::until("every plan to land", LIMIT * plans, || {
            (world.query("SELECT count(*) FROM plans WHERE state <> 'applied'") == "0").then_some(())
        });
        // One more event, behind which every reader knows that it has them all.
        let newest = || world.query("SELECT max(seq) FROM events").parse::<i64>().unwrap();
        over.store(newest() + 1, Ordering::Relaxed);
        world.plan(&[]);
        let newest = newest();
        for reader in listening {
            let heard = reader.join().unwrap();
            assert!(heard.len() as i64 <= newest);
            assert_eq!(heard, (1..=heard.len() as i64).collect::<Vec<_>>(), "each once and in order");
        }
        let (took, peak) = (began.elapsed(), peak_kb(server.pid()));
        println!("{readers} readers heard {plans} plans in {took:.1?}, peak {peak} kB");
    });
    server.stop().expect(0);
}

/// Breaks when a server that is told to stop waits for its readers, or cuts them off inside an event.
#[test]
fn a_server_that_stops_ends_its_streams() {
    let (world, _, _) = desk(Kind::Sqlite);
    let server = Server::start(&world, &["--workers", "0"]);
    let before = all(&world).len();
    let mut readers: Vec<_> = (0..5).map(|_| Reader::connect(&server, "", "").listening()).collect();
    for reader in &mut readers {
        reader.take(before);
    }
    server.stop().expect(0);
    for mut reader in readers {
        assert_eq!(reader.next(), None);
    }
}

/// Breaks when what is sent to a reader that does not read is kept for it, or its connection for ever.
#[test]
fn a_reader_that_does_not_read_is_disconnected_and_others_are_not() {
    let (world, _, gate) = desk(Kind::Sqlite);
    world.query(&many_events(Kind::Sqlite, 400, &"x".repeat(100_000)));
    let server = Server::start(&world, &["--workers", "0"]);
    let events = world.query("SELECT count(*) FROM events").parse::<usize>().unwrap();
    let sockets = || {
        let open = fs::read_dir(format!("/proc/{}/fd", server.pid())).unwrap().flatten();
        let links = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        links.filter(|link| link.to_string_lossy().starts_with("socket:")).count()
    };
    let mut awake = Reader::connect(&server, &format!("?after={events}"), "").listening();
    let before = sockets();
    let mut asleep = Reader::connect(&server, "", "");
    wait::until("the connection", LIMIT, || (sockets() > before).then_some(()));
    wait::until("the server to hang up", LIMIT, || (sockets() == before).then_some(()));
    let mut rest = Vec::new();
    // What the system had taken in before still comes, and then the end or a reset.
    asleep.stream.read_to_end(&mut rest).ok();
    assert!(rest.len() < 30_000_000, "{} bytes were kept", rest.len());
    raise(&world, &gate);
    assert_eq!(awake.next().unwrap().id, events as i64 + 1);
}

/// Breaks when whoever follows a server loses or repeats events while the server is away.
#[test]
fn following_a_server_goes_on_when_it_comes_back() {
    let (world, _, gate) = desk(Kind::Sqlite);
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listen = format!("127.0.0.1:{port}");
    let serve = || Server::start(&world, &["--workers", "0", "--listen", &listen]);
    let server = serve();
    let before = all(&world).len();
    let following = world.spawn(&["--server", &format!("http://{listen}"), "events", "--follow"]);
    let seen = || {
        let lines = following.stdout();
        let events = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["event"].clone());
        events.collect::<Vec<_>>()
    };
    let wait_seen = |count| wait::until("the events", LIMIT, || (seen().len() >= count).then_some(()));
    wait_seen(before);
    server.stop().expect(0);
    raise(&world, &gate);
    let server = serve();
    raise(&world, &gate);
    wait_seen(before + 2);
    assert_eq!(seen(), all(&world));
    following.interrupt();
    following.wait(LIMIT).expect_code(130);
    server.stop().expect(0);
}
