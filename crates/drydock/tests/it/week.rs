//! A week in an hour: a server that works, is looked at, asks, fails, waits and is restarted while a colleague pushes, and is
//! as small and as quick at the end as it was. Only with `DRYDOCK_SOAK=1`.
//!
//! `DRYDOCK_WEEK_PLANS` (1500) and `DRYDOCK_WEEK_SECONDS` (3600, per store) make it shorter: 100 plans in 120 s show that
//! the scene works, the figures need the hour.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use drydock_testkit::wait;
use serde_json::{Value, json};

use crate::reaping::{Census, applied, refs_of_plans, worktree_records, zombies};
use crate::shared::{Shared, git, try_git};
use crate::working::Server;
use crate::world::{Kind, LIMIT, list, text};

const PLANS: usize = 1_500;
const SECONDS: usize = 3_600;
const WORKERS: &str = "4";
/// How many plans may be under way: what waits for a worker would be measured as slowness.
const OPEN_MAX: usize = 4;
/// How many plans the first and the last window have.
const WINDOW: usize = 50;
/// How often, in the first half, the server is restarted: by SIGTERM and by SIGKILL in turn.
const RESTARTS: usize = 6;
/// How long people, readers and the colleague pause.
const PAUSE: Duration = Duration::from_millis(500);
/// What a person answers, the first that is offered.
const ANSWERS: [&str; 5] = ["blue", "continue", "retry", "restart", "proceed"];

/// What is under way, for the threads around the server.
struct Scene<'a> {
    shared: &'a Shared,
    kind: Kind,
    port: u16,
    over: AtomicBool,
    pages: AtomicUsize,
    answers: AtomicUsize,
    retries: AtomicUsize,
    pushes: AtomicUsize,
    last_event: AtomicI64,
    /// When a bare `git push` began, in microseconds since 1970, and how long it took.
    bare: Mutex<Vec<(i64, i64)>>,
}

/// One line of the table.
struct Measured {
    plans: usize,
    census: Census,
    store_kb: u64,
    refs: usize,
    records: usize,
}

impl Measured {
    fn row(&self) -> String {
        let Self { plans, census, store_kb, refs, records } = self;
        let Census { zombies, descriptors, threads, resident_kb } = census;
        format!(
            "{plans:>8} {zombies:>8} {descriptors:>12} {threads:>8} {resident_kb:>12} {store_kb:>9} {refs:>6} {records:>8}"
        )
    }
}

