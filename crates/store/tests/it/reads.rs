//! Lists, pages, and lookup by id prefix.

use std::collections::BTreeMap;

use drydock_domain::{DecisionStatus, IdPrefix, Phase, State};
use drydock_store::{DecisionFilter, PlanFilter, PrefixMatch};

use crate::world::{command, fail_and_ask, processing, queued, queued_as, spec, started};

on_both! {
    /// S2.1: fails if a filter, the order or the cursor is wrong.
    async fn plans_are_listed_newest_first_in_pages(world: World) {
        let store = world.open().await;
        let mut ids = Vec::new();
        for n in 0..7 {
            let (project, action) = (if n % 2 == 0 { "boat" } else { "canoe" }, if n < 3 { "fix" } else { "paint" });
            ids.push(queued_as(&store, "a", spec(project, action)).await.1.id);
        }
        ids.reverse();
        let (_lease, busy, _) = processing(&store, "b").await;
        let ids_of = |page: drydock_store::Page<drydock_domain::Plan>| {
            (page.items.into_iter().map(|plan| plan.id).collect::<Vec<_>>(), page.next)
        };
        let mut filter = PlanFilter { limit: 3, state: Some(State::Queued), ..PlanFilter::default() };
        let mut seen = Vec::new();
        loop {
            let (page, next) = ids_of(store.plan_list(&filter).await.unwrap());
            assert!(page.len() <= 3);
            seen.extend(page);
            match next {
                Some(cursor) => filter.after = Some(cursor),
                None => break,
            }
        }
        assert_eq!(seen, ids);
        let only = async |filter: PlanFilter| ids_of(store.plan_list(&filter).await.unwrap()).0;
        let base = PlanFilter::default;
        assert_eq!(only(PlanFilter { state: Some(State::Processing), ..base() }).await, [busy.id]);
        let canoes: Vec<_> = ids.iter().skip(1).step_by(2).cloned().collect();
        assert_eq!(only(PlanFilter { project: Some("canoe".parse().unwrap()), ..base() }).await, canoes);
        assert_eq!(only(PlanFilter { action: Some("paint".parse().unwrap()), ..base() }).await, ids[..4]);
        assert_eq!(only(PlanFilter { phase: Some(Phase::Execute), ..base() }).await, []);
        let both = PlanFilter { action: Some("paint".parse().unwrap()), project: Some("canoe".parse().unwrap()), ..base() };
        assert_eq!(only(both).await, canoes[..2]);
        let counts = store.counts().await.unwrap();
        assert_eq!((counts.plans["queued"], counts.plans["processing"], counts.locks), (7, 1, 8));
    }
}

on_both! {
    /// Fails if a plan is not found by prefixes of its words, in any case and order; if a search drops
    /// another filter; or if a migrated store does not find its existing plans.
    async fn plans_are_found_by_the_beginnings_of_their_words(world: World) {
        let store = world.open().await;
        let mut ids = Vec::new();
        for (project, task) in [
            ("boat", "Make the Parser accept trailing commas in src/list_reader.rs"),
            ("canoe", "Repair the parser's error texts (issue #41)"),
            ("boat", "Größe und Länge in Zoll angeben"),
            ("boat", "it's 100% \"quoted\": a AND b NEAR(c) * & | ! <-> \\"),
        ] {
            let spec = drydock_domain::PlanSpec { task: task.to_owned(), ..spec(project, "fix") };
            ids.push(queued_as(&store, "a", spec).await.1.id);
        }
        let found = async |store: &drydock_store::Store, text: &str, project: Option<&str>| -> Vec<usize> {
            let project = project.map(|name| name.parse().unwrap());
            let filter = PlanFilter { text: Some(text.to_owned()), project, ..PlanFilter::default() };
            let page = store.plan_list(&filter).await.unwrap_or_else(|error| panic!("{text:?}: {error}"));
            page.items.iter().map(|plan| ids.iter().position(|id| *id == plan.id).unwrap()).collect()
        };
        let all = async |store: &drydock_store::Store| {
            for (text, expected) in [
                ("parser", vec![1, 0]),
                ("PARS", vec![1, 0]),
                ("commas parser", vec![0]),
                ("list reader", vec![0]),
                ("41", vec![1]),
                ("größe", vec![2]),
                ("LÄNG", vec![2]),
                ("quoted 100", vec![3]),
                ("near and", vec![3]),
                ("canoe fix", vec![1]),
                ("omma", vec![]),
                ("parser nowhere", vec![]),
                ("?!*", vec![]),
                ("\"", vec![]),
                ("it's", vec![3]),
            ] {
                assert_eq!(found(store, text, None).await, expected, "{text:?}");
            }
            assert_eq!(found(store, ids[2].as_str(), None).await, [2]);
            assert_eq!(found(store, "parser", Some("boat")).await, [0]);
        };
        all(&store).await;
        let mut filter = PlanFilter { text: Some("fix".to_owned()), limit: 3, ..PlanFilter::default() };
        filter.after = store.plan_list(&filter).await.unwrap().next;
        let rest = store.plan_list(&filter).await.unwrap();
        assert_eq!((rest.items.len(), rest.items[0].id.clone(), rest.next), (1, ids[0].clone(), None));
        drop(store);
        world.take_back_to(6);
        all(&world.open().await).await;
    }
}

