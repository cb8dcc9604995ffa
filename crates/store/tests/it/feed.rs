//! The feed: numbered without gaps in commit order, and no follower misses an event.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use drydock_domain::Event;
use drydock_store::{EventFilter, Renewed};

use crate::child;
use crate::world::{LIMIT, LONG, events_total, lease, plan_id, queued, started};

on_both! {
    /// Fails if a number becomes visible before a smaller one, or if an unnumbered event is lost.
    async fn a_follower_sees_every_event_once_and_in_order(world: World) {
        const EACH: i64 = 60;
        let store = world.open().await;
        let total = 2 * 4 * (EACH + 1);
        let writers = [child::spawn(&world, "note", &EACH.to_string()), child::spawn(&world, "note", &EACH.to_string())];
        let (mut watch, mut seen) = (store.watch(), Vec::new());
        let started = Instant::now();
        while (seen.len() as i64) < total {
            assert!(started.elapsed() < LIMIT, "{} of {total} events after {LIMIT:?}", seen.len());
            let after = seen.len() as i64;
            let page = store.event_list(&EventFilter { after, plan: None, limit: 50 }).await.unwrap();
            if page.is_empty() {
                watch.changed(Duration::from_secs(5)).await;
            }
            for event in page {
                assert_eq!(event.seq, seen.len() as i64 + 1, "no gap, nothing twice");
                seen.push(event);
            }
        }
        for writer in writers {
            writer.wait(LIMIT).expect_code(0);
        }
        assert_eq!(events_total(&store).await, total);
        let mut said: BTreeMap<_, Vec<i64>> = BTreeMap::new();
        for event in seen.iter().filter(|event| event.kind == "agent.said") {
            said.entry(event.plan.clone().unwrap()).or_default().push(event.details["n"].as_i64().unwrap());
        }
        assert_eq!(said.len(), 8);
        for (plan, order) in said {
            assert_eq!(order, (0..EACH).collect::<Vec<_>>(), "{plan}");
        }
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

on_both! {
    /// Fails if a commit of this or another process does not wake waiting tasks, or if a wake before waiting
    /// is lost.
    async fn a_commit_wakes_those_who_wait(world: World) {
        let (here, there) = (world.open().await, world.open().await);
        let mut watch = here.watch();
        // Waits for the listener to start, so that the commit causes the wake below.
        watch.changed(Duration::from_millis(500)).await;
        for store in [&here, &there] {
            let before = Instant::now();
            let (_lease, _) = queued(store, "a").await;
            watch.changed(LIMIT).await;
            assert!(before.elapsed() < Duration::from_secs(10), "woken after {:?}", before.elapsed());
        }
    }
}

on_both! {
    /// Fails if a filter loses or adds events, or if the revisions in one plan's events decrease.
    async fn a_plans_events_are_its_own_and_in_order(world: World) {
        let store = world.open().await;
        let (lease_one, one) = queued(&store, "a").await;
        let (_two, other) = queued(&store, "b").await;
        started(&store, &lease_one).await;
        let of = |plan| EventFilter { after: 0, plan: Some(plan), limit: 100 };
        let kinds = |events: Vec<drydock_domain::StoredEvent>| events.into_iter().map(|event| event.kind).collect::<Vec<_>>();
        let mine = store.event_list(&of(one.id.clone())).await.unwrap();
        assert!(mine.windows(2).all(|pair| pair[0].seq < pair[1].seq && pair[0].revision <= pair[1].revision));
        assert_eq!(kinds(mine), ["plan.created", "invariant.enforced", "plan.started"]);
        let newest = store.event_recent(&one.id, 2).await.unwrap();
        assert_eq!(kinds(newest), ["plan.started", "invariant.enforced"]);
        assert_eq!(kinds(store.event_list(&of(other.id)).await.unwrap()), ["plan.created"]);
        let _unmade = lease(&store, &plan_id(), "c").await;
        assert_eq!(events_total(&store).await, 4);
        assert_eq!(store.event_newest().await.unwrap(), 4);
        let page = store.event_list(&EventFilter { after: 1, plan: None, limit: 2 }).await.unwrap();
        assert_eq!(page.iter().map(|event| event.seq).collect::<Vec<_>>(), [2, 3]);
    }
}

on_both! {
    /// Fails if a page is shorter than requested although more events exist: readers take a short page as the
    /// end of the feed.
    async fn a_page_is_as_long_as_was_asked_for(world: World) {
        const MANY: usize = 1_200;
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        let said = |n| Event::Agent { what: "said", details: serde_json::json!({ "n": n }) };
        store.event_append(&lease, &lease.batch((1..MANY).map(said).collect())).await.unwrap();
        let filter = EventFilter { after: 0, plan: None, limit: 5_000 };
        assert_eq!(store.event_list(&filter).await.unwrap().len(), MANY);
        assert_eq!(store.event_recent(&plan.id, 5_000).await.unwrap().len(), MANY);
    }
}

/// Fails if our own renewal or claim wakes waiting tasks, through the writer or the lookout.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quiet_write_wakes_nobody_here() {
    let world = crate::world::World::sqlite();
    let store = world.open().await;
    let (lease, _) = queued(&store, "a").await;
    let plan = crate::world::free(&store).await;
    let mut watch = store.watch();
    watch.changed(Duration::from_millis(100)).await;
    let quiet = crate::world::spawn({
        let store = store.clone();
        async move {
            for _ in 0..20 {
                assert!(matches!(store.plan_lease_renew(&lease, LONG).await.unwrap(), Renewed::Until(_)));
            }
            let claim = store.effect_claim("c", LONG).await.unwrap().unwrap();
            assert_eq!(claim.plan, plan.id);
            store.effect_defer(&claim, LONG).await.unwrap();
            (Instant::now(), lease)
        }
    });
    let limit = Duration::from_millis(700);
    let started = Instant::now();
    watch.changed(limit).await;
    assert!(started.elapsed() >= limit, "woken after {:?}", started.elapsed());
    let (ended, lease) = quiet.await.unwrap();
    assert!(ended <= started + limit, "the writes were over before the wait was");
    store.plan_lease_release(lease).await.unwrap();
    let before = Instant::now();
    watch.changed(LIMIT).await;
    assert!(before.elapsed() < LIMIT, "a loud write wakes");
}
