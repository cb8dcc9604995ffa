//! Stored tokens: one valid token per name, identified by its digest alone, and invalid after it expires or
//! is revoked.

use drydock_domain::{IdPrefix, StoredEvent, Token, TokenId, TokenKind, TokenRole, TokenState};
use drydock_store::{EventFilter, NewSession, PrefixMatch, Store, TokenAdded, TokenInsert};

use crate::world::{BRIEF, LONG, plan_id, random, run_id};

fn new(name: &str, role: TokenRole) -> TokenInsert {
    let (id, digest) = (TokenId::from_random(random()), "ab".repeat(32));
    TokenInsert {
        id,
        digest,
        name: name.parse().unwrap(),
        role,
        kind: TokenKind::Bearer,
        life: None,
        made_by: None,
    }
}

fn link(name: &str, made_by: Option<&TokenId>) -> TokenInsert {
    let made_by = made_by.cloned();
    TokenInsert { kind: TokenKind::Link, life: Some(LONG), made_by, ..new(name, TokenRole::Human) }
}

fn session() -> NewSession {
    NewSession { id: TokenId::from_random(random()), digest: "cd".repeat(32), life: LONG }
}

async fn add(store: &Store, new: TokenInsert) -> Token {
    match store.token_add(new).await.unwrap() {
        TokenAdded::Kept(token) => token,
        refused => panic!("{refused:?}"),
    }
}

async fn state(store: &Store, id: &TokenId) -> TokenState {
    store.token_fetch(id).await.unwrap().unwrap().token.state
}

