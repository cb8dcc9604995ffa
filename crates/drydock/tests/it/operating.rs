//! Looking after a store that is in use.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use drydock_testkit::{sqlite, wait};
use serde_json::Value;

use crate::world::{Answer, Kind, LIMIT, World, list, text};

/// Breaks when a copy that is made while others write is torn, or cannot be worked with.
#[test]
fn a_backup_made_while_plans_run_is_whole() {
    // Each writes a file of its own: a plan that starts after another landed the same content would change nothing, and ask.
    let world = World::with_writer(Kind::Sqlite, "echo hi > $$.txt");
    let plans: Vec<_> = (0..6).map(|_| world.plan(&["--profile", "auto"])).collect();
    let worker = world.spawn(&["worker", "--workers", "3"]);
    let mut copies = Vec::new();
    wait::until("every plan to end", LIMIT, || {
        let copy = world.place(&format!("copy-{}.db", copies.len()));
        world.ok(&["store", "backup", &copy]);
        copies.push(copy);
        let shown = list(&world.ok(&["plan", "list"])["plans"]);
        let is_over = |state: &str| matches!(state, "applied" | "constrained" | "errored");
        shown.iter().all(|plan| is_over(plan["state"].as_str().unwrap())).then_some(())
    });
    worker.terminate();
    worker.wait(LIMIT);
    for copy in &copies {
        world.ok(&["--store", copy, "store", "check"]);
        let shown = list(&world.ok(&["--store", copy, "plan", "list"])["plans"]);
        assert_eq!(shown.len(), plans.len(), "{copy}");
        // Each plan is as its events tell, in the copy too.
        for plan in shown {
            let told = world.ok(&["--store", copy, "plan", "events", &text(&plan["id"]), "--limit", "1000"]);
            let newest = list(&told["events"]).iter().filter_map(|event| event["revision"].as_i64()).max();
            assert_eq!(newest, plan["revision"].as_i64(), "{copy}: {plan}");
        }
    }
    let refused = world.drydock(&["store", "backup", &copies[0]]);
    assert_ne!(refused.code, Some(0), "a copy is never written over");
}

/// Returns every file of the data directory and the repository with its content; directories have none.
fn everything(world: &World) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut left = vec![PathBuf::from(world.place("store")), world.repo.path().to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let is_directory = path.symlink_metadata().unwrap().is_dir();
            // A reader may move what was written from one file of the store to another; its rows are compared below.
            if !path.to_string_lossy().contains("drydock.db") {
                found.insert(path.clone(), (!is_directory).then(|| fs::read(&path).unwrap_or_default()));
            }
            left.extend(is_directory.then_some(path));
        }
    }
    let rows = |sql: &str| sqlite::query(Path::new(world.store()), sql);
    for table in
        rows("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'plan_words%'").lines()
    {
        found.insert(table.into(), Some(rows(&format!("SELECT * FROM {table}")).into_bytes()));
    }
    found
}

fn differing<'a, T: PartialEq>(
    one: &'a BTreeMap<PathBuf, T>,
    other: &'a BTreeMap<PathBuf, T>,
) -> Vec<&'a PathBuf> {
    let paths: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    paths.into_iter().filter(|path| one.get(*path) != other.get(*path)).collect()
}

/// code 8.9. Breaks when a sweep removes something without saying why nothing is lost, or when listing what it would
/// remove writes anything: a lock, a directory, an index.
#[test]
fn a_sweep_tells_its_proof_for_each_removal() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    let plan = world.plan_after("execute");
    world.ok(&["plan", "cancel", &plan]);
    // A check of an agent that was cut short: its directory has neither a lock nor a place for temporary files.
    let check = PathBuf::from(world.place("store/worktrees")).join("checks/chk-1");
    fs::create_dir_all(&check).unwrap();
    let before = everything(&world);
    let told = world.ok(&["gc", "--dry-run"])["gc"].clone();
    assert_eq!(differing(&before, &everything(&world)), Vec::<&PathBuf>::new(), "listing writes nothing");
    let removed = list(&told["removed"]);
    assert_eq!(removed.len(), 2, "{told:#}");
    for one in &removed {
        assert!(one["proof"].as_str().is_some_and(|proof| proof.len() > 10), "{one}");
    }
    assert_eq!(list(&world.ok(&["gc", "--dry-run"])["gc"]["removed"]), removed, "telling removes nothing");
    let done = world.ok(&["gc"])["gc"].clone();
    let named = |all: &[Value]| all.iter().map(|one| text(&one["what"])).collect::<Vec<_>>();
    assert_eq!(named(&list(&done["removed"])), named(&removed));
    let proofs: Vec<_> = list(&done["removed"]).iter().map(|one| text(&one["proof"])).collect();
    let mut words = proofs.iter().flat_map(|proof| proof.split_whitespace());
    let snapshot = words.find(|word| word.starts_with("refs/drydock/snap/")).unwrap();
    assert_eq!(world.repo.git(&["show", &format!("{snapshot}:hello.txt")]).trim(), "hi");
    assert_eq!(list(&world.ok(&["gc", "--dry-run"])["gc"]["removed"]).len(), 0);
}

