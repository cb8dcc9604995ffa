//! Tokens as they are kept: one that counts for each name, known by its digest alone, and over when it is said to be.

use drydock_domain::{IdPrefix, Role, TokenId, TokenKind, TokenState};
use drydock_store::{Found, NewToken, Store};

use crate::world::{BRIEF, LONG, plan_id, random, run_id};

fn new(name: &str, role: Role) -> NewToken {
    let (id, digest) = (TokenId::from_random(random()), "ab".repeat(32));
    NewToken { id, digest, name: name.parse().unwrap(), role, kind: TokenKind::Bearer, life: None }
}

async fn state(store: &Store, id: &TokenId) -> TokenState {
    store.token_fetch(id).await.unwrap().unwrap().token.state
}

on_both! {
    /// Breaks when a token comes back as another one, or a role without its run, or with a run that it has not.
    async fn a_token_reads_back_as_it_was_made(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let agent = Role::Agent { plan: plan_id(), run: run_id() };
        for (name, role) in [("a", Role::Human), ("b", Role::Operator), ("c", agent), ("d", Role::Reader)] {
            let new = new(name, role.clone());
            let made = store.token_add(new.clone()).await.unwrap().unwrap();
            assert_eq!((&made.id, made.name.as_str(), &made.role, made.state), (&new.id, name, &role, TokenState::Valid));
            let kept = other.token_fetch(&new.id).await.unwrap().unwrap();
            assert_eq!((&kept.token, &kept.digest), (&made, &new.digest));
        }
        let names: Vec<_> = other.token_list().await.unwrap().into_iter().map(|token| token.name.to_string()).collect();
        assert_eq!(names, ["a", "b", "c", "d"]);
        world.meddle("UPDATE tokens SET run = 'run-0000000000000000' WHERE name = 'a'");
        let found = other.token_list().await.unwrap_err().to_string();
        assert!(found.contains("human"), "{found}");
    }
}

on_both! {
    /// Breaks when two tokens that count are recorded under one name, or a name is never free again.
    async fn a_name_has_one_token_that_is_not_revoked(world: World) {
        let store = world.open().await;
        let first = store.token_add(new("laptop", Role::Human)).await.unwrap().unwrap();
        assert_eq!(store.token_add(new("laptop", Role::Reader)).await.unwrap(), None);
        let revoked = store.token_revoke(&first.id).await.unwrap().unwrap();
        assert_eq!((revoked.state, revoked.revoked_at.is_some()), (TokenState::Revoked, true));
        // Again it is as it was, the time included.
        assert_eq!(store.token_revoke(&first.id).await.unwrap(), Some(revoked));
        assert!(store.token_add(new("laptop", Role::Reader)).await.unwrap().is_some());
        assert_eq!(store.token_revoke(&TokenId::from_random(random())).await.unwrap(), None);
        let prefix = IdPrefix::parse(first.id.as_str(), TokenId::PREFIX, "token").unwrap();
        assert!(matches!(store.token_find(&prefix).await.unwrap(), Found::One(token) if token.id == first.id));
    }
}

on_both! {
    /// Breaks when a token outlives its time, or dies before it.
    async fn a_token_is_over_when_its_time_is(world: World) {
        let store = world.open().await;
        let (brief, long) = (new("brief", Role::Human), new("long", Role::Human));
        store.token_add(NewToken { life: Some(BRIEF), ..brief.clone() }).await.unwrap();
        let made = store.token_add(NewToken { life: Some(LONG), ..long.clone() }).await.unwrap().unwrap();
        assert!(made.expires_at > Some(made.created_at));
        while state(&store, &brief.id).await == TokenState::Valid {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&store, &brief.id).await, TokenState::Expired);
        assert_eq!(state(&store, &long.id).await, TokenState::Valid);
    }
}

on_both! {
    /// Breaks when nobody can see that a token is in use, or each use is a write.
    async fn a_use_is_noted_and_then_not_for_a_while(world: World) {
        let store = world.open().await;
        let made = store.token_add(new("laptop", Role::Human)).await.unwrap().unwrap();
        assert!(store.token_fetch(&made.id).await.unwrap().unwrap().use_due);
        store.token_used(&made.id).await.unwrap();
        let kept = store.token_fetch(&made.id).await.unwrap().unwrap();
        assert!(kept.token.last_used_at >= Some(made.created_at) && !kept.use_due);
        world.meddle("UPDATE tokens SET last_used_at = 1");
        assert!(store.token_fetch(&made.id).await.unwrap().unwrap().use_due);
    }
}

on_both! {
    /// Breaks when a link signs two browsers in, or one that came too late, or when another token is taken for a link.
    async fn a_link_is_used_once_and_in_time(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let link = |name: &str, life| NewToken { kind: TokenKind::Link, life: Some(life), ..new(name, Role::Human) };
        let (good, brief) = (link("good", LONG), link("brief", BRIEF));
        for one in [&good, &brief] {
            store.token_add(one.clone()).await.unwrap();
        }
        let both = tokio::join!(store.token_redeem(&good.id), other.token_redeem(&good.id));
        let got: Vec<_> = [both.0.unwrap(), both.1.unwrap()].into_iter().flatten().collect();
        assert_eq!(got.len(), 1, "{got:?}");
        assert_eq!((&got[0].id, got[0].kind), (&good.id, TokenKind::Link));
        while state(&store, &brief.id).await == TokenState::Valid {
            tokio::time::sleep(BRIEF / 4).await;
        }
        assert_eq!(store.token_redeem(&brief.id).await.unwrap(), None);
        let bearer = new("bearer", Role::Human);
        store.token_add(bearer.clone()).await.unwrap();
        assert_eq!(store.token_redeem(&bearer.id).await.unwrap(), None);
        store.token_prune(LONG).await.unwrap();
        let left: Vec<_> = other.token_list().await.unwrap().into_iter().map(|token| token.name.to_string()).collect();
        assert_eq!(left, ["bearer"]);
    }
}
