//! A divergence is one write: no reader sees only part of it (S4.5, S4.14).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use drydock_domain::{
    Answer, BackupRef, ClashCause, Command, CommitLine, DecisionId, DecisionStatus, IdPrefix, Plan,
    ReplayConflict, State, SyncOutcome, Uncommitted,
};
use drydock_store::{PrefixMatch, Store};

use crate::world::{command, queued, spawn};

const RECOVERIES: usize = 500;

fn recovered(number: usize) -> SyncOutcome {
    let commit = |id: &str| CommitLine { id: id.into(), subject: "a commit".into(), author: "ada".into() };
    SyncOutcome::RecoveredByReset {
        pin: BackupRef {
            name: format!("refs/drydock/pin/p/{number}"),
            commit: "c1".into(),
            head: "c1".into(),
            uncommitted: Uncommitted::Nothing,
        },
        discarded: vec![commit("c1")],
        to: "c2".into(),
        arrived: vec![commit("c2")],
        clash: ReplayConflict {
            cause: ClashCause::Content,
            commit: Some(commit("c1")),
            paths: vec!["a.txt".into()],
            text: String::new(),
        },
    }
}

/// Reads the plan as fast as possible, in one transaction and in two, until stopped.
async fn watch(store: Store, plan: Plan, over: Arc<AtomicBool>, errored: Arc<AtomicU64>) {
    while !over.load(Ordering::Relaxed) {
        let snapshot = store.plan_snapshot(&plan.id).await.unwrap().unwrap();
        let asks = snapshot.plan.stage.decision().cloned();
        assert_eq!(asks.is_some(), snapshot.plan.stage.state() == State::Errored);
        if let Some(asked) = asks {
            let pending = snapshot.pending.expect("errored without its decision");
            assert_eq!((pending.id, pending.status), (asked, DecisionStatus::Open));
            errored.fetch_add(1, Ordering::Relaxed);
        }
        // Between two reads the decision may have been answered; it must exist anyway.
        let seen = store.plan_fetch(&plan.id).await.unwrap().unwrap();
        if let Some(asked) = seen.stage.decision() {
            let prefix = IdPrefix::parse(asked.as_str(), DecisionId::PREFIX, "decision").unwrap();
            let found = store.decision_find(&prefix).await.unwrap();
            assert!(matches!(found, PrefixMatch::One(_)), "errored, and {asked} is not there");
        }
    }
}

on_both! {
    /// Fails if a reader can see a failed plan without its open decision, or the decision without the
    /// failure. Was seen failing with the decision written after the commit of the plan.
    async fn no_reader_sees_a_divergence_without_its_question(world: World) {
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        let (over, errored) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let reader = spawn(watch(world.open().await, plan.clone(), over.clone(), errored.clone()));
        for number in 0..RECOVERIES {
            let divergence = recovered(number).divergence().unwrap();
            let failed = command(&store, &lease, Command::Diverge(Box::new(divergence))).await.unwrap().plan;
            let decision = failed.stage.decision().unwrap().clone();
            let answer = Answer { decision, option: "continue".into(), note: None };
            let plan = command(&store, &lease, Command::Resolve(answer)).await.unwrap().plan;
            assert_eq!(plan.stage.state(), State::Queued);
        }
        over.store(true, Ordering::Relaxed);
        reader.await.unwrap();
        assert!(errored.load(Ordering::Relaxed) > 20, "the reader was too slow to mean anything");
    }
}
