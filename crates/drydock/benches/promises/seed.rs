//! Stores with plans in them, to measure on.

use std::collections::BTreeMap;
use std::time::Duration;

use drydock_domain::{
    Authority, Context, CreatePlan, DecisionId, Holder, Plan, PlanAgents, PlanId, PlanSpec, Profile, Target,
    Timestamp, create,
};
use drydock_store::{Acquired, Options, PlanLease, Store, StoreUrl};

/// Long enough that no lease runs out while something is measured.
pub(crate) const TTL: Duration = Duration::from_secs(3_600);

/// A clock that never moves: nothing here depends on time passing.
fn clock() -> Timestamp {
    Timestamp::from_micros(1_800_000_000_000_000)
}

pub(crate) async fn open(url: &StoreUrl) -> Store {
    Store::open(url, Options::new(clock)).await.unwrap()
}

pub(crate) fn context(number: u128) -> Context {
    Context {
        now: clock(),
        by: "bench".to_owned(),
        via: "a bench".to_owned(),
        authority: Authority::Person,
        spent: None,
        fresh_decision: DecisionId::from_random(number),
    }
}

/// Spreads a number over the bits of an id, so that ids are as scattered as real ones.
pub(crate) fn scattered(number: u128) -> u128 {
    (number + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
}

fn spec() -> PlanSpec {
    let profile = Profile::built_in().into_iter().find(|profile| profile.name == "auto").unwrap();
    PlanSpec {
        action: "fix".parse().unwrap(),
        project: "demo".parse().unwrap(),
        task: "Make the parser accept trailing commas in argument lists".to_owned(),
        definition_of_done: Some("the tests pass".to_owned()),
        arguments: BTreeMap::from([("what".to_owned(), "the parser".to_owned())]),
        profile,
        agents: PlanAgents::default(),
        validations: Vec::new(),
        invariants: Vec::new(),
        target: Target::default(),
        allow_empty: false,
        budget: drydock_domain::Budget::UNLIMITED,
    }
}

/// Makes a plan and returns it with the lease on it.
pub(crate) async fn plan(store: &Store, number: u128) -> (Plan, PlanLease) {
    let id = PlanId::from_random(scattered(number));
    let holder = Holder {
        owner: format!("bench/{number}"),
        process: drydock_domain::ProcessIdentity::unproven("bench", 1),
        purpose: "bench".to_owned(),
    };
    let Acquired::Held(lease) = store.plan_lease_acquire(&id, &holder, TTL).await.unwrap() else {
        panic!("somebody else holds a plan of the benchmark")
    };
    let new = CreatePlan { id, spec: spec(), base_commit: "1".repeat(40) };
    let made = store.plan_create(&lease, create(new, &context(scattered(number)))).await.unwrap();
    (made, lease)
}
