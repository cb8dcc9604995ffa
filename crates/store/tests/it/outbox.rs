//! Claims: an effect has one claimant at a time.

use std::collections::BTreeSet;
use std::time::Duration;

use drydock_store::Request;

use crate::world::{BRIEF, LONG, queued};

on_both! {
    /// S2.3: breaks when two claimants can get one effect.
    async fn no_effect_is_claimed_twice(world: World) {
        const PLANS: usize = 40;
        let store = world.open().await;
        for _ in 0..PLANS {
            queued(&store, "a").await;
        }
        let claimants: Vec<_> = (0..8)
            .map(|n| {
                let store = store.clone();
                crate::world::spawn(async move {
                    let mut mine = Vec::new();
                    while let Some(claim) = store.effect_claim(&format!("c{n}"), LONG).await.unwrap() {
                        mine.push(claim.plan);
                    }
                    mine
                })
            })
            .collect();
        let mut all = Vec::new();
        for claimant in claimants {
            all.extend(claimant.await.unwrap());
        }
        assert_eq!((all.len(), all.into_iter().collect::<BTreeSet<_>>().len()), (PLANS, PLANS));
    }
}

on_both! {
    /// Breaks when an expired claim is lost, or its late holder can still settle the effect.
    async fn an_expired_claim_comes_back_and_its_holder_is_too_late(world: World) {
        let store = world.open().await;
        let (_, plan) = queued(&store, "a").await;
        let late = store.effect_claim("slow", BRIEF).await.unwrap().unwrap();
        let second = loop {
            if let Some(claim) = store.effect_claim("quick", LONG).await.unwrap() {
                break claim;
            }
        };
        assert_eq!((&second.plan, second.attempts), (&plan.id, 2));
        store.effect_drop(&late).await.unwrap();
        store.effect_defer(&late, Duration::ZERO).await.unwrap();
        assert_eq!(store.effect_claim("third", LONG).await.unwrap(), None);
        store.effect_defer(&second, Duration::ZERO).await.unwrap();
        let third = store.effect_claim("third", LONG).await.unwrap().unwrap();
        assert_eq!(third.attempts, 3);
        store.effect_defer(&third, LONG).await.unwrap();
        assert_eq!(store.effect_claim("fourth", LONG).await.unwrap(), None);
        assert_eq!(store.counts().await.unwrap().effects, 1);
    }
}

on_both! {
    /// Breaks when a dropped effect comes back, or a request can be made of a plan that is not there.
    async fn a_dropped_effect_is_gone(world: World) {
        let store = world.open().await;
        queued(&store, "a").await;
        let claim = store.effect_claim("c", LONG).await.unwrap().unwrap();
        store.effect_drop(&claim).await.unwrap();
        assert_eq!(store.counts().await.unwrap().effects, 0);
        let request = Request { kind: drydock_store::RequestKind::Cancel, reason: String::new(), by: String::new() };
        assert!(store.request_put(&crate::world::plan_id(), &request).await.is_err());
    }
}
