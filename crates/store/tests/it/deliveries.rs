//! Delivery state of hooks: one claim at a time, no event delivered twice under valid claims, and none
//! skipped.

use std::time::Duration;

use drydock_domain::Name;
use drydock_store::{ClaimStatus, Delivery, DeliveryOutcome, Store};

use crate::world::{BRIEF, LONG, events_total, queued};

const NONE: Duration = Duration::ZERO;

fn name() -> Name {
    "pager".parse().unwrap()
}

async fn seen(store: &Store) -> Delivery {
    store.delivery_fetch(&name()).await.unwrap().unwrap()
}

on_both! {
    /// Fails if a new hook receives old events, or if a known hook loses its position.
    async fn a_new_hook_begins_at_the_newest_event(world: World) {
        let store = world.open().await;
        queued(&store, "a").await;
        assert_eq!(store.delivery_fetch(&name()).await.unwrap(), None);
        store.delivery_begin(&[name()]).await.unwrap();
        assert_eq!(seen(&store).await.position, events_total(&store).await);
        let before = seen(&store).await;
        queued(&store, "b").await;
        store.delivery_begin(&[name(), "mail".parse().unwrap()]).await.unwrap();
        let all = store.delivery_list().await.unwrap();
        let places: Vec<_> = all.iter().map(|one| (one.hook.as_str(), one.position)).collect();
        assert_eq!(places, [("mail", events_total(&store).await), ("pager", before.position)]);
    }
}

on_both! {
    /// S2.3: fails if two processes can claim one hook at the same time, or if an outdated state allows a
    /// second delivery.
    async fn one_process_at_a_time_tells_a_hook(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        store.delivery_begin(&[name()]).await.unwrap();
        let stale = seen(&other).await;
        let claimants: Vec<_> = (0..8)
            .map(|n| {
                let (store, stale) = (if n % 2 == 0 { &store } else { &other }.clone(), stale.clone());
                crate::world::spawn(async move { store.delivery_claim(&stale, &format!("c{n}"), LONG).await.unwrap() })
            })
            .collect();
        let mut claims = Vec::new();
        for claimant in claimants {
            claims.extend(claimant.await.unwrap());
        }
        assert_eq!(claims.len(), 1, "{claims:?}");
        assert!(seen(&other).await.due_in > NONE, "others see that it is being told");
        assert_eq!(store.delivery_settle(&claims[0], DeliveryOutcome::Delivered(7)).await.unwrap(), ClaimStatus::Kept);
        assert_eq!(other.delivery_claim(&stale, "late", LONG).await.unwrap(), None);
        let after = seen(&other).await;
        assert_eq!((after.position, after.delivered, after.due_in), (7, 1, NONE));
        // A claim that has ended cannot be ended again.
        assert_eq!(store.delivery_settle(&claims[0], DeliveryOutcome::Delivered(8)).await.unwrap(), ClaimStatus::Lost);
        assert_eq!(seen(&store).await.position, 7);
    }
}

on_both! {
    /// Fails if the claim of a dead holder is never free again, or if the late holder can still end it.
    async fn a_claim_whose_holder_is_gone_comes_back(world: World) {
        let store = world.open().await;
        store.delivery_begin(&[name()]).await.unwrap();
        let first = seen(&store).await;
        let gone = store.delivery_claim(&first, "gone", BRIEF).await.unwrap().unwrap();
        let second = loop {
            if let Some(claim) = store.delivery_claim(&first, "next", LONG).await.unwrap() {
                break claim;
            }
        };
        assert_eq!(store.delivery_renew(&gone, LONG).await.unwrap(), ClaimStatus::Lost);
        assert_eq!(store.delivery_settle(&gone, DeliveryOutcome::CutShort).await.unwrap(), ClaimStatus::Lost);
        assert_eq!(store.delivery_renew(&second, LONG).await.unwrap(), ClaimStatus::Kept);
        assert_eq!(store.delivery_settle(&second, DeliveryOutcome::CutShort).await.unwrap(), ClaimStatus::Kept);
        assert_eq!(seen(&store).await, first, "a try that was cut short leaves no trace");
    }
}

on_both! {
    /// Fails if a failed attempt is not counted or is repeated immediately, or if an event that was given up
    /// blocks the next.
    async fn a_failed_try_is_counted_and_waits_and_one_given_up_is_passed(world: World) {
        let store = world.open().await;
        store.delivery_begin(&[name()]).await.unwrap();
        let claim = store.delivery_claim(&seen(&store).await, "a", LONG).await.unwrap().unwrap();
        let later = DeliveryOutcome::Later { error: "nobody is there".to_owned(), delay: LONG };
        assert_eq!(store.delivery_settle(&claim, later).await.unwrap(), ClaimStatus::Kept);
        let waits = seen(&store).await;
        assert_eq!((waits.attempts, waits.last_error.as_deref()), (1, Some("nobody is there")));
        assert!(waits.due_in > NONE);
        assert_eq!(store.delivery_claim(&waits, "a", LONG).await.unwrap(), None, "it is not due");
        world.meddle("UPDATE deliveries SET next_at = 0");
        let claim = store.delivery_claim(&waits, "a", LONG).await.unwrap().unwrap();
        assert_eq!(claim.attempts, 1);
        let given_up = DeliveryOutcome::GivenUp { seq: 3, error: "still nobody".to_owned() };
        assert_eq!(store.delivery_settle(&claim, given_up).await.unwrap(), ClaimStatus::Kept);
        let passed = seen(&store).await;
        assert_eq!((passed.position, passed.attempts, passed.failed, passed.delivered), (3, 0, 1, 0));
        assert_eq!((passed.due_in, passed.last_error.as_deref()), (NONE, Some("still nobody")));
        let claim = store.delivery_claim(&passed, "a", LONG).await.unwrap().unwrap();
        assert_eq!(store.delivery_settle(&claim, DeliveryOutcome::Delivered(4)).await.unwrap(), ClaimStatus::Kept);
        let told = seen(&store).await;
        assert_eq!((told.failed, told.delivered, told.last_error), (1, 1, None));
    }
}

on_both! {
    /// Fails if irrelevant events are skipped while another process holds the claim.
    async fn what_does_not_concern_a_hook_is_passed_only_while_nobody_tells_it(world: World) {
        let store = world.open().await;
        store.delivery_begin(&[name()]).await.unwrap();
        let first = seen(&store).await;
        store.delivery_pass(&first, 5).await.unwrap();
        store.delivery_pass(&first, 6).await.unwrap();
        let passed = seen(&store).await;
        assert_eq!(passed.position, 5, "the second look was stale");
        let claim = store.delivery_claim(&passed, "a", LONG).await.unwrap().unwrap();
        store.delivery_pass(&passed, 9).await.unwrap();
        assert_eq!(seen(&store).await.position, 5);
        assert_eq!(store.delivery_settle(&claim, DeliveryOutcome::Delivered(6)).await.unwrap(), ClaimStatus::Kept);
    }
}
