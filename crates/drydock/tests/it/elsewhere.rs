//! Pieces in other projects: they land there, once, whatever becomes of their parent.

use drydock_testkit::repo::Repo;
use drydock_testkit::wait;
use serde_json::json;

use crate::fanning::{draft, piece, subplan, world};
use crate::working::Server;
use crate::world::{Kind, LIMIT, World, text};

/// Makes a machine with a second project `lib`, whose piece `there` leaves one line for each time it is done.
fn with_lib(kind: Kind, beside: &[serde_json::Value]) -> (World, Repo) {
    let (world, lib) = (world(kind, &json!({})), Repo::new());
    world.ok(&["project", "add", "lib", "--repo", lib.path().to_str().unwrap()]);
    let there = json!({ "name": "there", "task": "echo there >> there.txt", "project": "lib" });
    let pieces = [beside, &[there]].concat();
    draft(&world, &json!({ "subplans": pieces }));
    (world, lib)
}

on_both! {
    /// Breaks when a plan counts as having done nothing because all it did is in other projects.
    fn a_plan_that_changes_other_projects_only_lands_there(kind: Kind) {
        let (world, lib) = with_lib(kind, &[]);
        let id = world.plan(&["--profile", "trusted"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        let tip = world.repo.git(&["rev-parse", "main"]);
        world.ok(&["plan", "apply", &id]);
        assert_eq!(world.stage(&id), "apply/applied");
        assert_eq!(world.repo.git(&["rev-parse", "main"]), tip, "a commit that changes nothing");
        assert_eq!(lib.git(&["show", "main:there.txt"]), "there");
        // And so it does by itself.
        let id = world.plan(&["--profile", "auto"]);
        let server = Server::start(&world, &["--workers", "2"]);
        wait::until("the plan to land", LIMIT, || (world.stage(&id) == "apply/applied").then_some(()));
        server.stop().expect(0);
        assert_eq!(lib.git(&["show", "main:there.txt"]), "there\nthere");
    }
}

on_both! {
    /// Breaks when what landed in another project is done and lands again after its parent went back to Strategize, or
    /// when the strategist is not told of it.
    fn what_landed_elsewhere_does_not_land_again_after_a_revert(kind: Kind) {
        let (world, lib) = with_lib(kind, &[piece("here", "echo here > kept.txt", &[])]);
        let drafted = world.place("strategy.json");
        let told = world.place("told");
        world.agent("thinker", &format!(
            "printf %s \"$DRYDOCK_TASK\" > {told}; mkdir -p .drydock && cp {drafted} .drydock/strategy.json"
        ));
        world.repo.write("kept.txt", "before");
        world.repo.commit("a file");
        let id = world.plan(&["--profile", "auto"]);
        world.ok(&["plan", "strategize", &id]);
        world.ok(&["plan", "execute", &id]);
        world.repo.write("kept.txt", "mine, and in the way");
        world.drydock(&["plan", "apply", &id]).expect(1);
        let landed = lib.git(&["rev-parse", "main"]);
        assert_eq!(lib.git(&["show", "main:there.txt"]), "there");
        world.repo.git(&["checkout", "--", "kept.txt"]);
        world.ok(&["plan", "revert", &id, "--reason", "otherwise"]);
        world.ok(&["plan", "strategize", &id]);
        let feedback = world.lines("told").concat();
        assert!(feedback.contains(&format!("subplan there has already landed in project lib as {landed}")), "{feedback}");
        assert_eq!(subplan(&world, &id, "there")["fate"], "joined");
        world.ok(&["plan", "execute", &id]);
        world.ok(&["plan", "apply", &id]);
        world.assert_landed_once(&id);
        assert_eq!((lib.git(&["rev-parse", "main"]), lib.git(&["show", "main:there.txt"])), (landed, "there".into()));
    }
}

/// Breaks when a piece that somebody ended is said to wait for its parent.
#[test]
fn a_piece_that_is_over_waits_for_nobody() {
    let (world, _lib) = with_lib(Kind::Sqlite, &[]);
    let id = world.plan(&["--profile", "trusted"]);
    world.ok(&["plan", "strategize", &id]);
    world.ok(&["plan", "execute", &id]);
    assert_eq!(subplan(&world, &id, "there")["waits_for"], "its parent to land");
    world.ok(&["plan", "cancel", &text(&subplan(&world, &id, "there")["plan"]), "--reason", "enough"]);
    let over = subplan(&world, &id, "there");
    assert_eq!((&over["fate"], over["waits_for"].as_str()), (&"cancelled".into(), None), "{over}");
}
