//! Leases: one holder, a fence that only grows, and no write without both.

use std::collections::BTreeSet;

use drydock_domain::{Answer, Command, Event, IdPrefix, LockScope};
use drydock_store::{
    Acquired, CommitError, CrashPoint, EventFilter, Options, PrefixMatch, RecordError, Renewed,
};

use crate::world::{
    BRIEF, LONG, changeset_id, command, deciding, events_total, expired, fail_and_ask, holder, lease, now,
    plan_id, processing, project_lease, queued, run_id, start,
};

on_both! {
    /// S1.6: fails if two owners can hold one lock, or if the loser does not learn the holder.
    async fn one_of_many_acquires_and_the_others_learn_who(world: World) {
        let store = world.open().await;
        let plan = plan_id();
        let tries = (0..16).map(|n| {
            let (store, plan) = (store.clone(), plan.clone());
            crate::world::spawn(async move {
                (n, store.plan_lease_acquire(&plan, &holder(&format!("owner-{n}")), LONG).await.unwrap())
            })
        });
        let (mut held, mut named) = (Vec::new(), BTreeSet::new());
        for one in tries.collect::<Vec<_>>() {
            match one.await.unwrap() {
                (n, Acquired::Held(_)) => held.push(format!("owner-{n}")),
                (_, Acquired::Busy(lock)) => drop(named.insert(lock.holder.owner)),
            }
        }
        assert_eq!((held.len(), named.into_iter().collect::<Vec<_>>()), (1, held));
    }
}

on_both! {
    /// S1.7: fails if acquiring an expired lock is not one atomic statement.
    async fn an_expired_lock_is_taken_over_by_exactly_one(world: World) {
        let store = world.open().await;
        for round in 0..5 {
            let plan = plan_id();
            assert!(matches!(store.plan_lease_acquire(&plan, &holder("first"), BRIEF).await, Ok(Acquired::Held(_))));
            expired(&store, plan.as_str()).await;
            assert_eq!(store.counts().await.unwrap().stale_locks, 1);
            let takers: Vec<_> = (0..16)
                .map(|n| {
                    let (store, plan) = (store.clone(), plan.clone());
                    crate::world::spawn(async move {
                        store.plan_lease_acquire(&plan, &holder(&format!("taker-{n}")), LONG).await.unwrap()
                    })
                })
                .collect();
            let mut fences = Vec::new();
            for taker in takers {
                if let Acquired::Held(lease) = taker.await.unwrap() {
                    fences.push(lease.fence().0);
                }
            }
            assert_eq!(fences, [2], "round {round}");
            assert_eq!(store.counts().await.unwrap().stale_locks, 0);
        }
    }
}

on_both! {
    /// Fails if a release resets the fence, or if an owner's second acquisition leaves its first lease valid.
    async fn the_fence_only_ever_grows(world: World) {
        let store = world.open().await;
        let plan = plan_id();
        let first = lease(&store, &plan, "a").await;
        let again = lease(&store, &plan, "a").await;
        assert_eq!((first.fence().0, again.fence().0), (1, 2));
        assert_eq!(store.plan_lease_renew(&first, LONG).await.unwrap(), Renewed::Lost);
        store.plan_lease_release(first).await.unwrap();
        assert_eq!(store.lock_list().await.unwrap().len(), 1, "a lost lease must not free its successor's lock");
        store.plan_lease_release(again).await.unwrap();
        assert_eq!(store.lock_list().await.unwrap(), []);
        assert_eq!(lease(&store, &plan, "b").await.fence().0, 3);
    }
}

