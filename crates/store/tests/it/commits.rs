//! Commits of transitions: decided on stored state, complete or not at all, at most once.

use std::future::poll_fn;
use std::task::Poll;

use drydock_domain::{
    Advance, Authority, Changes, Command, Completion, CreatePlan, Decided, Effect, Enforcement, Event,
    Finding, Intent, InvariantCheck, InvariantScope, NextPhase, Phase, Refusal, Remains, RuleKind, State,
    TakeOverCause, create, decide,
};
use drydock_store::{
    CommitError, CrashPoint, DecisionFilter, EventFilter, HolderRequest, Leases, Options, PlanChange,
    RequestKind, StoreError,
};

use crate::world::{
    LONG, changeset_id, command, context, deciding, fail_and_ask, free, lease, now, plan_id, processing,
    project_lease, queued, run_id, spec, start, started,
};

/// Returns a cancel request from a person.
fn cancel_by(person: &str) -> HolderRequest {
    let (reason, via) = ("enough".into(), "command line".into());
    HolderRequest { kind: RequestKind::Cancel, reason, by: person.into(), via, authority: Authority::Person }
}

on_both! {
    /// Fails if a plan is read back differently from how it was written.
    async fn a_plan_reads_back_as_it_was_committed(world: World) {
        let store = world.open().await;
        let (lease, created) = queued(&store, "a").await;
        assert_eq!(store.plan_fetch(&created.id).await.unwrap().as_ref(), Some(&created));
        let (plan, run) = started(&store, &lease).await;
        let other = world.open().await;
        assert_eq!(other.plan_fetch(&created.id).await.unwrap().as_ref(), Some(&plan));
        assert_eq!((plan.revision, plan.stage.state(), plan.run), (2, State::Processing, Some(run)));
    }
}

on_both! {
    /// Fails if a plan can be created twice, or under another plan's lease.
    async fn a_plan_is_made_once_and_under_its_own_lease(world: World) {
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        let make = |id| create(CreatePlan { id, spec: spec("boat", "fix"), base_commit: String::new() }, &context());
        let again = store.plan_create(&lease, make(plan.id.clone())).await.unwrap_err();
        assert!(matches!(again, CommitError::PlanExists(id) if id == plan.id));
        let unmade = crate::world::lease(&store, &plan_id(), "a").await;
        let other = store.plan_create(&unmade, make(plan_id())).await.unwrap_err();
        assert!(matches!(other, CommitError::LeaseLost { .. }), "{other:?}");
        let missing = command(&store, &unmade, start(&run_id())).await.unwrap_err();
        assert!(matches!(missing, CommitError::PlanMissing(_)), "{missing:?}");
        assert_eq!(world.query("SELECT count(*) FROM plans"), "1");
    }
}

on_both! {
    /// S2.1, S2.2: fails if a decision is based on anything but the stored plan.
    async fn a_decision_sees_what_another_process_committed(world: World) {
        let (one, two) = (world.open().await, world.open().await);
        let (first, plan) = queued(&one, "a").await;
        let (_, run) = started(&one, &first).await;
        one.plan_lease_release(first).await.unwrap();
        let second = lease(&two, &plan.id, "b").await;
        let refused = command(&two, &second, start(&run_id())).await.unwrap_err();
        assert!(matches!(refused, CommitError::Refused(Refusal::WrongStage { .. })), "{refused:?}");
        let already = command(&two, &second, start(&run)).await.unwrap();
        assert_eq!((already.change, already.plan.revision), (PlanChange::Already, 2));
    }
}

on_both! {
    /// S2.3: fails if two commits can be based on the same revision.
    async fn of_many_equal_commands_one_takes_effect(world: World) {
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        let lease = std::sync::Arc::new(lease);
        let starts: Vec<_> = (0..16)
            .map(|_| {
                let (store, lease) = (store.clone(), std::sync::Arc::clone(&lease));
                crate::world::spawn(async move { command(&store, &lease, start(&run_id())).await })
            })
            .collect();
        let mut changed = 0;
        for one in starts {
            match one.await.unwrap() {
                Ok(committed) => {
                    assert_eq!(committed.change, PlanChange::Changed);
                    changed += 1;
                }
                Err(error) => assert!(matches!(error, CommitError::Refused(_)), "{error:?}"),
            }
        }
        assert_eq!((changed, world.query("SELECT revision FROM plans")), (1, "2".to_owned()));
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().runs, 1);
    }
}