/// BUG-6. Breaks when the record of a worktree that is gone stays for good, since it is locked, or goes while its run works.
#[test]
fn the_record_of_a_worktree_that_is_gone_goes_with_its_run() {
    let world = World::with_writer(Kind::Sqlite, "");
    let (began, go) = (world.place("began"), world.place("go"));
    world.agent(
        "writer",
        &format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; echo hi > hello.txt"),
    );
    let forgotten = world.plan_after("strategize");
    let running = world.spawn(&["plan", "execute", &forgotten]);
    world.wait_file("began");
    let records =
        |plan: &str| world.repo.git(&["worktree", "list"]).lines().filter(|line| line.contains(plan)).count();
    let run = text(&world.show(&forgotten)["run"]);
    let (tree, unseen) = (world.worktrees().join(&forgotten).join(run).join("tree"), world.path("unseen"));
    std::fs::rename(&tree, &unseen).unwrap();
    world.ok(&["gc"]);
    std::fs::rename(&unseen, &tree).unwrap();
    assert_eq!(records(&forgotten), 1, "its run works");
    std::fs::remove_dir_all(world.repo.path().join(".git/worktrees")).unwrap();
    world.write("go", "");
    let failed = Answer::of(running.wait(LIMIT)).expect(1);
    let said = text(&failed.json["error"]["text"]);
    assert!(said.contains("git's record of the worktree") && !said.contains("the agent"), "{said}");
    world.ok(&["plan", "cancel", &forgotten]);

    world.agent("writer", "echo hi > hello.txt");
    let plan = world.plan_after("execute");
    std::fs::remove_dir_all(world.worktrees().join(&plan)).unwrap();
    world.repo.git(&["worktree", "prune", "--expire=now"]);
    assert_eq!(records(&plan), 1, "git leaves it to us");
    world.ok(&["gc", "--dry-run"]);
    assert_eq!(records(&plan), 1);
    let removed = list(&world.ok(&["gc"])["gc"]["removed"]);
    assert!(removed.iter().any(|one| text(&one["what"]).contains("git's record of")), "{removed:#?}");
    assert_eq!(records(&plan), 0);
    world.ok(&["plan", "apply", &plan]);
}

on_both! {
    /// Breaks when the lock of a process that died after it ended a plan is warned about for ever, or when a sweep frees the
    /// lock of a plan that goes on.
    fn a_lock_that_ran_out_on_a_plan_that_is_over_is_freed_by_gc(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        let (over, on) = (world.plan(&[]), world.plan(&[]));
        world.drydock_with("DRYDOCK_CRASH_AT", "after_commit", &["plan", "cancel", &over, "--reason", "enough"]);
        world.drydock_with("DRYDOCK_CRASH_AT", "after_commit", &["plan", "strategize", &on]);
        world.wait_stale(&over);
        world.wait_stale(&on);
        assert_eq!(world.stage(&over), "strategize/cancelled");
        let told = list(&world.ok(&["gc", "--dry-run"])["gc"]["removed"]);
        assert!(told.iter().any(|one| text(&one["what"]).ends_with(&over)), "{told:?}");
        assert_eq!(world.locks().len(), 2, "telling frees nothing");
        world.ok(&["gc"]);
        let left: Vec<_> = world.locks().iter().map(|lock| text(&lock["key"])).collect();
        assert_eq!(left, [on]);
    }
}

/// Breaks when the first command of the README does not run to its end.
#[test]
fn the_demo_runs_to_its_end() {
    let world = World::new(Kind::Sqlite);
    let demo = world.drydock(&["demo"]);
    assert_eq!(demo.code, Some(0), "{:#}\n{}", demo.json, demo.stderr);
}
