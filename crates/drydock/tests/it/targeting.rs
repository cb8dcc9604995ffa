//! The branch that a plan lands on.

use std::path::Path;
use std::process::Command;

use drydock_testkit::proc;

use crate::world::{Answer, Kind, LIMIT, World, stage};

const TITLE: &str = "printf '# Changed by a plan\\n' > README.md";

fn world(kind: Kind) -> World {
    World::with_writer(kind, TITLE)
}

/// Does a task where a person stands in a directory, and returns the first line that they read besides.
#[track_caller]
fn run_in(world: &World, folder: &Path, more: &[&str]) -> (String, String) {
    let args = [&["run", "change the title", "--agent", "writer", "--yes"], more].concat();
    let ran = proc::run(world.command(&args).current_dir(folder), LIMIT);
    let first = ran.stderr.lines().next().unwrap_or_default().to_owned();
    let answer = Answer::of(ran).expect(0);
    assert_eq!(stage(answer.plan()), "apply/applied", "{:#}", answer.json);
    (answer.plan()["target"].as_str().unwrap().to_owned(), first)
}

on_both! {
    /// Breaks when a plan begins at, or lands on, its project's branch instead of its own (B10).
    fn a_plan_lands_on_the_branch_that_it_was_made_for(kind: Kind) {
        let world = world(kind);
        world.repo.git(&["switch", "-q", "-c", "feature"]);
        world.repo.write("feature.txt", "begun\n");
        world.repo.commit("begin the feature");
        world.repo.git(&["switch", "-q", "main"]);
        let (main, feature) = (world.repo.head("main"), world.repo.head("feature"));
        let id = world.plan(&["--target", "feature"]);
        for step in ["strategize", "execute", "apply"] {
            world.ok(&["plan", step, &id]);
        }
        let plan = world.show(&id);
        assert_eq!((&plan["target"], &plan["base_commit"]), (&"feature".into(), &feature.as_str().into()));
        assert_eq!(world.repo.head("main"), main);
        assert_eq!(plan["landed_commit"], world.repo.head("feature").as_str());
        assert_eq!(world.repo.git(&["rev-parse", "feature^"]), feature);
        let begun = world.events(&id).into_iter().find(|event| event["kind"] == "apply.intended").unwrap();
        assert_eq!(begun["data"]["target"], "feature");
    }
}

/// Breaks when a branch that is not there is found out about after the plan was made, or the next step names nothing
/// that can be pasted (N12).
#[test]
fn a_branch_that_is_not_there_is_refused_before_anything_is_made() {
    let world = world(Kind::Sqlite);
    let at = world.repo.path().to_str().unwrap();
    let use_fix = ["plan", "use", "fix", "--project", "app", "--target"];
    let refused = world.drydock(&[&use_fix[..], &["nope"]].concat()).expect(3);
    let error = &refused.json["error"];
    assert_eq!(error["text"], format!("there is no branch \"nope\" in {at}"));
    assert_eq!(error["hint"], format!("`git -C {at} branch` lists its branches"));
    for wrong in ["", "a b", "HEAD", "main~1"] {
        assert_eq!(
            world.drydock(&[&use_fix[..], &[wrong]].concat()).expect(2).error_code(),
            "invalid",
            "{wrong:?}"
        );
    }
    assert_eq!(world.ok(&["plan", "list"])["plans"], serde_json::json!([]));
}

/// Breaks when `run` lands on another branch than the one that its user stands on, or does not say which (B10).
#[test]
fn run_lands_on_the_branch_that_you_stand_on() {
    let world = world(Kind::Sqlite);
    let main = world.repo.head("main");
    world.repo.git(&["switch", "-q", "-c", "feature"]);
    let linked = world.path("linked");
    world.repo.git(&["worktree", "add", "-q", "-b", "beside", linked.to_str().unwrap()]);
    for (folder, more, expected) in [
        (world.repo.path(), &[][..], "feature"),
        (&linked, &["--project", "app"][..], "beside"),
        (world.repo.path(), &["--target", "beside"], "beside"),
        (&world.path("store"), &["--project", "app"], "main"),
    ] {
        world.agent("writer", &format!("echo {expected} {} >> README.md", more.len()));
        let before = world.repo.head(expected);
        let (target, first) = run_in(&world, folder, more);
        assert_eq!(target, expected);
        assert!(first.ends_with(&format!(", lands on {expected}")), "{first}");
        assert_eq!(world.repo.git(&["rev-parse", &format!("{expected}^")]), before);
        assert_eq!(world.repo.head("main") == main, expected != "main");
    }
}

