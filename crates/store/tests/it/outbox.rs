//! Claims: one worker at a time has the claim on an effect.

use std::collections::BTreeSet;
use std::time::Duration;

use drydock_domain::{Command, Completion};
use drydock_store::{ClaimRequest, PhaseLimits};

use crate::world::{BRIEF, LONG, command, expired, free, holder, queued, started};

on_both! {
    /// S2.3: fails if two workers can claim one effect.
    async fn no_effect_is_claimed_twice(world: World) {
        const PLANS: usize = 40;
        let store = world.open().await;
        for _ in 0..PLANS {
            free(&store).await;
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
    /// Fails if an expired claim is lost, or if its late holder can still defer the effect.
    async fn an_expired_claim_comes_back_and_its_holder_is_too_late(world: World) {
        let store = world.open().await;
        let plan = free(&store).await;
        let late = store.effect_claim("slow", BRIEF).await.unwrap().unwrap();
        let second = loop {
            if let Some(claim) = store.effect_claim("quick", LONG).await.unwrap() {
                break claim;
            }
        };
        assert_eq!((&second.plan, second.attempts), (&plan.id, 2));
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
    /// Fails if a plan with a held lock is claimed, or if a plan with a released lock is not.
    async fn what_is_held_is_not_claimed(world: World) {
        let store = world.open().await;
        let (held, plan) = queued(&store, "a").await;
        assert_eq!(store.effect_claim("c", LONG).await.unwrap(), None);
        let other = free(&store).await;
        let claim = store.effect_claim("c", LONG).await.unwrap().unwrap();
        assert_eq!(claim.plan, other.id);
        store.plan_lease_release(held).await.unwrap();
        let claim = store.effect_claim("c", LONG).await.unwrap().unwrap();
        assert_eq!((&claim.plan, claim.attempts), (&plan.id, 1));
        store.effect_defer(&claim, Duration::ZERO).await.unwrap();
        // An expired lock of a dead process does not prevent a claim.
        let _gone = store.plan_lease_acquire(&plan.id, &holder("gone"), BRIEF).await.unwrap();
        expired(&store, plan.id.as_str()).await;
        assert_eq!(store.effect_claim("c", LONG).await.unwrap().map(|claim| claim.plan), Some(plan.id));
    }
}

on_both! {
    /// Fails if more phases are claimed than may run concurrently, for any number of concurrent callers; if a
    /// freed slot is not given away; or if a claim within one plan tree takes an effect of another.
    async fn no_more_is_claimed_than_may_run(world: World) {
        let store = world.open().await;
        for _ in 0..12 {
            free(&store).await;
        }
        let limits = PhaseLimits { store: Some(3), project: None };
        let claimants: Vec<_> = (0..8)
            .map(|n| {
                let store = store.clone();
                crate::world::spawn(async move {
                    let owner = format!("c{n}");
                    let order = ClaimRequest { owner: &owner, process: None, ttl: LONG, root: None, limits, without: &[] };
                    let mut mine = Vec::new();
                    for _ in 0..4 {
                        mine.extend(store.effect_claim_within(&order).await.unwrap());
                    }
                    mine
                })
            })
            .collect();
        let mut all = Vec::new();
        for claimant in claimants {
            all.extend(claimant.await.unwrap());
        }
        assert_eq!(all.len(), 3);
        let order = ClaimRequest { owner: "late", process: None, ttl: LONG, root: None, limits, without: &[] };
        store.effect_defer(&all[0], LONG).await.unwrap();
        assert!(store.effect_claim_within(&order).await.unwrap().is_some(), "one place is free again");
        assert!(store.effect_claim_within(&order).await.unwrap().is_none());
        let per_project = PhaseLimits { store: None, project: Some(3) };
        let order = ClaimRequest { limits: per_project, ..order };
        assert!(store.effect_claim_within(&order).await.unwrap().is_none(), "all are of one project");
        let other = free(&store).await;
        let order = ClaimRequest { root: Some(&other.id), limits: PhaseLimits::default(), ..order };
        assert_eq!(store.effect_claim_within(&order).await.unwrap().map(|claim| claim.plan), Some(other.id.clone()));
        assert_eq!(store.effect_claim_within(&order).await.unwrap(), None);
    }
}

on_both! {
    /// PERF-2: fails if a plan closer to landing waits behind a new one, or if of two at the same point the
    /// younger is first.
    async fn what_is_nearest_to_landing_is_claimed_first(world: World) {
        let store = world.open().await;
        let (first, second) = (free(&store).await, free(&store).await);
        let (lease, _) = queued(&store, "a").await;
        let (nearer, run) = started(&store, &lease).await;
        let done = Completion::Strategized { choices: Vec::new(), fanout: None };
        command(&store, &lease, Command::Complete(run, done)).await.unwrap();
        store.plan_lease_release(lease).await.unwrap();
        let mut claimed = Vec::new();
        while let Some(claim) = store.effect_claim("c", LONG).await.unwrap() {
            claimed.push(claim.plan);
        }
        assert_eq!(claimed, [nearer.id, first.id, second.id]);
    }
}

on_both! {
    /// BUG-1: fails if a returned effect counts as an attempt, or is not due immediately for others; or if an
    /// excluded project is claimed.
    async fn what_is_given_back_was_never_claimed(world: World) {
        let store = world.open().await;
        let plan = free(&store).await;
        let claim = store.effect_claim("lacks it", LONG).await.unwrap().unwrap();
        store.effect_give_back(&claim).await.unwrap();
        let without = [plan.spec.project.clone()];
        let limits = PhaseLimits::default();
        let order = ClaimRequest { owner: "b", process: None, ttl: LONG, root: None, limits, without: &without };
        assert_eq!(store.effect_claim_within(&order).await.unwrap(), None);
        let again = store.effect_claim("has it", LONG).await.unwrap().unwrap();
        assert_eq!((&again.plan, again.attempts), (&plan.id, 1));
        // Another worker has the claim now.
        store.effect_give_back(&claim).await.unwrap();
        assert_eq!(store.effect_claim("third", LONG).await.unwrap(), None);
    }
}
