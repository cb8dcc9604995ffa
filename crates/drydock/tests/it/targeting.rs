//! The branch that a plan lands on.

use crate::world::{Kind, World};

const TITLE: &str = "printf '# Changed by a plan\\n' > README.md";

fn world(kind: Kind) -> World {
    World::with_writer(kind, TITLE)
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
