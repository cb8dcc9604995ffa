//! Impossible rows. These tests check the checkers: each modifies a store directly and expects an error.

use drydock_store::{CommitError, PlanFilter, StoreError};

use crate::world::{command, fail_and_ask, processing, queued, run_id, start};

on_both! {
    /// S4.5: fails if an errored plan without its question is not detected by a reader, a writer or the
    /// check.
    async fn an_error_without_its_question_is_noticed(world: World) {
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        command(&store, &lease, fail_and_ask(&run)).await.unwrap();
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
        world.meddle("DELETE FROM decisions");
        let problems = store.check().await.unwrap();
        assert!(problems.iter().any(|problem| problem.contains(plan.id.as_str())), "{problems:?}");
        assert!(matches!(store.plan_snapshot(&plan.id).await, Err(StoreError::Damaged { .. })));
        let refused = command(&store, &lease, start(&run_id())).await.unwrap_err();
        assert!(matches!(refused, CommitError::Store(StoreError::Damaged { .. })), "{refused:?}");
    }
}

on_both! {
    /// Fails if a column that disagrees with its body is accepted, or if a list skips a row that it cannot
    /// read.
    async fn a_row_that_disagrees_with_itself_is_named(world: World) {
        let store = world.open().await;
        let (_, plan) = queued(&store, "a").await;
        let (_, _other) = queued(&store, "b").await;
        for (damage, repair) in [
            ("state = 'applied'", "state = 'queued'"),
            ("phase = 'apply'", "phase = 'strategize'"),
            ("revision = 7", "revision = 1"),
            ("project = 'canoe'", "project = 'boat'"),
            ("body = replace(body, 'queued', 'quwued')", "body = replace(body, 'quwued', 'queued')"),
        ] {
            world.meddle(&format!("UPDATE plans SET {damage} WHERE id = '{}'", plan.id));
            for error in [
                store.plan_fetch(&plan.id).await.unwrap_err(),
                store.plan_list(&PlanFilter::default()).await.unwrap_err(),
            ] {
                assert!(matches!(&error, StoreError::Damaged { key, .. } if key == plan.id.as_str()), "{damage}: {error:?}");
            }
            assert!(!store.check().await.unwrap().is_empty(), "{damage}");
            world.meddle(&format!("UPDATE plans SET {repair} WHERE id = '{}'", plan.id));
            assert_eq!(store.plan_fetch(&plan.id).await.unwrap().as_ref(), Some(&plan));
        }
    }
}

on_both! {
    /// Fails if the check does not cover the feed, the changesets or the outbox.
    async fn the_check_objects_to_what_cannot_be(world: World) {
        let store = world.open().await;
        let (_lease, plan, run) = processing(&store, "a").await;
        store.changeset_open(&_lease, &run, "w", crate::world::changeset_id()).await.unwrap();
        crate::world::events_total(&store).await;
        for (damage, repair) in [
            ("UPDATE events SET revision = 9 WHERE seq = 1", "UPDATE events SET revision = 1 WHERE seq = 1"),
            ("UPDATE events SET seq = 99 WHERE seq = 2", "UPDATE events SET seq = 2 WHERE seq = 99"),
            ("UPDATE changesets SET entries = 1", "UPDATE changesets SET entries = 0"),
            ("UPDATE outbox SET effect = '\"advance_to_apply\"'", "UPDATE outbox SET effect = '{\"drive_phase\":\"strategize\"}'"),
            (
                "DELETE FROM outbox",
                "INSERT INTO outbox (plan, effect, attempts, ready_at) SELECT id, '{\"drive_phase\":\"strategize\"}', 0, 0 FROM plans",
            ),
        ] {
            world.meddle(damage);
            assert_ne!(store.check().await.unwrap(), Vec::<String>::new(), "{damage}");
            world.meddle(repair);
            assert_eq!(store.check().await.unwrap(), Vec::<String>::new(), "{repair} {}", plan.id);
        }
    }
}