on_both! {
    /// Fails if a token is read back differently, or with a role that lacks its run or has a foreign one.
    async fn a_token_reads_back_as_it_was_made(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let agent = TokenRole::Agent { plan: plan_id(), run: run_id() };
        for (name, role) in [("a", TokenRole::Human), ("b", TokenRole::Operator), ("c", agent), ("d", TokenRole::Reader)] {
            let new = new(name, role.clone());
            let made = add(&store, new.clone()).await;
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
    /// Fails if two valid tokens have the same name, or if the name of a revoked token is never free again.
    async fn a_name_has_one_token_that_is_not_revoked(world: World) {
        let store = world.open().await;
        let first = add(&store, new("laptop", TokenRole::Human)).await;
        assert_eq!(store.token_add(new("laptop", TokenRole::Reader)).await.unwrap(), TokenAdded::NameTaken);
        let revoked = store.token_revoke(&first.id).await.unwrap().unwrap().token;
        assert_eq!((revoked.state, revoked.revoked_at.is_some()), (TokenState::Revoked, true));
        // A second revocation changes nothing, including the time.
        assert_eq!(store.token_revoke(&first.id).await.unwrap().unwrap().token, revoked);
        add(&store, new("laptop", TokenRole::Reader)).await;
        assert_eq!(store.token_revoke(&TokenId::from_random(random())).await.unwrap(), None);
        let prefix = IdPrefix::parse(first.id.as_str(), TokenId::PREFIX, "token").unwrap();
        assert!(matches!(store.token_find(&prefix).await.unwrap(), PrefixMatch::One(token) if token.id == first.id));
    }
}

on_both! {
    /// Fails if a token is valid after its expiry, or invalid before it.
    async fn a_token_is_over_when_its_time_is(world: World) {
        let store = world.open().await;
        let (brief, long) = (new("brief", TokenRole::Human), new("long", TokenRole::Human));
        store.token_add(TokenInsert { life: Some(BRIEF), ..brief.clone() }).await.unwrap();
        let made = add(&store, TokenInsert { life: Some(LONG), ..long.clone() }).await;
        assert!(made.expires_at > Some(made.created_at));
        while state(&store, &brief.id).await == TokenState::Valid {
            tokio::task::yield_now().await;
        }
        assert_eq!(state(&store, &brief.id).await, TokenState::Expired);
        assert_eq!(state(&store, &long.id).await, TokenState::Valid);
    }
}

on_both! {
    /// Fails if the use of a token is not recorded, or if every use causes a write.
    async fn a_use_is_noted_and_then_not_for_a_while(world: World) {
        let store = world.open().await;
        let made = add(&store, new("laptop", TokenRole::Human)).await;
        assert!(store.token_fetch(&made.id).await.unwrap().unwrap().use_due);
        store.token_used(&made.id).await.unwrap();
        let kept = store.token_fetch(&made.id).await.unwrap().unwrap();
        assert!(kept.token.last_used_at >= Some(made.created_at) && !kept.use_due);
        world.meddle("UPDATE tokens SET last_used_at = 1");
        assert!(store.token_fetch(&made.id).await.unwrap().unwrap().use_due);
    }
}

on_both! {
    /// Fails if a link signs in two browsers, works after its expiry, or if another token is accepted as a
    /// link.
    async fn a_link_is_used_once_and_in_time(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let (good, brief) = (link("good", None), TokenInsert { life: Some(BRIEF), ..link("brief", None) });
        for one in [&good, &brief] {
            add(&store, one.clone()).await;
        }
        let (one, two) = (session(), session());
        let both = tokio::join!(store.token_redeem(&good.id, one.clone()), other.token_redeem(&good.id, two.clone()));
        let got: Vec<_> = [both.0.unwrap(), both.1.unwrap()].into_iter().flatten().collect();
        assert_eq!(got.len(), 1, "{got:?}");
        assert!([&one.id, &two.id].contains(&&got[0].id));
        assert_eq!((got[0].kind, got[0].name.as_str()), (TokenKind::Session, "good"));
        assert_eq!(store.token_fetch(&good.id).await.unwrap(), None, "the link is gone");
        while state(&store, &brief.id).await == TokenState::Valid {
            tokio::time::sleep(BRIEF / 4).await;
        }
        assert_eq!(store.token_redeem(&brief.id, session()).await.unwrap(), None);
        let bearer = add(&store, new("bearer", TokenRole::Human)).await;
        assert_eq!(store.token_redeem(&bearer.id, session()).await.unwrap(), None);
        store.token_prune(LONG).await.unwrap();
        let left: Vec<_> = other.token_list().await.unwrap().into_iter().map(|token| token.name.to_string()).collect();
        assert_eq!(left, ["good", "bearer"]);
    }
}

on_both! {
    /// Fails if a link or session created with a revoked token stays valid, or if an unrelated session is
    /// ended.
    async fn sessions_and_links_end_with_the_token_that_made_them(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let (lost, kept) = (add(&store, new("lost", TokenRole::Human)).await, add(&store, new("kept", TokenRole::Human)).await);
        let mut sessions = Vec::new();
        let mut maker = lost.id.clone();
        // A session also creates a link, which starts another session.
        for name in ["first", "second", "third"] {
            let made = add(&store, link(name, Some(&maker))).await;
            let began = store.token_redeem(&made.id, session()).await.unwrap().unwrap();
            assert_eq!(began.made_by, Some(maker));
            maker = began.id.clone();
            sessions.push(began.id);
        }
        let unopened = add(&store, link("unopened", Some(&lost.id))).await;
        let others = [add(&store, link("theirs", Some(&kept.id))).await, add(&store, link("nobodys", None)).await];
        let revoked = other.token_revoke(&lost.id).await.unwrap().unwrap();
        assert_eq!((revoked.token.state, revoked.sessions_ended), (TokenState::Revoked, 3));
        for ended in sessions.iter().chain([&unopened.id]) {
            assert_eq!(state(&store, ended).await, TokenState::Revoked);
        }
        assert_eq!(store.token_redeem(&unopened.id, session()).await.unwrap(), None);
        let late = store.token_add(link("late", Some(&lost.id))).await.unwrap();
        assert_eq!(late, TokenAdded::MakerEnded);
        assert_eq!(other.token_revoke(&lost.id).await.unwrap().unwrap().sessions_ended, 0, "they ended before");
        for one in others {
            assert!(store.token_redeem(&one.id, session()).await.unwrap().is_some());
        }
        // A server that revokes its own machine token ends no session.
        store.token_end(&kept.id).await.unwrap().unwrap();
        let valid = store.token_list().await.unwrap().into_iter().filter(|token| token.state == TokenState::Valid);
        assert_eq!(valid.map(|token| token.name.to_string()).collect::<Vec<_>>(), ["theirs", "nobodys"]);
    }
}

on_both! {
    /// F6. Fails if a token outlives the token that created it, or if no alert is raised.
    async fn a_token_ends_with_the_one_that_made_it(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let below = |name: &str, maker: &Token, life| {
            TokenInsert { life, made_by: Some(maker.id.clone()), ..new(name, TokenRole::Human) }
        };
        let first = add(&store, TokenInsert { life: Some(LONG), ..new("first", TokenRole::Human) }).await;
        let second = add(&store, below("second", &first, None)).await;
        let third = add(&store, below("third", &second, Some(LONG / 2))).await;
        assert_eq!((&second.made_by, &third.made_by), (&Some(first.id.clone()), &Some(second.id.clone())));
        assert_eq!(second.expires_at, first.expires_at, "without a life of its own it has its maker's");
        assert!(third.expires_at < second.expires_at);
        for (maker, life) in [(&first, LONG * 2), (&second, LONG), (&third, LONG)] {
            let refused = other.token_add(below("late", maker, Some(life))).await.unwrap();
            assert!(matches!(refused, TokenAdded::Outlives(left) if left <= LONG), "{refused:?}");
        }
        assert_eq!(store.token_add(below("third", &first, None)).await.unwrap(), TokenAdded::NameTaken);
        let filter = EventFilter { after: 0, plan: None, limit: 100 };
        let seen: Vec<_> = other.event_list(&filter).await.unwrap();
        let named = |event: &StoredEvent| (event.kind.clone(), event.details["token"].clone(), event.details["made_by"].clone());
        let alert = |token: &Token, maker: &Token| ("alert".to_owned(), token.id.as_str().into(), maker.id.as_str().into());
        assert_eq!(seen.iter().map(named).collect::<Vec<_>>(), [alert(&second, &first), alert(&third, &second)]);
        let text = seen[0].details["text"].to_string();
        assert!(text.contains("second") && text.contains("first"), "{text}");
        let alone = add(&store, new("alone", TokenRole::Human)).await;
        let revoked = other.token_revoke(&first.id).await.unwrap().unwrap();
        assert_eq!((revoked.tokens_ended, revoked.sessions_ended), (2, 0));
        for (token, expected) in [(&second, TokenState::Revoked), (&third, TokenState::Revoked), (&alone, TokenState::Valid)] {
            assert_eq!(state(&store, &token.id).await, expected, "{}", token.name);
        }
        assert_eq!(store.token_add(below("later", &third, None)).await.unwrap(), TokenAdded::MakerEnded);
        let brief = add(&store, TokenInsert { life: Some(BRIEF), ..new("brief", TokenRole::Human) }).await;
        while state(&store, &brief.id).await == TokenState::Valid {
            tokio::time::sleep(BRIEF / 4).await;
        }
        assert_eq!(store.token_add(below("later", &brief, None)).await.unwrap(), TokenAdded::MakerEnded);
    }
}

on_both! {
    /// F6. Breaks when tokens that were made with the token of a server outlive it, no one is alerted, or a browser is signed out.
    async fn a_token_that_is_ended_ends_the_tokens_below_and_no_session(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        let below = |name: &str, maker: &Token| TokenInsert { made_by: Some(maker.id.clone()), ..new(name, TokenRole::Human) };
        let machine = add(&store, TokenInsert { kind: TokenKind::Machine, ..new("machine", TokenRole::Human) }).await;
        let (first, alone) = (add(&store, below("first", &machine)).await, add(&store, new("alone", TokenRole::Human)).await);
        let second = add(&store, below("second", &first)).await;
        let (own, theirs) =
            (add(&store, link("own", Some(&machine.id))).await, add(&store, link("theirs", Some(&second.id))).await);
        let signed_in = store.token_redeem(&own.id, session()).await.unwrap().unwrap();
        let made = store.event_list(&EventFilter { after: 0, plan: None, limit: 100 }).await.unwrap().len();
        assert_eq!(other.token_end(&machine.id).await.unwrap().unwrap().state, TokenState::Revoked);
        for (token, expected) in [
            (&first, TokenState::Revoked),
            (&second, TokenState::Revoked),
            (&theirs, TokenState::Revoked),
            (&signed_in, TokenState::Valid),
            (&alone, TokenState::Valid),
        ] {
            assert_eq!(state(&store, &token.id).await, expected, "{}", token.name);
        }
        let seen = store.event_list(&EventFilter { after: 0, plan: None, limit: 100 }).await.unwrap();
        assert_eq!(seen.len(), made + 1, "{seen:?}");
        let alert = &seen[made];
        assert_eq!((alert.kind.as_str(), &alert.details["made_by"]), ("alert", &machine.id.as_str().into()));
        let ids = alert.details["tokens"].to_string();
        assert!(ids.contains(first.id.as_str()) && ids.contains(second.id.as_str()) && !ids.contains(theirs.id.as_str()), "{ids}");
        other.token_end(&machine.id).await.unwrap().unwrap();
        let again = store.event_list(&EventFilter { after: 0, plan: None, limit: 100 }).await.unwrap().len();
        assert_eq!(again, made + 1, "what ended before is not reported again");
    }
}

on_both! {
    /// Fails if a link that is created or opened concurrently with the revocation of its maker leaves a valid
    /// session.
    async fn no_session_slips_through_while_its_maker_is_taken_back(world: World) {
        let (store, other) = (world.open().await, world.open().await);
        for round in 0..40 {
            let maker = add(&store, new(&format!("maker-{round}"), TokenRole::Human)).await.id;
            let made = add(&store, link(&format!("made-{round}"), Some(&maker))).await.id;
            let (opened, late) = (session(), link(&format!("late-{round}"), Some(&maker)));
            let slipping = async {
                if let TokenAdded::Kept(link) = store.token_add(late).await.unwrap() {
                    store.token_redeem(&link.id, session()).await.unwrap();
                }
            };
            let (_, redeemed, revoked) =
                tokio::join!(slipping, store.token_redeem(&made, opened), other.token_revoke(&maker));
            assert!(revoked.unwrap().is_some());
            redeemed.unwrap();
            let left = store.token_list().await.unwrap().into_iter().filter(|token| token.state == TokenState::Valid);
            assert_eq!(left.map(|token| token.name.to_string()).collect::<Vec<_>>(), [""; 0], "round {round}");
        }
    }
}

on_both! {
    /// Fails if a session of an earlier version, which needed only the cookie, is still valid after the
    /// upgrade.
    async fn sessions_of_an_older_store_end_with_the_upgrade(world: World) {
        let store = world.open().await;
        let link = add(&store, link("me", None)).await;
        let session = store.token_redeem(&link.id, session()).await.unwrap().unwrap();
        let bearer = add(&store, new("bearer", TokenRole::Human)).await;
        drop(store);
        world.take_back_to(7);
        let store = world.open().await;
        assert_eq!(state(&store, &session.id).await, TokenState::Revoked);
        assert_eq!(state(&store, &bearer.id).await, TokenState::Valid);
    }
}