impl Scene<'_> {
    /// Asks the server; nothing while it is away.
    fn ask(&self, line: &str, body: &Value) -> Option<(u16, Value)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).ok()?;
        stream.set_read_timeout(Some(LIMIT)).ok()?;
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (port, length) = (self.port, body.len());
        let head = format!(
            "{line} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(format!("{head}{body}").as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let status = head.split(' ').nth(1)?.parse().ok()?;
        Some((status, serde_json::from_str(body).unwrap_or(Value::from(body))))
    }

    fn until_over(&self, each: impl Fn()) {
        while !self.over.load(Ordering::Relaxed) {
            each();
            sleep(PAUSE);
        }
    }

    /// Somebody looks at the page.
    fn look(&self) {
        for path in ["/", "/plans", "/questions", "/health"] {
            if let Some((status, _)) = self.ask(&format!("GET {path}"), &Value::Null) {
                assert_eq!(status, 200, "{path}");
                self.pages.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A person answers what is asked, and retries what failed.
    fn answer(&self) {
        let Some((200, open)) = self.ask("GET /api/v1/decisions?open=true", &Value::Null) else { return };
        for decision in list(&open["decisions"]) {
            let offered: Vec<String> =
                list(&decision["options"]).iter().map(|one| text(&one["id"])).collect();
            let known = ANSWERS.iter().find(|answer| offered.iter().any(|one| one == *answer));
            let Some(option) = known.copied().or(offered.first().map(String::as_str)) else { continue };
            let line = format!("POST /api/v1/decisions/{}/resolve", text(&decision["id"]));
            if self.ask(&line, &json!({ "option": option })).is_some_and(|(status, _)| status == 200) {
                self.answers.fetch_add(1, Ordering::Relaxed);
            }
        }
        let Some((200, failed)) = self.ask("GET /api/v1/plans?state=errored", &Value::Null) else { return };
        for plan in list(&failed["plans"]) {
            let line = format!("POST /api/v1/plans/{}/retry", text(&plan["id"]));
            if self.ask(&line, &json!({})).is_some_and(|(status, _)| status == 200) {
                self.retries.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// A colleague pushes to the target. The push is refused if a plan lands at that moment.
    fn push(&self) {
        let number = self.pushes.load(Ordering::Relaxed);
        if self.try_push(number).is_some() {
            self.pushes.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn try_push(&self, number: usize) -> Option<String> {
        let other = &self.shared.other;
        try_git(other, &["fetch", "-q", "origin"])?;
        try_git(other, &["checkout", "-q", "-B", "theirs", "origin/main"])?;
        fs::write(other.join("theirs.txt"), format!("{number} at {}\n", now())).ok()?;
        try_git(other, &["add", "-A"])?;
        try_git(other, &["commit", "-q", "-m", &format!("others change {number}")])?;
        try_git(other, &["push", "-q", "origin", "theirs:main"])
    }

    /// Measures a push of one commit in an unrelated repository. A failure of git is not measured: it would end the scene
    /// without its table.
    fn push_bare(&self) {
        let bench = self.shared.world.path("bench");
        if try_git(&bench, &["commit", "-q", "--allow-empty", "-m", "one more"]).is_none() {
            return;
        }
        let (at, began) = (now(), Instant::now());
        if try_git(&bench, &["push", "-q", "origin", "HEAD:main"]).is_some() {
            let took = i64::try_from(began.elapsed().as_micros()).unwrap();
            self.bare.lock().unwrap().push((at, took));
        }
    }

    /// Reads the events, each once and in order, over all restarts.
    fn listen(&self) {
        let after = self.last_event.load(Ordering::Relaxed);
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return };
        stream.set_read_timeout(Some(PAUSE)).unwrap();
        let port = self.port;
        let head = format!(
            "GET /api/v1/events?after={after} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n\r\n"
        );
        if stream.write_all(head.as_bytes()).is_err() {
            return;
        }
        let (mut lines, mut line) = (BufReader::new(stream), String::new());
        while !self.over.load(Ordering::Relaxed) {
            match lines.read_line(&mut line) {
                Ok(0) => return,
                Ok(_) => {
                    if let Some(id) = line.strip_prefix("id:").and_then(|id| id.trim().parse::<i64>().ok()) {
                        let before = self.last_event.swap(id, Ordering::Relaxed);
                        assert_eq!(id, before + 1, "events come once and in order");
                    }
                    line.clear();
                }
                // What was read of the line so far stays in it.
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) => {}
                Err(_) => return,
            }
        }
    }

    fn start(&self) -> Server {
        let listen = format!("127.0.0.1:{}", self.port);
        let more = ["--listen", &listen, "--workers", WORKERS, "--tokens", "optional", "--no-link"];
        Server::start(&self.shared.world, &more)
    }

    fn open_plans(&self) -> usize {
        self.shared.world.query("SELECT count(*) FROM plans WHERE state <> 'applied'").parse().unwrap()
    }

    /// Queues a plan, when few enough are under way.
    fn queue(&self, number: usize) {
        wait::until("plans to land", LIMIT * 4, || (self.open_plans() < OPEN_MAX).then_some(()));
        let action = match number % 10 {
            3 => "ask",
            6 => "fail",
            8 => "limited",
            _ => "fix",
        };
        let wanted = json!({ "project": "team", "action": action, "profile": "auto" });
        let made = wait::until("the server", LIMIT, || self.ask("POST /api/v1/plans", &wanted));
        assert_eq!(made.0, 200, "{}", made.1);
    }

    /// Waits until everything has landed, and measures.
    fn measure(&self, server: &Server, plans: usize) -> Measured {
        let world = &self.shared.world;
        if wait::poll(LIMIT * 4, || (applied(world) == plans).then_some(())).is_none() {
            panic!("these did not land:\n{}\n{}", self.not_landed(), server.said());
        }
        // Helpers of git may end after it; what stays is asserted at the end.
        wait::poll(LIMIT / 9, || zombies(server.pid()).is_empty().then_some(()));
        let left = || {
            (
                refs_of_plans(world.repo.path()) + refs_of_plans(&world.path("remote.git")),
                worktree_records(world.repo.path()),
            )
        };
        wait::poll(LIMIT / 9, || (left() == (0, 0)).then_some(()));
        let (refs, records) = left();
        let measured =
            Measured { plans, census: Census::of(server.pid()), store_kb: self.store_kb(), refs, records };
        println!("{}", measured.row());
        measured
    }

    /// Describes the plans that have not landed, with the reasons.
    fn not_landed(&self) -> String {
        let ids = self.shared.world.query("SELECT id FROM plans WHERE state <> 'applied'");
        let shown = ids.lines().map(|id| {
            let plan = self.ask(&format!("GET /api/v1/plans/{id}"), &Value::Null);
            let plan = plan.map_or(Value::Null, |(_, body)| body["plan"].clone());
            let fields = ["phase", "state", "error", "blocked", "pending_decision"];
            format!("{id} {}", fields.map(|field| format!("{field} {}", plan[field])).join(", "))
        });
        shown.collect::<Vec<_>>().join("\n")
    }

    fn store_kb(&self) -> u64 {
        match self.kind {
            Kind::Postgres => {
                let bytes = self.shared.world.query("SELECT pg_database_size(current_database())");
                bytes.parse::<u64>().unwrap() / 1024
            }
            Kind::Sqlite => {
                let of = |suffix: &str| {
                    fs::metadata(format!("{}{suffix}", self.shared.world.store()))
                        .map_or(0, |file| file.len())
                };
                ["", "-wal", "-shm"].map(of).iter().sum::<u64>() / 1024
            }
        }
    }

    /// Returns how long plans of `fix` took from queued to landed, and a bare push while they did, by windows of this
    /// many plans.
    fn pace(&self, window: usize) -> Vec<(f64, f64)> {
        let sql = "SELECT created.at, applied.at FROM events applied JOIN events created ON created.plan = applied.plan
            JOIN plans ON plans.id = applied.plan
            WHERE applied.kind = 'plan.applied' AND created.kind = 'plan.created' AND plans.action = 'fix' ORDER BY applied.at";
        let rows = self.shared.world.query(sql);
        let number = |text: Option<&str>| text.unwrap().parse::<i64>().unwrap();
        let times: Vec<(i64, i64)> = rows
            .lines()
            .map(|row| row.split('|'))
            .map(|mut columns| (number(columns.next()), number(columns.next())))
            .collect();
        let bare = self.bare.lock().unwrap();
        let measured = |plans: &[(i64, i64)]| {
            let (from, to) = (plans[0].0, plans[plans.len() - 1].1);
            let took = median(plans.iter().map(|(created, landed)| landed - created).collect());
            let pushes =
                bare.iter().filter(|(at, _)| (from..=to).contains(at)).map(|(_, took)| *took).collect();
            (took, median(pushes))
        };
        // From the end, so that the last window is whole; what is left over follows the first.
        let mut windows: Vec<_> = times[window..].rchunks_exact(window).map(measured).collect();
        windows.push(measured(&times[..window]));
        windows.reverse();
        windows
    }

    /// Returns how often each plan landed on the remote's target.
    fn landings(&self) -> BTreeMap<String, usize> {
        let format = "--format=%(trailers:key=Drydock-Plan,valueonly)";
        let trailers = git(&self.shared.world.path("remote.git"), &["log", format, "main"]);
        let mut landings = BTreeMap::new();
        for plan in trailers.lines().filter(|line| !line.is_empty()) {
            *landings.entry(plan.to_owned()).or_default() += 1;
        }
        landings
    }
}

fn now() -> i64 {
    let since = std::time::UNIX_EPOCH.elapsed().unwrap();
    i64::try_from(since.as_micros()).unwrap()
}

fn median(mut values: Vec<i64>) -> f64 {
    values.sort_unstable();
    // Not a number if nothing was measured: the table is printed all the same, and no comparison holds.
    values.get(values.len() / 2).map_or(f64::NAN, |middle| *middle as f64 / 1e6)
}

/// Returns how much slower a window is than the first one, relative to its bare pushes.
fn grown(first: (f64, f64), window: (f64, f64)) -> f64 {
    (window.0 / window.1) / (first.0 / first.1)
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).map_or(otherwise, |text| text.parse().unwrap())
}

/// Makes the project, its agents, and a repository of which a bare push is measured.
fn set_up(kind: Kind) -> Shared {
    let shared = Shared::new(kind, "");
    let world = &shared.world;
    // The tree keeps its size: removing a worktree makes later file creation slower on some file systems, so a tree
    // that grows with the plans would be measured instead of drydock.
    let (marks, work) = (world.place("marks"), "rm -f pln-*.txt; echo $DRYDOCK_PLAN > $DRYDOCK_PLAN.txt");
    fs::create_dir(&marks).unwrap();
    let once = |first: &str| {
        format!("if [ -e {marks}/$DRYDOCK_PLAN ]; then {work}; else touch {marks}/$DRYDOCK_PLAN; {first}; fi")
    };
    world.agent(
        "writer",
        &format!("for n in $(seq 200); do echo \"line $n of what an agent prints\"; done; {work}"),
    );
    world.agent(
        "asker",
        &once(r#"echo '{"drydock":"ask","question":"red or blue?","options":["red","blue"]}'"#),
    );
    world.agent("failer", &once("echo half > half.txt; exit 3"));
    world.agent("limited", &once(r#"echo '{"drydock":"rate_limited","retry_after":1}'; sleep 60"#));
    for (action, agent) in [("ask", "asker"), ("fail", "failer"), ("limited", "limited")] {
        world.action(action, &format!("[agents]\nexecute = \"{agent}\""));
    }
    let root = world.path("");
    git(&root, &["init", "-q", "--bare", "bench.git"]);
    git(&root, &["clone", "-q", "bench.git", "bench"]);
    shared
}

/// Takes the scene through its plans and returns what was measured: after the last restart and a warm-up, and at the end.
fn run(scene: &Scene<'_>, plans: usize, seconds: usize) -> Vec<Measured> {
    let (half, began) = (plans / 2, Instant::now());
    let pace = Duration::from_secs(seconds as u64) / u32::try_from(plans).unwrap();
    let warm = half + plans / 10;
    let window = WINDOW.min(plans / 4);
    let restarts: Vec<usize> = (1..=RESTARTS).map(|n| window + (half - window) * n / RESTARTS).collect();
    let (mut server, mut table) = (scene.start(), Vec::new());
    for plan in 0..plans {
        if let Some(nth) = restarts.iter().position(|at| *at == plan) {
            if nth % 2 == 0 {
                drop(server.stop())
            } else {
                server.kill()
            }
            server = scene.start();
        }
        if plan == window || plan == warm || plan == warm + (plans - warm) / 2 {
            table.push(scene.measure(&server, plan));
        }
        scene.queue(plan);
        sleep((pace * u32::try_from(plan + 1).unwrap()).saturating_sub(began.elapsed()));
    }
    table.push(scene.measure(&server, plans));
    scene.over.store(true, Ordering::Relaxed);
    server.stop().expect(0);
    table
}

fn print(scene: &Scene<'_>, table: &[Measured], pace: &[(f64, f64)]) {
    println!(
        "{:?}\n{:>8} {:>8} {:>12} {:>8} {:>12} {:>9} {:>6} {:>8}",
        scene.kind,
        "plans",
        "zombies",
        "descriptors",
        "threads",
        "resident kB",
        "store kB",
        "refs",
        "records"
    );
    for measured in table {
        println!("{}", measured.row());
    }
    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    for (took, push) in pace {
        println!(
            "queued to landed {took:.2} s, bare push {push:.3} s, ratio {:.2}",
            grown(pace[0], (*took, *push))
        );
    }
    println!(
        "{} pages, {} events, {} answers, {} retries, {} pushes of a colleague",
        count(&scene.pages),
        scene.last_event.load(Ordering::Relaxed),
        count(&scene.answers),
        count(&scene.retries),
        count(&scene.pushes)
    );
}

on_both! {
    /// N10, F13, issue 13 item 11. Breaks when something grows with the number of finished plans: dead processes, descriptors,
    /// threads, refs, worktree records, memory, or the time from queued to landed.
    fn a_week_leaves_a_server_as_it_was(kind: Kind) {
        if std::env::var_os("DRYDOCK_SOAK").is_none() {
            return;
        }
        let (plans, seconds) = (number("DRYDOCK_WEEK_PLANS", PLANS), number("DRYDOCK_WEEK_SECONDS", SECONDS));
        let shared = set_up(kind);
        // Freed at once, and taken again by each server of the scene.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let (over, pages, answers, retries) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        let (pushes, last_event, bare) = (AtomicUsize::new(0), AtomicI64::new(0), Mutex::default());
        let scene = Scene { shared: &shared, kind, port, over, pages, answers, retries, pushes, last_event, bare };
        let around: [&(dyn Fn() + Sync); 5] = [&|| scene.look(), &|| scene.answer(), &|| scene.listen(), &|| scene.push(), &|| scene.push_bare()];
        let table = thread::scope(|scope| {
            for each in around {
                let scene = &scene;
                scope.spawn(move || scene.until_over(each));
            }
            let run = || run(&scene, plans, seconds);
            let ended = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run));
            // Also when it failed: the threads around it would keep the test.
            scene.over.store(true, Ordering::Relaxed);
            ended.unwrap_or_else(|failure| std::panic::resume_unwind(failure))
        });
        let window = WINDOW.min(plans / 4);
        let pace = scene.pace(window);
        print(&scene, &table, &pace);
        let landings = scene.landings();
        assert_eq!(landings.len(), plans, "plans on the target");
        assert!(landings.values().all(|count| *count == 1), "each plan lands once: {landings:?}");
        let [_, warm, _, end] = table.as_slice() else { panic!("four measurements") };
        assert_eq!(table.iter().map(|one| one.census.zombies).max(), Some(0), "zombies");
        assert!(end.census.descriptors <= warm.census.descriptors + 4, "descriptors");
        assert!(end.census.threads <= warm.census.threads + 8, "threads");
        assert!(end.refs <= warm.refs && end.records <= warm.records, "refs and worktree records of applied plans");
        assert!(end.census.resident_kb * 10 <= warm.census.resident_kb * 12, "memory");
        let ratio = grown(pace[0], pace[pace.len() - 1]);
        assert!(ratio <= 1.2, "queued to landed, relative to a bare push: {ratio:.2}");
    }
}
