//! Processes that crash inside a commit, observed from outside.

use drydock_domain::RunId;
use drydock_store::CrashPoint;

use crate::child;
use crate::world::{LIMIT, World, changeset_id, command, events_total, fail_and_ask, processing};

on_both! {
    /// S0.1, S0.3, S4.5: fails if any two of plan, events, decision, changesets and outbox are written
    /// separately.
    async fn a_crash_anywhere_in_a_commit_leaves_all_of_it_or_nothing(world: World) {
        let (before, after) = undisturbed(&world).await;
        for point in CrashPoint::all() {
            let (plan, run) = ready(&world).await;
            assert_eq!(world.observe(&plan), before);
            let died = child::spawn(&world, "crash", &format!("{point} {plan} {run}")).wait(LIMIT);
            assert_eq!(died.code(), None, "it was to die at {point}: {died:?}");
            let seen = world.observe(&plan);
            let expected = if point == CrashPoint::AfterCommit { &after } else { &before };
            assert_eq!(&seen, expected, "torn at {point}");
        }
        let store = world.open().await;
        // One of the processes died between its commit and the numbering of its events; a reader still finds
        // them.
        let events = world.query("SELECT count(*) FROM events");
        assert_eq!(events_total(&store).await.to_string(), events);
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

/// Returns the observations before and after the transition in a run without faults.
async fn undisturbed(world: &World) -> (String, String) {
    let store = world.open().await;
    let (plan, run) = ready(world).await;
    let before = world.observe(&plan);
    let lease = crate::world::lease(&store, &plan, "undisturbed").await;
    command(&store, &lease, fail_and_ask(&run)).await.unwrap();
    (before, world.observe(&plan))
}

/// Creates a plan in state `processing` with an open changeset and without a held lock.
async fn ready(world: &World) -> (drydock_domain::PlanId, RunId) {
    let store = world.open().await;
    let (lease, plan, run) = processing(&store, "parent").await;
    store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap();
    store.plan_lease_release(lease).await.unwrap();
    (plan.id, run)
}