on_both! {
    /// S0.1, S0.5: fails if a refusal writes the plan, or if the feed does not record it.
    async fn a_blocked_transition_leaves_the_plan_and_is_told(world: World) {
        let store = world.open().await;
        let (lease, _, run) = processing(&store, "a").await;
        let done = Command::Complete(run, Completion::Strategized { choices: Vec::new(), fanout: None });
        let before = command(&store, &lease, done).await.unwrap().plan;
        let finding = Finding {
            invariant: "dry".parse().unwrap(),
            scope: InvariantScope::Global,
            rule: RuleKind::Cel,
            check: InvariantCheck::Violated("it is wet".to_owned()),
            measure: None,
        };
        let advance = Command::Advance(Advance {
            to: NextPhase::Execute,
            enforcement: Enforcement { at: Phase::Execute, findings: vec![finding] },
            note: None,
            changes: Changes::Something,
        });
        let refused = command(&store, &lease, advance).await.unwrap_err();
        assert!(matches!(refused, CommitError::Refused(Refusal::Blocked(_))), "{refused:?}");
        assert_eq!(store.plan_fetch(&before.id).await.unwrap(), Some(before.clone()));
        // Page B6: the blocking enforcement is a separate row, written with the event.
        let enforced = store.enforcement_fetch(&before.id).await.unwrap().expect("it was recorded");
        assert_eq!(enforced.blocking(&before).map(|seen| seen.at), Some(Phase::Execute));
        assert_eq!(store.enforcement_blocking(std::slice::from_ref(&before.id)).await.unwrap().len(), 1);
        let events = store.event_list(&EventFilter { after: 0, plan: Some(before.id), limit: 100 }).await.unwrap();
        let last = events.last().unwrap();
        assert_eq!((last.kind.as_str(), last.revision), ("invariant.blocked", Some(before.revision)));
    }
}

on_both! {
    /// S0.1: fails if a commit that fails halfway leaves anything behind, or changes a value that a caller
    /// holds.
    async fn a_commit_that_fails_anywhere_changes_nothing(world: World) {
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap();
        let before = world.observe(&plan.id);
        for point in CrashPoint::all().into_iter().filter(|point| *point != CrashPoint::AfterCommit) {
            let failing = world.open_with(Options { fail_at: Some(point), ..Options::new(now) }).await;
            let failed = command(&failing, &lease, fail_and_ask(&run)).await.unwrap_err();
            assert!(matches!(failed, CommitError::Store(StoreError::Injected)), "{point}: {failed:?}");
            assert_eq!(world.observe(&plan.id), before, "torn at {point}");
            assert_eq!(failing.plan_fetch(&plan.id).await.unwrap(), Some(plan.clone()));
        }
        command(&store, &lease, fail_and_ask(&run)).await.unwrap();
        assert_ne!(world.observe(&plan.id), before);
    }
}

on_both! {
    /// S4.5: fails if the failure, its question, the seal and the outbox are not one write.
    async fn a_failure_that_asks_is_one_write(world: World) {
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap();
        let request = cancel_by("ann");
        store.request_put(&plan.id, &request).await.unwrap();
        assert_eq!(store.request_fetch(&plan.id).await.unwrap(), Some(request));
        let failed = command(&store, &lease, fail_and_ask(&run)).await.unwrap().plan;
        let snapshot = store.plan_snapshot(&plan.id).await.unwrap().unwrap();
        assert_eq!(snapshot.plan, failed);
        let pending = snapshot.pending.unwrap();
        assert_eq!(Some(&pending.id), failed.pending_decision());
        let asked = store.decision_list(&DecisionFilter::default()).await.unwrap();
        assert_eq!(asked.items, [pending]);
        assert_eq!(world.query("SELECT state FROM changesets"), "sealed");
        assert_eq!(world.query("SELECT count(*) FROM outbox"), "0");
        assert_eq!(store.request_fetch(&plan.id).await.unwrap(), None);
        assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
    }
}

