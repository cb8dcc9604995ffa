//! A process that is frozen past the life of its lock (S1.3, S1.7).

use drydock_testkit::proc::{self, RunningProcess};

use crate::world::{Answer, CONFLICT, Kind, LIMIT, World};

/// Freezes a process while its agent works, until its lock has run out.
fn frozen(kind: Kind) -> (World, String, RunningProcess) {
    let world = World::with_writer(kind, "");
    // Only the first run waits to be told; whoever takes over is quick.
    let (began, go) = (world.place("began"), world.place("go"));
    let slow = format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; echo late > late.txt");
    world.agent("writer", &format!("[ -e {began} ] || {{ {slow}; exit; }}; echo hi > hello.txt"));
    let id = world.plan_after("strategize");
    let first = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    first.pause();
    world.wait_stale(&id);
    (world, id, first)
}

on_both! {
    /// S1.3. Breaks when a commit is not compared with the fence.
    fn a_process_that_wakes_after_a_takeover_commits_nothing(kind: Kind) {
        let (world, id, first) = frozen(kind);
        world.insist(&["plan", "execute", &id]).expect(0);
        let (seen, told) = (world.show(&id), world.events(&id));
        assert_eq!(world.count(&id, "plan.taken_over"), 1);
        world.write("go", "");
        first.resume();
        let woken = Answer::of(first.wait(LIMIT)).expect(CONFLICT);
        assert_eq!(woken.error_code(), "lease_lost");
        assert_eq!((world.show(&id), world.events(&id)), (seen, told));
        world.wait_dead(&id);
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!(world.repo.git(&["show", "main:hello.txt"]), "hi");
        assert!(!world.repo.path().join("late.txt").exists());
        world.assert_sound(&id);
    }
}

on_both! {
    /// S1.3. Breaks when a lock that ran out still counts as long as nobody took it.
    fn a_process_that_wakes_after_its_lock_ran_out_commits_nothing(kind: Kind) {
        let (world, id, first) = frozen(kind);
        let (seen, told) = (world.show(&id), world.events(&id));
        assert_eq!(world.ok(&["doctor"])["doctor"]["stale_locks"], 1);
        world.write("go", "");
        first.resume();
        let woken = Answer::of(first.wait(LIMIT)).expect(CONFLICT);
        assert_eq!(woken.error_code(), "lease_lost");
        assert_eq!((world.show(&id), world.events(&id)), (seen, told));
        world.wait_dead(&id);
        world.insist(&["plan", "execute", &id]).expect(0);
        assert_eq!(world.stage(&id), "execute/complete");
        world.assert_sound(&id);
    }
}

/// long-day: breaks when the next step that a conflict names does not help against a process that will not let go.
#[test]
fn a_process_that_is_stuck_is_passed_as_the_conflict_says() {
    let world = World::with_writer(Kind::Sqlite, "");
    world.settings("[locks]\nttl = \"1h\"\n");
    let (began, go) = (world.place("began"), world.place("go"));
    let slow = format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done");
    world.agent("writer", &format!("[ -e {began} ] || {{ {slow}; exit; }}; echo hi > hello.txt"));
    let id = world.plan_after("strategize");
    let first = world.spawn(&["plan", "execute", &id]);
    world.wait_file("began");
    first.pause();
    let refused = world.drydock(&["plan", "execute", &id]).expect(CONFLICT);
    let hint = refused.json["error"]["hint"].as_str().unwrap().to_owned();
    let named: Vec<_> = hint.split('`').nth(1).unwrap().split_whitespace().collect();
    assert_eq!(named[..3], ["drydock", "lock", "break"], "{hint}");
    world.ok(&named[1..]);
    world.insist(&["plan", "execute", &id]).expect(0);
    world.write("go", "");
    first.resume();
    assert_eq!(Answer::of(first.wait(LIMIT)).expect(CONFLICT).error_code(), "lease_lost");
    assert_eq!(world.stage(&id), "execute/complete");
}

/// BUG-11. Breaks when a frozen process that holds the repository's lock stops all other plans of the repository.
#[test]
fn a_frozen_process_does_not_stop_the_repository() {
    let world = World::with_writer(Kind::Sqlite, "echo hi > hello.txt");
    world.repo.write(".gitattributes", "slow.txt filter=slow\n");
    world.repo.write("slow.txt", "slow\n");
    world.repo.commit("slow to check out");
    let (began, go) = (world.place("began"), world.place("go"));
    let wait = format!("touch {began}; while [ ! -e {go} ]; do sleep 0.05; done; cat");
    world.write("gitconfig", &format!("[filter \"slow\"]\n\tsmudge = \"{wait}\"\n"));
    let (first, second) = (world.plan_after("strategize"), world.plan_after("strategize"));
    let mut command = world.command(&["plan", "execute", &first]);
    let frozen = proc::spawn(command.env("GIT_CONFIG_GLOBAL", world.path("gitconfig")));
    world.wait_file("began");
    frozen.pause();
    // The second plan's worktree is made in turn with the first one's.
    world.ok(&["plan", "execute", &second]);
    assert_eq!(frozen.wait(LIMIT).code(), None, "it was killed");
    world.insist(&["plan", "execute", &first]).expect(0);
    for plan in [first, second] {
        world.ok(&["plan", "apply", &plan]);
        world.assert_sound(&plan);
    }
}