/// Breaks when a task is done for a branch that its user cannot have meant, or the way out that is named does not work
/// when it is pasted (B10, N12).
#[test]
fn a_detached_head_is_refused_and_the_hint_works_as_it_stands() {
    let world = world(Kind::Sqlite);
    world.repo.git(&["switch", "-q", "--detach"]);
    let main = world.repo.head("main");
    let args = ["run", "change it's title", "--agent", "writer", "--yes"];
    let refused = Answer::of(proc::run(world.command(&args).current_dir(world.repo.path()), LIMIT)).expect(2);
    assert_eq!(refused.error_code(), "usage");
    let error = &refused.json["error"];
    let at = world.repo.path().display();
    assert_eq!(error["text"], format!("no branch to land on: none is checked out in {at}"));
    assert_eq!(world.ok(&["plan", "list"])["plans"], serde_json::json!([]));
    assert_eq!(world.repo.head("main"), main);
    let hint = error["hint"].as_str().unwrap();
    let command = hint.split('`').nth(1).unwrap_or_else(|| panic!("{hint}"));
    assert!(command.contains("--target main"), "{hint}");
    let mut pasted = Command::new("sh");
    let program = Path::new(env!("CARGO_BIN_EXE_drydock")).parent().unwrap().to_str().unwrap();
    let typed = world.command(&[]);
    pasted.args(["-c", command]).current_dir(world.repo.path()).env_clear();
    pasted.envs(typed.get_envs().filter_map(|(name, value)| Some((name, value?))));
    pasted.env("PATH", format!("{program}:{}", std::env::var("PATH").unwrap()));
    let done = Answer::of(proc::run(&mut pasted, LIMIT)).expect(0);
    assert_eq!(done.plan()["landed_commit"], world.repo.head("main").as_str());
}

/// Breaks when work of one plan can be landed on the branch of another.
#[test]
fn the_branch_of_a_plan_is_not_landed_on() {
    let world = world(Kind::Sqlite);
    let other = world.plan_after("execute");
    let branch = format!("drydock/{other}/work");
    let use_fix = ["plan", "use", "fix", "--project", "app", "--target", &branch];
    let refused = world.drydock(&use_fix).expect(2);
    assert!(
        refused.json["error"]["text"].as_str().unwrap().contains("is the branch of a plan"),
        "{:#}",
        refused.json
    );
    let add = ["project", "add", "more", "--repo", world.repo.path().to_str().unwrap(), "--target", &branch];
    world.drydock(&add).expect(2);
}

/// Breaks when a plan is made and answered with an error: the caller makes it once more (code 8.4).
#[test]
fn a_repository_that_cannot_be_looked_at_makes_no_plan() {
    let world = world(Kind::Sqlite);
    let index = world.repo.path().join(".git/index");
    let whole = std::fs::read(&index).unwrap();
    std::fs::write(&index, "damaged").unwrap();
    let refused = world.drydock(&["plan", "use", "fix", "--project", "app"]).expect(1);
    assert_eq!(refused.error_code(), "git_failed", "{:#}", refused.json);
    assert_eq!(world.ok(&["plan", "list"])["plans"], serde_json::json!([]));
    std::fs::write(&index, whole).unwrap();
    world.repo.write("README.md", "# Not committed\n");
    let id = world.plan(&[]);
    let kinds: Vec<_> = world.events(&id).iter().map(|event| crate::world::text(&event["kind"])).collect();
    assert_eq!(kinds, ["plan.created", "alert"]);
}
