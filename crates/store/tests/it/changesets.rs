//! Changesets: each change is in the changeset of its writer and in no other.

use drydock_domain::{ChangeOp, ChangesetState, IdPrefix, PathChange, Refusal};
use drydock_store::{CommitError, PrefixMatch, RecordError};

use crate::world::{changeset_id, command, fail_and_ask, processing, queued, run_id};

fn change(path: String) -> PathChange {
    PathChange { path, op: ChangeOp::Modify, from: None, before: Some("a".into()), after: None }
}

on_both! {
    /// S3.1: fails if writers share any "current changeset".
    async fn eight_writers_record_into_their_own(world: World) {
        const WRITERS: usize = 8;
        const CHANGES: usize = 1000;
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        let mut writers = Vec::new();
        for writer in 0..WRITERS {
            let handle = store.changeset_open(&lease, &run, &format!("w{writer}"), changeset_id()).await.unwrap();
            let store = store.clone();
            writers.push(crate::world::spawn(async move {
                let (mut done, mut size) = (0, 1);
                while done < CHANGES {
                    let end = CHANGES.min(done + size);
                    let batch = (done..end).map(|n| change(format!("w{writer}/{n}"))).collect();
                    let total = store.changeset_record(&handle, batch).await.unwrap();
                    assert_eq!(total, i64::try_from(end).unwrap());
                    (done, size) = (end, size % 9 + 1);
                }
                handle
            }));
        }
        for (n, writer) in writers.into_iter().enumerate() {
            let handle = writer.await.unwrap();
            if n % 2 == 0 {
                assert_eq!(store.changeset_seal(handle).await.unwrap(), 1000);
            }
        }
        let found = world.open().await.changeset_list(&plan.id).await.unwrap();
        assert_eq!(found.len(), WRITERS);
        assert_eq!(store.changeset_of_run(&plan.id, &run).await.unwrap(), found);
        assert_eq!(store.changeset_of_run(&plan.id, &run_id()).await.unwrap(), []);
        for (writer, changeset) in found.iter().enumerate() {
            assert_eq!((&changeset.writer, &changeset.run), (&format!("w{writer}"), &run));
            let paths: Vec<_> = changeset.entries.iter().map(|entry| (entry.seq, entry.change.path.clone())).collect();
            let expected: Vec<_> = (0..CHANGES).map(|n| (n as i64 + 1, format!("w{writer}/{n}"))).collect();
            assert_eq!(paths, expected);
            assert_eq!(changeset.state == ChangesetState::Sealed, writer % 2 == 0);
        }
    }
}

on_both! {
    /// S3.2: fails if a sealed changeset accepts entries, regardless of how it was sealed.
    async fn nothing_is_recorded_after_the_seal(world: World) {
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        let id = changeset_id();
        let handle = store.changeset_open(&lease, &run, "w", id.clone()).await.unwrap();
        assert_eq!(handle.id(), &id);
        assert_eq!(store.changeset_record(&handle, vec![change("kept".into())]).await.unwrap(), 1);
        command(&store, &lease, fail_and_ask(&run)).await.unwrap();
        let late = store.changeset_record(&handle, vec![change("late".into())]).await;
        assert!(matches!(late, Err(RecordError::NotOpen { id: sealed }) if sealed == id));
        assert!(matches!(store.changeset_seal(handle).await, Err(RecordError::NotOpen { .. })));
        let prefix = IdPrefix::parse(&id.as_str()[4..14], "chg", "changeset").unwrap();
        let PrefixMatch::One(found) = store.changeset_find(&prefix).await.unwrap() else { panic!("not found") };
        assert_eq!((found.state, found.entries.len(), &found.plan), (ChangesetState::Sealed, 1, &plan.id));
        assert_eq!(found.entries[0].change, change("kept".into()));
    }
}

on_both! {
    /// S3.2: fails if changes can be recorded for a run that has ended or has not started.
    async fn a_changeset_belongs_to_the_current_run(world: World) {
        let store = world.open().await;
        let (lease, _) = queued(&store, "a").await;
        let early = store.changeset_open(&lease, &run_id(), "w", changeset_id()).await.unwrap_err();
        assert!(matches!(early, CommitError::Refused(Refusal::StaleRun { .. })), "{early:?}");
        let (_, run) = crate::world::started(&store, &lease).await;
        command(&store, &lease, fail_and_ask(&run)).await.unwrap();
        let late = store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap_err();
        assert!(matches!(late, CommitError::Refused(Refusal::WrongStage { .. })), "{late:?}");
        assert_eq!(world.query("SELECT count(*) FROM changesets"), "0");
    }
}