on_both! {
    /// Fails if a prefix does not find its plan, or if an ambiguous one returns any of the matches.
    async fn the_beginning_of_an_id_finds_one_none_or_names_several(world: World) {
        let store = world.open().await;
        let mut ids = Vec::new();
        for _ in 0..60 {
            ids.push(queued_as(&store, "a", spec("boat", "fix")).await.1.id);
        }
        for id in &ids {
            let full = IdPrefix::parse(id.as_str(), "pln", "plan").unwrap();
            assert!(matches!(store.plan_find(&full).await.unwrap(), PrefixMatch::One(plan) if plan.id == *id));
            let short = IdPrefix::parse(&id.as_str()[4..5], "pln", "plan").unwrap();
            let alike: Vec<_> = ids.iter().filter(|other| other.as_str()[..5] == id.as_str()[..5]).collect();
            match store.plan_find(&short).await.unwrap() {
                PrefixMatch::One(plan) => assert_eq!(alike, [&plan.id]),
                PrefixMatch::None => panic!("{id} was not found"),
                PrefixMatch::Many(named) => {
                    assert_eq!(named.len(), alike.len().min(5));
                    assert!(named.iter().all(|name| alike.iter().any(|id| id.as_str() == name)));
                }
            }
        }
        let nobody = (b'0'..=b'9').map(char::from).find(|c| ids.iter().all(|id| !id.as_str()[4..].starts_with(&format!("{c}{c}{c}"))));
        let nobody = format!("{0}{0}{0}", nobody.unwrap());
        assert_eq!(store.plan_find(&IdPrefix::parse(&nobody, "pln", "plan").unwrap()).await.unwrap(), PrefixMatch::None);
    }
}

on_both! {
    /// Fails if a resolved decision is listed as open, or if an open one is missing.
    async fn open_decisions_are_listed_apart(world: World) {
        let store = world.open().await;
        let mut asked = Vec::new();
        for _ in 0..3 {
            let (lease, plan, run) = processing(&store, "a").await;
            let plan = (command(&store, &lease, fail_and_ask(&run)).await.unwrap().plan, plan).0;
            asked.push((lease, plan.pending_decision().unwrap().clone(), plan.id));
        }
        let answer = drydock_domain::Answer { decision: asked[0].1.clone(), option: "answered".into(), note: Some("yes".into()) };
        command(&store, &asked[0].0, drydock_domain::Command::Resolve(answer)).await.unwrap();
        let open = DecisionFilter { open_only: true, ..DecisionFilter::default() };
        let ids = |page: drydock_store::Page<drydock_domain::Decision>| page.items.into_iter().map(|d| d.id).collect::<Vec<_>>();
        assert_eq!(ids(store.decision_list(&open).await.unwrap()), [asked[2].1.clone(), asked[1].1.clone()]);
        assert_eq!(store.decision_list(&DecisionFilter::default()).await.unwrap().items.len(), 3);
        let of_plan = DecisionFilter { plan: Some(asked[0].2.clone()), ..DecisionFilter::default() };
        assert_eq!(ids(store.decision_list(&of_plan).await.unwrap()), [asked[0].1.clone()]);
        let prefix = IdPrefix::parse(asked[0].1.as_str(), "dec", "decision").unwrap();
        let PrefixMatch::One(resolved) = store.decision_find(&prefix).await.unwrap() else { panic!("not found") };
        assert!(matches!(resolved.status, DecisionStatus::Resolved(_)));
        assert_eq!(store.counts().await.unwrap().open_decisions, 2);
    }
}

on_both! {
    /// Fails if a subplan that another process changed is not read again, or if one change causes all to be
    /// read.
    async fn only_subplans_that_changed_are_read_again(world: World) {
        let store = world.open().await;
        let ((_, parent), (_, first), (lease, second)) =
            (queued(&store, "a").await, queued(&store, "b").await, queued(&store, "c").await);
        world.meddle(&format!("UPDATE plans SET parent = '{0}' WHERE id <> '{0}'", parent.id));
        let all = store.plan_children_changed(&parent.id, BTreeMap::new()).await.unwrap();
        assert_eq!(all, [first, second]);
        let known: BTreeMap<_, _> = all.iter().map(|plan| (plan.id.to_string(), plan.revision)).collect();
        assert_eq!(store.plan_children_changed(&parent.id, known.clone()).await.unwrap(), []);
        let (moved, _) = started(&world.open().await, &lease).await;
        assert_eq!(store.plan_children_changed(&parent.id, known).await.unwrap(), [moved]);
    }
}