on_both! {
    /// S1.1, S1.6: fails if a transition with its own lock takes the lock from its holder, leaves it held, or
    /// leaves an earlier lease valid; for accepted commands, refusals, and refusals with events.
    async fn a_transition_alone_finds_the_lock_free_and_leaves_it_free(world: World) {
        let store = world.open().await;
        let (held, plan) = queued(&store, "a").await;
        let run = run_id();
        let alone = |command| store.plan_transact_locking(&plan.id, &holder("b"), LONG, deciding(command));
        let Acquired::Busy(lock) = alone(start(&run)).await.unwrap() else { panic!("somebody holds it") };
        assert_eq!((lock.holder.owner.as_str(), store.plan_fetch(&plan.id).await.unwrap()), ("a", Some(plan.clone())));
        store.plan_lease_release(held).await.unwrap();
        let Acquired::Held(started) = alone(start(&run)).await.unwrap() else { panic!("it was free") };
        assert_eq!(started.plan.run, Some(run.clone()));
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap(), Some(started.plan));
        assert_eq!(store.lock_list().await.unwrap(), []);
        assert!(matches!(alone(start(&run_id())).await, Err(CommitError::Refused(_))));
        assert_eq!(store.lock_list().await.unwrap(), []);
        let Acquired::Held(asking) = alone(fail_and_ask(&run)).await.unwrap() else { panic!("it was free") };
        let decision = asking.plan.pending_decision().unwrap().clone();
        let events = events_total(&store).await;
        let answer = Answer { decision, option: "none of these".to_owned(), note: None };
        assert!(matches!(alone(Command::Resolve(answer)).await, Err(CommitError::Refused(_))));
        assert_eq!((store.lock_list().await.unwrap(), events_total(&store).await), (vec![], events + 1));
        // Two transitions were committed, and so were the events of the refusal.
        assert_eq!(lease(&store, &plan.id, "c").await.fence().0, 5);
    }
}

on_both! {
    /// S0.1: fails if a fault in a transition with its own lock leaves the lock held or a part of the
    /// transition.
    async fn a_fault_in_a_transition_alone_leaves_nothing(world: World) {
        let sound = world.open().await;
        let (held, plan) = queued(&sound, "a").await;
        sound.plan_lease_release(held).await.unwrap();
        let before = world.observe(&plan.id);
        for point in CrashPoint::all().into_iter().filter(|point| *point != CrashPoint::AfterCommit) {
            let store = world.open_with(Options { fail_at: Some(point), ..Options::new(now) }).await;
            let failed = store.plan_transact_locking(&plan.id, &holder("b"), LONG, deciding(start(&run_id()))).await;
            assert!(failed.is_err(), "{point:?}");
            assert_eq!((world.observe(&plan.id), sound.lock_list().await.unwrap()), (before.clone(), vec![]), "{point:?}");
        }
    }
}

on_both! {
    /// S1.3: fails if any write under a lease does not compare the fence.
    async fn a_lost_lease_can_do_nothing(world: World) {
        let store = world.open().await;
        let (lost, plan, run) = processing(&store, "a").await;
        let handle = store.changeset_open(&lost, &run, "w", changeset_id()).await.unwrap();
        let other = store.changeset_open(&lost, &run, "w", changeset_id()).await.unwrap();
        let before = world.observe(&plan.id);
        let lock = store.lock_list().await.unwrap().remove(0);
        assert!(store.lock_break(&lock.id, "stuck", "tester").await.unwrap().is_some());
        // The same owner again: only the fence distinguishes its two leases.
        let _successor = lease(&store, &plan.id, "a").await;

        let spoil = |error: CommitError| assert!(matches!(error, CommitError::LeaseLost { .. }), "{error:?}");
        spoil(command(&store, &lost, crate::world::fail_and_ask(&run)).await.unwrap_err());
        spoil(store.event_append(&lost, &lost.batch(vec![Event::Resumed])).await.unwrap_err());
        spoil(store.changeset_open(&lost, &run, "w", changeset_id()).await.unwrap_err());
        assert!(matches!(store.changeset_record(&handle, vec![]).await, Err(RecordError::LeaseLost { .. })));
        assert!(matches!(store.changeset_seal(other).await, Err(RecordError::LeaseLost { .. })));
        assert_eq!(store.plan_lease_renew(&lost, LONG).await.unwrap(), Renewed::Lost);
        let after = world.observe(&plan.id);
        assert_eq!(after.replace("lock.broken|2\n", ""), before);
    }
}

