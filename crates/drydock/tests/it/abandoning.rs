//! Work that was given up: a plan that is reverted or rolled back begins where it says, also after the work was sent; and one
//! whose directories are gone, or are elsewhere, goes on.

use std::fs;

use drydock_testkit::wait;
use serde_json::Value;

use crate::shared::Shared;
use crate::world::{Answer, Kind, LIMIT, World, list, text};

const LISTS: &str = "ls > seen.txt";

/// Takes a plan through a question to the end of Execute; its branch and the remote have both parts of the work.
fn executed_after_a_question(shared: &Shared) -> String {
    let ask = r#"{"drydock":"ask","question":"Which colour?"}"#;
    let script = format!(
        "if [ -e half.txt ]; then echo red > colour.txt; else echo half > half.txt; echo '{ask}'; sleep 300; fi"
    );
    shared.world.agent("writer", &script);
    let id = shared.plan("fix");
    shared.world.ok(&["plan", "strategize", &id]);
    shared.world.drydock(&["plan", "execute", &id]).expect(6);
    let asked = text(&shared.decision(&id)["id"]);
    shared.world.ok(&["decision", "resolve", &asked, "--option", "answered", "--note", "red"]);
    shared.world.drydock(&["plan", "execute", &id]).expect(0);
    id
}

fn checkpoints(shared: &Shared, id: &str) -> Vec<Value> {
    list(&shared.world.ok(&["checkpoint", "list", id])["checkpoints"])
}

/// Returns the files that the last run began with, as its agent wrote them down.
fn seen(shared: &Shared, id: &str) -> Vec<String> {
    let head = text(&shared.world.show(id)["head_commit"]);
    let seen = shared.world.repo.git(&["show", &format!("{head}:seen.txt")]);
    seen.lines().filter(|name| name.ends_with(".txt") && *name != "seen.txt").map(str::to_owned).collect()
}

on_both! {
    /// Breaks when work that was kept before a question is taken for that of others once it was sent: a plan that was
    /// reverted would begin on top of it, and land it.
    fn a_reverted_plan_leaves_the_work_before_a_question_behind(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let id = executed_after_a_question(&shared);
        let labels: Vec<_> = checkpoints(&shared, &id).iter().map(|one| text(&one["label"])).collect();
        assert_eq!(labels[0], "work before the question");
        shared.world.agent("writer", LISTS);
        shared.world.ok(&["plan", "revert", &id, "--reason", "another way"]);
        shared.world.ok(&["plan", "strategize", &id]);
        shared.world.ok(&["plan", "execute", &id]);
        assert_eq!(seen(&shared, &id), [] as [&str; 0], "it begins on the base");
        shared.world.ok(&["plan", "apply", &id]);
        let landed = shared.world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed, "seen.txt");
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when a plan that is rolled back after its work was sent begins with more than the checkpoint has, the
    /// first time or the second.
    fn a_plan_that_is_rolled_back_begins_at_exactly_that_state(kind: Kind) {
        let shared = Shared::new(kind, "true");
        let keep = r#"{"drydock":"checkpoint","label":"a state"}"#;
        let kept = shared.world.place("kept");
        let step = |name: &str| {
            format!("echo x > {name}.txt; echo '{keep}'; while [ ! -e {kept}-{name} ]; do sleep 0.02; done")
        };
        shared.world.agent("writer", &format!("{}; {}; echo 3 > three.txt", step("one"), step("two")));
        let id = shared.plan("fix");
        shared.world.ok(&["plan", "strategize", &id]);
        let running = shared.world.spawn(&["plan", "execute", &id]);
        for (made, name) in [(1, "one"), (2, "two")] {
            let count = || shared.world.count(&id, "agent.checkpoint");
            wait::until("the checkpoint", LIMIT, || (count() == made).then_some(()));
            shared.world.write(&format!("kept-{name}"), "");
        }
        Answer::of(running.wait(LIMIT)).expect(0);
        let states = checkpoints(&shared, &id);
        for (round, files) in [&["one.txt"][..], &["one.txt", "two.txt"]].into_iter().enumerate() {
            let before = shared.remote_tip(&id).unwrap();
            shared.world.agent("writer", &format!("{LISTS}; echo x > {round}.new"));
            shared.world.ok(&["plan", "rollback", &id, &text(&states[round]["commit"])]);
            shared.world.ok(&["plan", "execute", &id]);
            assert_eq!(seen(&shared, &id), files, "{round}");
            let after = shared.remote_tip(&id).unwrap();
            shared.world.repo.git(&["merge-base", "--is-ancestor", &before, &after]);
        }
        shared.world.ok(&["plan", "apply", &id]);
        let landed = shared.world.repo.git(&["diff", "--name-only", "main~1", "main"]);
        assert_eq!(landed.lines().collect::<Vec<_>>(), ["1.new", "one.txt", "seen.txt", "two.txt"]);
        shared.world.assert_sound(&id);
    }
}

on_both! {
    /// Breaks when what git remembers of directories that are gone keeps a plan from its branch.
    fn a_plan_whose_directories_are_gone_goes_on(kind: Kind) {
        let world = World::with_writer(kind, "echo hi > hello.txt");
        world.agent("thinker", "true");
        world.action("think", "[agents]\nstrategize = \"thinker\"\nexecute = \"writer\"");
        let id = text(&world.ok(&["plan", "use", "think", "--project", "app"])["plan"]["id"]);
        world.ok(&["plan", "strategize", &id]);
        for phase in ["execute", "apply"] {
            fs::remove_dir_all(world.worktrees()).unwrap();
            world.ok(&["plan", phase, &id]);
        }
        world.assert_landed_once(&id);
    }
}

/// Breaks when a plan is stuck, or its work is lost, because a drydock with other directories worked on it last.
#[test]
fn a_drydock_with_other_directories_goes_on_with_a_plan() {
    let world = World::with_writer(Kind::Postgres, "echo half > half.txt; exit 3");
    let id = world.plan_after("strategize");
    let elsewhere = world.place("elsewhere");
    let failed = world.drydock_with("XDG_DATA_HOME", &elsewhere, &["plan", "execute", &id]);
    assert_eq!(failed.status.code(), Some(1), "{failed:?}");
    world.agent("writer", "echo hi > hello.txt");
    world.ok(&["plan", "retry", &id]);
    world.ok(&["plan", "execute", &id]);
    let kept = list(&world.ok(&["checkpoint", "list", &id])["checkpoints"]);
    let has_half =
        |one: &Value| world.repo.git(&["ls-tree", "--name-only", &text(&one["commit"])]).contains("half.txt");
    assert!(kept.iter().any(has_half), "{kept:#?}");
    world.ok(&["plan", "apply", &id]);
    world.assert_landed_once(&id);
}
