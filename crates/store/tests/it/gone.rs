//! Locks and claims of a dead process: all freed together, once, and no others.

use drydock_domain::{Holder, ProcessIdentity};
use drydock_store::{Acquired, ClaimRequest, HoldingProcess, PhaseLimits};

use crate::world::{LONG, free, holder, lease, project_lease, spawn};

fn process(pid: u32) -> ProcessIdentity {
    ProcessIdentity {
        boot: Some("b".to_owned()),
        pid_namespace: Some("pid:[1]".to_owned()),
        started: Some(9),
        ..ProcessIdentity::unproven("here", pid)
    }
}

fn by(pid: u32, owner: &str) -> Holder {
    Holder { process: process(pid), ..holder(owner) }
}

on_both! {
    /// S1.7: fails if the locks and claims of a dead process are not freed in one commit, if two concurrent
    /// calls count the same lock, or if a lock of another or a living process is freed too.
    async fn all_that_a_dead_process_held_is_freed_once(world: World) {
        let store = world.open().await;
        let (held, claimed, other) = (free(&store).await, free(&store).await, free(&store).await);
        let (dead, limits) = (process(7), PhaseLimits::default());
        let Acquired::Held(late) = store.plan_lease_acquire(&held.id, &by(7, "a"), LONG).await.unwrap() else {
            panic!("it is free");
        };
        let project = "boat".parse().unwrap();
        let Acquired::Held(_) = store.project_lease_acquire(&project, &by(7, "b"), LONG).await.unwrap() else {
            panic!("it is free");
        };
        let Acquired::Held(_) = store.plan_lease_acquire(&other.id, &by(8, "c"), LONG).await.unwrap() else {
            panic!("it is free");
        };
        let order = ClaimRequest { owner: "d", process: Some(&dead), ttl: LONG, root: None, limits, without: &[] };
        assert_eq!(store.effect_claim_within(&order).await.unwrap().unwrap().plan, claimed.id);
        assert_eq!(store.effect_claim("e", LONG).await.unwrap(), None);
        let holding = store.processes_holding().await.unwrap();
        let found = |process: &ProcessIdentity| holding.iter().find(|one| one.process == *process).cloned().unwrap();
        assert_eq!((found(&dead).locks.len(), found(&process(8)).locks.len()), (2, 1));
        let takers: Vec<_> = (0..6)
            .map(|_| {
                let (store, gone) = (store.clone(), found(&dead));
                spawn(async move { store.process_free(&gone).await.unwrap() })
            })
            .collect();
        let mut freed = 0;
        for taker in takers {
            freed += taker.await.unwrap();
        }
        assert_eq!(freed, 2);
        let plans = [store.effect_claim("e", LONG).await.unwrap(), store.effect_claim("e", LONG).await.unwrap()];
        assert_eq!(plans.map(|claim| claim.unwrap().plan), [held.id.clone(), claimed.id]);
        // A late call frees no lock that another process has acquired, and the dead process cannot commit.
        lease(&store, &held.id, "next").await;
        project_lease(&store, "boat", "next").await;
        assert_eq!(store.process_free(&HoldingProcess { process: dead, ..found(&process(7)) }).await.unwrap(), 0);
        assert_eq!(store.lock_list().await.unwrap().len(), 3);
        assert!(store.event_append(&late, &late.batch(Vec::new())).await.is_err());
    }
}