on_both! {
    /// S1.2: fails if a landing can be written without the lock of its own project.
    async fn landing_needs_the_lock_of_the_plans_project(world: World) {
        let store = world.open().await;
        let (lease, _, run) = processing(&store, "a").await;
        let done = Command::Complete(run, Completion::Strategized { choices: Vec::new(), fanout: None });
        command(&store, &lease, done).await.unwrap();
        let advance = |to: NextPhase| {
            let enforcement = Enforcement::nothing(to.phase());
            Command::Advance(Advance { to, enforcement, note: None, changes: Changes::Something })
        };
        command(&store, &lease, advance(NextPhase::Execute)).await.unwrap();
        let (_, run) = started(&store, &lease).await;
        let done = Completion::Executed { head: "1".repeat(40), validations: Vec::new(), reviews: Vec::new() };
        command(&store, &lease, Command::Complete(run, done)).await.unwrap();
        command(&store, &lease, advance(NextPhase::Apply)).await.unwrap();
        let (plan, run) = started(&store, &lease).await;
        let intend = || {
            let (target, from, to) = ("main".to_owned(), "0".repeat(40), "1".repeat(40));
            deciding(Command::Intend(run.clone(), Intent { target, from, to, remote: None, creates: false }))
        };

        let bare = store.plan_transact(Leases::Plan(&lease), intend()).await.unwrap_err();
        assert!(matches!(bare, CommitError::ProjectLockMissing), "{bare:?}");
        let other = project_lease(&store, "canoe", "a").await;
        let wrong = Leases::Landing { plan: &lease, project: &other };
        let wrong = store.plan_transact(wrong, intend()).await.unwrap_err();
        assert!(matches!(wrong, CommitError::ProjectLockMissing), "{wrong:?}");
        let project = project_lease(&store, "boat", "a").await;
        let overtaken = project_lease(&store, "boat", "a").await;
        let stale = Leases::Landing { plan: &lease, project: &project };
        let stale = store.plan_transact(stale, intend()).await.unwrap_err();
        assert!(matches!(stale, CommitError::LeaseLost { .. }), "{stale:?}");
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, plan.revision);
        let both = Leases::Landing { plan: &lease, project: &overtaken };
        assert_eq!(store.plan_transact(both, intend()).await.unwrap().change, PlanChange::Changed);
    }
}

on_both! {
    /// Fails if appending an event changes the plan, or if the event is not about it.
    async fn a_note_is_told_and_changes_nothing(world: World) {
        let store = world.open().await;
        let (lease, plan, run) = processing(&store, "a").await;
        let said = Event::Agent { what: "said", details: serde_json::json!({ "text": "\u{0}ahoy" }) };
        store.event_append(&lease, &lease.batch(vec![said.clone(), said])).await.unwrap();
        let events = store.event_list(&EventFilter { after: 0, plan: Some(plan.id.clone()), limit: 100 }).await.unwrap();
        let (last, before) = (&events[events.len() - 1], &events[events.len() - 2]);
        assert_eq!((last.kind.as_str(), &last.run, last.revision), ("agent.said", &Some(run), Some(2)));
        assert_eq!((last.details["text"].as_str(), last.seq), (Some("\u{0}ahoy"), before.seq + 1));
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap(), Some(plan));
    }
}

on_both! {
    /// code 8.6: fails if committed events are appended again, or if other events with the same text are not
    /// appended.
    async fn a_batch_of_events_is_appended_once(world: World) {
        let store = world.open().await;
        let (lease, plan, _) = processing(&store, "a").await;
        let said = || Event::Agent { what: "said", details: serde_json::json!({ "text": "ahoy" }) };
        let twice = lease.batch(vec![said(), said()]);
        for _ in 0..3 {
            store.event_append(&lease, &twice).await.unwrap();
        }
        let count = || world.query("SELECT count(*) FROM events WHERE kind = 'agent.said'");
        assert_eq!(count(), "2");
        store.event_append(&lease, &lease.batch(vec![said()])).await.unwrap();
        assert_eq!(count(), "3");
        // Another lease numbers its batches from the start again; its fence distinguishes them.
        store.plan_lease_release(lease).await.unwrap();
        let next = crate::world::lease(&store, &plan.id, "b").await;
        store.event_append(&next, &next.batch(vec![said(), said()])).await.unwrap();
        assert_eq!(count(), "5");
    }
}

