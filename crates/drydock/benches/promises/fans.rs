//! Subplans of an agent that does nothing: what each costs, in commits of one writer on the same disk and beside the gits
//! that somebody would script for it, and how much memory the process needs that drives a thousand of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use drydock_testkit::repo::Repo;
use serde_json::{Value, json};

use crate::commits;
use crate::measure::{Promise, Table, seconds};

const CHILDREN: usize = 1_000;
const PARALLEL: usize = 8;
/// How many times the gits alone are run.
const BY_HAND: usize = 200;
/// Linux counts the time of processes in hundredths of a second, whatever its clock runs at.
const MS_PER_TICK: u64 = 10;
const LOOK: Duration = Duration::from_millis(50);
const DRYDOCK: &str = env!("CARGO_BIN_EXE_drydock");

pub(crate) async fn run(table: &mut Table) {
    let (world, repo) = (tempfile::tempdir().unwrap(), Repo::new());
    let commit_s = 1.0 / commits::one_writer_on_sqlite(world.path()).await;
    let Fan { took, peak, own, git } = fan_out(world.path(), &repo);
    let each = took.as_secs_f64() / CHILDREN as f64;
    let what = format!(
        "a subplan that does nothing, {PARALLEL} at a time, its worktree and joins included ÷ a transition"
    );
    table.ratio(&what, Promise::AtMost(12.0), &[each / commit_s]);
    table.plain(
        "a subplan that does nothing / a transition",
        format!("{:.1} ms / {:.2} ms", each * 1e3, commit_s * 1e3),
    );
    let hand = by_hand(&Repo::new());
    table.plain(
        &format!(
            "a subplan that does nothing ÷ a worktree made, looked at and removed by bare git, {PARALLEL} at a time"
        ),
        format!("{:.2} ({:.1} ms)", each / hand, hand * 1e3),
    );
    let per_child = |used: Duration| used.as_secs_f64() * 1e3 / CHILDREN as f64;
    table.plain(
        "processor time of a subplan that does nothing: drydock / the gits it asks",
        format!("{:.1} ms / {:.1} ms", per_child(own), per_child(git)),
    );
    table.megabytes(&format!("peak memory while {CHILDREN} subplans run, {PARALLEL} at a time"), 150.0, peak);
}

/// Returns how many seconds git alone takes for what a subplan that does nothing needs of it: a worktree on a branch of
/// its own, a look for changes, and its removal. Two that make or remove one at the same time can meet half of each other's,
/// so whoever scripts it lets them take turns, too.
fn by_hand(repo: &Repo) -> f64 {
    let (place, turn, next) = (tempfile::tempdir().unwrap(), Mutex::new(()), AtomicUsize::new(0));
    let one = |n: usize| {
        let (path, branch) = (place.path().join(n.to_string()), format!("by-hand/{n}"));
        let path = path.to_str().unwrap();
        let alone = |words: &[&str]| {
            let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
            repo.git(words);
        };
        alone(&["worktree", "add", "--quiet", "--no-track", "-b", &branch, path, "main"]);
        repo.git(&["-C", path, "add", "--all"]);
        repo.git(&["-C", path, "diff", "--cached", "--quiet"]);
        alone(&["worktree", "remove", path]);
    };
    let hands = || {
        thread::scope(|scope| {
            for _ in 0..PARALLEL {
                scope.spawn(|| {
                    while let Some(n) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|n| *n < BY_HAND) {
                        one(n);
                    }
                });
            }
        });
    };
    seconds(hands) / BY_HAND as f64
}

/// What the Execute of a plan of many pieces took.
struct Fan {
    took: Duration,
    /// The driving process's peak memory in megabytes.
    peak: f64,
    /// The processor time of the driving process.
    own: Duration,
    /// The processor time of all that it started and waited for.
    git: Duration,
}

fn fan_out(home: &Path, repo: &Repo) -> Fan {
    let pieces: Vec<Value> =
        (0..CHILDREN).map(|n| json!({ "name": format!("p{n}"), "task": "nothing" })).collect();
    fs::write(
        home.join("strategy.json"),
        json!({ "subplans": pieces, "max_parallel": PARALLEL }).to_string(),
    )
    .unwrap();
    fs::write(home.join("idle.toml"), "").unwrap();
    let config = format!(
        "[agents.idle]\nprotocol = \"scripted\"\nscript = \"idle.toml\"\n[agents.thinker]\nprotocol = \"command\"\n\
         command = [\"sh\", \"-c\", \"mkdir -p .drydock && cp {}/strategy.json .drydock/\"]\n",
        home.display()
    );
    fs::write(home.join("config.toml"), config).unwrap();
    let action = "name = \"fan\"\ndescription = \"d\"\nallow_empty = true\n[agents]\nstrategize = \"thinker\"\nexecute = \"idle\"\n";
    fs::write(home.join("fan.toml"), action).unwrap();
    let drydock = |words: &[&str]| {
        let mut command = Command::new(DRYDOCK);
        command
            .args(["--json", "--store"])
            .arg(home.join("drydock.db"))
            .arg("--config")
            .arg(home.join("config.toml"));
        command.args(words).env("HOME", home).stdin(Stdio::null());
        command
    };
    let answer = |words: &[&str]| -> Value {
        let output = drydock(words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    answer(&["project", "add", "app", "--repo", repo.path().to_str().unwrap()]);
    answer(&["action", "create", "--file", home.join("fan.toml").to_str().unwrap()]);
    let made = answer(&["plan", "use", "fan", "--project", "app", "--profile", "auto"]);
    let id = made["data"]["plan"]["id"].as_str().unwrap().to_owned();
    answer(&["plan", "strategize", &id]);
    let began = Instant::now();
    let mut driving =
        drydock(&["plan", "execute", &id]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let process = format!("/proc/{}", driving.id());
    let (mut peak, mut used) = (0.0_f64, (Duration::ZERO, Duration::ZERO));
    let ended = loop {
        if let Some(ended) = driving.try_wait().unwrap() {
            break ended;
        }
        let read = |name: &str| fs::read_to_string(format!("{process}/{name}")).ok();
        peak = read("status").and_then(|text| crate::start::peak_kb(&text)).unwrap_or(peak).max(peak);
        used = read("stat").and_then(|text| processor_time(&text)).unwrap_or(used);
        std::thread::sleep(LOOK);
    };
    let took = began.elapsed();
    assert!(ended.success(), "the plan did not come to its end");
    Fan { took, peak: peak / 1024.0, own: used.0, git: used.1 }
}

/// Returns the processor time of a process, and of its ended children, from its `stat` in `/proc`.
fn processor_time(stat: &str) -> Option<(Duration, Duration)> {
    // The name, which may hold anything, is in parentheses and the second field; the times are from the fourteenth on.
    let mut ticks = stat.rsplit_once(')')?.1.split_whitespace().skip(11).map(|word| word.parse::<u64>().ok());
    let mut both = || Some(Duration::from_millis((ticks.next()?? + ticks.next()??) * MS_PER_TICK));
    Some((both()?, both()?))
}
