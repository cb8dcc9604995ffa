//! Idempotency keys: one caller performs a request, once, and all repeated requests get the same response.

use std::time::Duration;

use drydock_store::{IdempotentRequest, KeyState, Store, StoredResponse};

use crate::world::{BRIEF, LONG};

fn request(owner: &str, fingerprint: &str) -> IdempotentRequest {
    let seed = u128::from_str_radix("f".repeat(32).as_str(), 16).unwrap() - owner.len() as u128;
    IdempotentRequest {
        key: "k".to_owned(),
        fingerprint: fingerprint.to_owned(),
        seed,
        owner: owner.to_owned(),
    }
}

async fn claim(store: &Store, owner: &str) -> KeyState {
    store.idempotency_claim(request(owner, "same"), LONG, LONG).await.unwrap()
}

fn made() -> StoredResponse {
    StoredResponse { status: 201, media: "application/json".to_owned(), body: "{\"é\":1}".to_owned() }
}

on_both! {
    /// S2.3: fails if two callers can perform one request, or if a repeated request gets another response.
    async fn of_many_who_ask_one_carries_it_out_and_all_get_its_answer(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let askers: Vec<_> = (0..8)
            .map(|n| {
                let store = if n % 2 == 0 { &store } else { &other }.clone();
                crate::world::spawn(async move { claim(&store, &format!("asker {n}")).await })
            })
            .collect();
        let mut mine = Vec::new();
        for asker in askers {
            match asker.await.unwrap() {
                KeyState::New(claim) => mine.push(claim),
                keyed => assert_eq!(keyed, KeyState::UnderWay),
            }
        }
        assert_eq!(mine.len(), 1);
        store.idempotency_keep(mine.remove(0), made()).await.unwrap();
        for store in [&store, &other] {
            assert_eq!(claim(store, "later").await, KeyState::Answered(made()));
        }
        assert_eq!(other.idempotency_claim(request("x", "another"), LONG, LONG).await.unwrap(), KeyState::Taken);
    }
}

on_both! {
    /// Fails if a request with unknown outcome looks like a new one, or loses its original seed.
    async fn a_request_that_was_cut_short_is_known_as_such(world: World) {
        let store = world.open().await;
        let first = request("first", "same");
        let KeyState::New(gone) = store.idempotency_claim(first.clone(), BRIEF, LONG).await.unwrap() else { panic!("new") };
        let second = loop {
            match claim(&store, "second asker").await {
                KeyState::CutShort(claim) => break claim,
                keyed => assert_eq!(keyed, KeyState::UnderWay),
            }
        };
        assert_eq!(second.seed, first.seed);
        assert_eq!(claim(&store, "third").await, KeyState::UnderWay, "one at a time looks after it");
        store.idempotency_keep(gone, made()).await.unwrap();
        assert_eq!(claim(&store, "third").await, KeyState::UnderWay, "who comes back late settles nothing");
        store.idempotency_renew(&second, LONG).await.unwrap();
        store.idempotency_abandon(second).await.unwrap();
        assert!(matches!(claim(&store, "third").await, KeyState::CutShort(_)));
    }
}

on_both! {
    /// Fails if a request that changed nothing cannot be sent again, or if an old key is kept forever.
    async fn what_changed_nothing_and_what_is_old_is_forgotten(world: World) {
        let store = world.open().await;
        let KeyState::New(refused) = claim(&store, "a").await else { panic!("new") };
        store.idempotency_forget(refused).await.unwrap();
        let KeyState::New(again) = claim(&store, "b").await else { panic!("new again") };
        store.idempotency_keep(again, made()).await.unwrap();
        assert_eq!(store.answers_expire().await.unwrap(), 0);
        world.meddle("UPDATE answers SET expires_at = 1");
        assert_eq!(store.answers_expire().await.unwrap(), 1);
        assert_eq!(world.query("SELECT count(*) FROM answers"), "0");
        let brief = store.idempotency_claim(request("c", "same"), LONG, Duration::ZERO).await.unwrap();
        assert!(matches!(brief, KeyState::New(_)));
        assert!(matches!(claim(&store, "d").await, KeyState::New(_)), "its time was over at once");
    }
}
