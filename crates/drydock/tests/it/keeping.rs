//! Snapshots around tools: each state of the worktree that an agent's tools leave can be gone back to, exactly.

use drydock_testkit::program::acp_agent;

use crate::speaking::world;
use crate::world::{Kind, World, list, text};

/// Returns the snapshots as what they are called and the files in them that the base has not.
fn kept(world: &World, plan: &str) -> Vec<(String, String)> {
    let files = |commit: &str| {
        let listed = world.repo.git(&["ls-tree", "-r", "--name-only", commit]);
        let new: Vec<_> = listed
            .lines()
            .filter(|name| name.ends_with(".txt") && !name.contains('/'))
            .map(str::to_owned)
            .collect();
        new.join(" ")
    };
    let checkpoints = list(&world.ok(&["checkpoint", "list", plan])["checkpoints"]);
    checkpoints.iter().map(|one| (text(&one["label"]), files(&text(&one["commit"])))).collect()
}

on_both! {
    /// Breaks when a state around a tool is not kept, is kept with something else in it, or cannot be gone back to.
    fn every_state_around_a_tool_is_kept_and_can_be_gone_back_to(kind: Kind) {
        let world = world(kind, "steps", "");
        let id = world.plan_after("execute");
        let seen = kept(&world, &id);
        let wanted = [
            ("after write: one.txt", "one.txt"),
            ("after execute: make it", "two.txt"),
            ("after write: three.txt", "three.txt two.txt"),
            ("before write: four.txt", "stray.txt three.txt two.txt"),
            ("after write: four.txt", "four.txt stray.txt three.txt two.txt"),
        ];
        let wanted = wanted.map(|(label, files)| (label.to_owned(), files.to_owned()));
        assert_eq!(seen[..5], wanted);
        assert_eq!(world.count(&id, "agent.checkpoint"), 5);
        let checkpoints = list(&world.ok(&["checkpoint", "list", &id])["checkpoints"]);
        // B15: each names the run that it was made in.
        let run = &world.show(&id)["run"];
        assert!(checkpoints.iter().all(|one| one["run"] == *run), "{checkpoints:?}");
        world.ok(&["plan", "rollback", &id, &text(&checkpoints[1]["commit"])]);
        world.write("behaviour", "write");
        world.ok(&["plan", "execute", &id]);
        assert!(kept(&world, &id).contains(&wanted[4]), "what is newer is kept");
        world.ok(&["plan", "apply", &id]);
        let landed = world.repo.git(&["ls-tree", "-r", "--name-only", "main"]);
        for (file, there) in [("two.txt", true), ("hello.txt", true), ("one.txt", false), ("three.txt", false), ("stray.txt", false), ("four.txt", false)] {
            assert_eq!(landed.lines().any(|line| line == file), there, "{file}: {landed}");
        }
        world.assert_landed_once(&id);
        world.assert_sound(&id);
    }
}

/// Breaks when an agent that writes for ever fills the repository with snapshots, or is stopped by their limit. Takes
/// minutes, so only with `DRYDOCK_SOAK=1`.
#[test]
fn a_run_gets_a_hundred_snapshots_around_its_tools() {
    if std::env::var_os("DRYDOCK_SOAK").is_none() {
        return;
    }
    let world = world(Kind::Sqlite, "many", "");
    let id = world.plan_after("execute");
    assert_eq!((world.count(&id, "agent.checkpoint"), world.count(&id, "agent.checkpoint_failed")), (100, 1));
    assert!(kept(&world, &id).len() <= 101, "and the result");
}

/// Breaks when a snapshot that cannot be made ends the run, or is not told.
#[test]
fn a_snapshot_that_fails_is_told_and_stops_nothing() {
    let world = world(Kind::Sqlite, "nested", "");
    let id = world.plan_after("execute");
    let events = world.events(&id);
    let failed: Vec<_> = events.iter().filter(|event| event["kind"] == "agent.checkpoint_failed").collect();
    assert!(!failed.is_empty() && text(&failed[0]["data"]["reason"]).contains("nested"), "{events:#?}");
    assert!(kept(&world, &id).contains(&("after write: two.txt".to_owned(), "one.txt two.txt".to_owned())));
}

on_both! {
    /// Breaks when the tool confirms a checkpoint before it is made: what is written after that is then in it.
    fn a_checkpoint_is_made_when_it_is_confirmed(kind: Kind) {
        let world = world(kind, "checkpoint", "");
        let id = world.plan_after("execute");
        assert_eq!(kept(&world, &id)[0], ("early".to_owned(), "early.txt".to_owned()));
        assert!(world.repo.git(&["ls-tree", "--name-only", &text(&world.show(&id)["head_commit"])]).contains("late.txt"));
    }
}

on_both! {
    /// Breaks when a reviewer's tool does not reach the review, or a verdict on another version counts.
    fn a_reviewer_gives_its_verdict_with_a_tool(kind: Kind) {
        for (version, ends, kinds) in [(1, 0, ("review.acknowledged", 1)), (7, 6, ("review.silent", 3))] {
            let world = world(kind, "write", "");
            let critic = format!("exec {} tool give_verdict '{{\\\"verdict\\\":\\\"ack\\\",\\\"version\\\":{version}}}'", acp_agent());
            world.settings(&format!("[agents.critic]\nprotocol = \"acp\"\ncommand = [\"sh\", \"-c\", \"{critic}\"]\n"));
            world.action("reviewed", "reviewers = [{ agent = \"critic\", critical = true }]\n[agents]\nexecute = \"writer\"");
            let id = text(&world.ok(&["plan", "use", "reviewed", "--project", "app"])["plan"]["id"]);
            world.ok(&["plan", "strategize", &id]);
            world.drydock(&["plan", "execute", &id]).expect(ends);
            assert_eq!(world.count(&id, kinds.0), kinds.1);
            assert_eq!(world.count(&id, "review.acknowledged"), usize::from(ends == 0));
        }
    }
}