on_both! {
    /// Fails if dropping a caller cancels its commit, or leaves a transaction open.
    async fn a_dropped_caller_does_not_cancel_its_commit(world: World) {
        let store = world.open().await;
        for _ in 0..20 {
            let (lease, plan) = queued(&store, "a").await;
            let mut asked = store.plan_transact(Leases::Plan(&lease), deciding(start(&run_id())));
            // One poll submits the job.
            let polled = poll_fn(|context| Poll::Ready(asked.as_mut().poll(context))).await;
            drop(asked);
            if polled.is_pending() {
                while store.plan_fetch(&plan.id).await.unwrap().unwrap().revision != 2 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }
}

on_both! {
    /// Fails if a panic in a caller's decision stops the writer, or leaves its transaction in the pool.
    async fn a_panicking_decision_hurts_nobody_else(world: World) {
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        for _ in 0..20 {
            let panicked = store.plan_transact(Leases::Plan(&lease), Box::new(|_| panic!("on purpose"))).await;
            assert!(matches!(panicked, Err(CommitError::Store(StoreError::Database { .. }))), "{panicked:?}");
        }
        assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, 1);
        assert_eq!(command(&store, &lease, start(&run_id())).await.unwrap().plan.revision, 2);
    }
}

on_both! {
    /// Fails if the outbox is not a function of the committed stage.
    async fn the_outbox_holds_what_is_due(world: World) {
        let store = world.open().await;
        let plan = free(&store).await;
        let claim = store.effect_claim("w", LONG).await.unwrap().unwrap();
        let lease = lease(&store, &plan.id, "a").await;
        assert_eq!((&claim.plan, claim.effect, claim.attempts), (&plan.id, Effect::DrivePhase(Phase::Strategize), 1));
        let (_, run) = started(&store, &lease).await;
        // The worker that claimed the effect started the phase, and keeps its claim while it works.
        assert_eq!(store.effect_claim("x", LONG).await.unwrap(), None);
        let context = context();
        let done = store
            .plan_transact(Leases::Plan(&lease), Box::new(move |snapshot| {
                let done = Command::Complete(run, Completion::Strategized { choices: Vec::new(), fanout: None });
                let decided = decide(snapshot, done, &context)?;
                assert!(matches!(&decided, Decided::Change(change) if change.effect() == Some(Effect::AdvanceToExecute)));
                Ok(decided)
            }))
            .await
            .unwrap();
        assert_eq!(done.plan.stage.state(), State::Complete);
        store.plan_lease_release(lease).await.unwrap();
        let next = store.effect_claim("x", LONG).await.unwrap().unwrap();
        assert_eq!((next.effect, next.attempts), (Effect::AdvanceToExecute, 1));
    }
}

on_both! {
    /// Fails if a request from before a run stops the run, or if a request during a run is lost while it
    /// continues.
    async fn a_request_belongs_to_the_run_it_was_made_in(world: World) {
        let store = world.open().await;
        let (lease, plan) = queued(&store, "a").await;
        let request = cancel_by("ann");
        store.request_put(&plan.id, &request).await.unwrap();
        let (_, run) = started(&store, &lease).await;
        assert_eq!(store.request_fetch(&plan.id).await.unwrap(), None);
        store.request_put(&plan.id, &request).await.unwrap();
        store.event_append(&lease, &lease.batch(vec![Event::Resumed])).await.unwrap();
        store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap();
        assert_eq!(store.request_fetch(&plan.id).await.unwrap(), Some(request.clone()));
        command(&store, &lease, Command::TakeOver(TakeOverCause::Interrupted, Remains::Work(None))).await.unwrap();
        assert_eq!(store.request_fetch(&plan.id).await.unwrap(), None);
        assert!(store.request_put(&crate::world::plan_id(), &request).await.is_err());
    }
}