on_both! {
    /// S1.3: fails if a lease ends only by another acquisition, and not by time alone.
    async fn an_expired_lease_cannot_commit_even_when_nobody_took_it_over(world: World) {
        let store = world.open().await;
        let (long, plan) = queued(&store, "a").await;
        store.plan_lease_release(long).await.unwrap();
        let Acquired::Held(brief) = store.plan_lease_acquire(&plan.id, &holder("a"), BRIEF).await.unwrap() else {
            panic!("it was free");
        };
        expired(&store, plan.id.as_str()).await;
        let refused = command(&store, &brief, start(&run_id())).await.unwrap_err();
        assert!(matches!(refused, CommitError::LeaseLost { .. }), "{refused:?}");
        assert_eq!(store.plan_lease_renew(&brief, LONG).await.unwrap(), Renewed::Lost);
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap(), Some(plan));
    }
}

on_both! {
    /// S1.3: fails if a renewal does not extend the lease.
    async fn a_renewed_lease_lasts_longer(world: World) {
        let store = world.open().await;
        let plan = plan_id();
        let short = std::time::Duration::from_secs(60);
        let Acquired::Held(lease) = store.plan_lease_acquire(&plan, &holder("a"), short).await.unwrap() else {
            panic!("it was free");
        };
        let first = store.lock_list().await.unwrap()[0].expires_at;
        let Renewed::Until(end) = store.plan_lease_renew(&lease, LONG).await.unwrap() else { panic!("lost") };
        assert!(end.as_micros() > first.as_micros() + 500_000_000);
        let project = project_lease(&store, "boat", "a").await;
        assert!(matches!(store.project_lease_renew(&project, LONG).await.unwrap(), Renewed::Until(_)));
        store.project_lease_release(project).await.unwrap();
    }
}

on_both! {
    /// S1.5: fails if a shutdown leaves a lock held, or releases another process's lock.
    async fn a_process_lets_go_of_all_its_own_at_once(world: World) {
        let store = world.open().await;
        for n in 0..3 {
            let _mine = lease(&store, &plan_id(), &format!("mine-%_-{n}")).await;
        }
        let _project = project_lease(&store, "boat", "mine-%_-p").await;
        let _theirs = lease(&store, &plan_id(), "mine-xx-0").await;
        assert_eq!(store.leases_release_all("mine-%_-").await.unwrap(), 4);
        let left: Vec<_> = store.lock_list().await.unwrap().into_iter().map(|lock| lock.holder.owner).collect();
        assert_eq!(left, ["mine-xx-0"]);
    }
}

on_both! {
    /// Fails if breaking a lock emits no event, or if a broken lock is not free.
    async fn a_broken_lock_is_free_and_the_feed_says_so(world: World) {
        let store = world.open().await;
        let (_lease, plan) = queued(&store, "a").await;
        let _project = project_lease(&store, "boat", "a").await;
        let locks = store.lock_list().await.unwrap();
        assert_eq!(locks.len(), 2);
        for lock in &locks {
            let prefix = IdPrefix::parse(&lock.id.as_str()[..12], "lck", "lock").unwrap();
            assert_eq!(store.lock_find(&prefix).await.unwrap(), PrefixMatch::One(lock.clone()));
            assert_eq!(store.lock_break(&lock.id, "stuck", "ann").await.unwrap().as_ref(), Some(lock));
            assert_eq!(store.lock_break(&lock.id, "stuck", "ann").await.unwrap(), None);
            assert_eq!(store.lock_find(&prefix).await.unwrap(), PrefixMatch::None);
        }
        let events = store.event_list(&EventFilter { after: 0, plan: None, limit: 100 }).await.unwrap();
        let broken: Vec<_> = events.into_iter().filter(|event| event.kind == "lock.broken").collect();
        assert_eq!(broken.len(), 2);
        for event in broken {
            let of_plan = event.details["scope"] == LockScope::Plan.name();
            assert_eq!(event.plan, of_plan.then(|| plan.id.clone()));
            assert_eq!(event.revision, of_plan.then_some(1));
            assert_eq!((&event.details["by"], &event.details["reason"]), (&"ann".into(), &"stuck".into()));
        }
        assert_eq!(lease(&store, &plan.id, "b").await.fence().0, 3);
    }
}
