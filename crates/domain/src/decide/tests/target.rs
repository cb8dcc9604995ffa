//! The branch that a plan lands on.

use super::world::World;
use crate::{Name, Plan, Project, Target, Timestamp};

fn project(name: &Name) -> Project {
    Project {
        name: name.clone(),
        repo: "/somewhere".into(),
        target: "main".into(),
        remote: None,
        on_divergence: None,
        validations: Vec::new(),
        created_at: Timestamp::from_micros(0),
    }
}

/// Fails if a plan of an earlier version has no target, or if a plan lands on its project's branch instead of
/// its own (B10).
#[test]
fn a_plan_lands_on_its_own_branch_and_an_earlier_one_on_its_projects() {
    let mut plan = World::under("auto").plan().clone();
    plan.spec.target = Target::branch("feature");
    let (own, other) = (project(&plan.spec.project), project(&"other".parse().unwrap()));
    assert_eq!((plan.target(&own), plan.target(&other)), ("feature", "main"));
    let mut stored = serde_json::to_value(&plan).unwrap();
    stored["spec"].as_object_mut().unwrap().remove("target");
    let earlier: Plan = serde_json::from_value(stored).unwrap();
    assert_eq!(earlier.target(&own), "main");
}
