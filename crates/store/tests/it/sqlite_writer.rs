//! The writer thread of SQLite: many jobs, one commit, and a separate result for each job.

use std::fs::File;
use std::time::{Duration, Instant};

use drydock_store::{CommitError, Leases, StoreError};
use drydock_testkit::wait;

use crate::world::{
    LIMIT, LONG, World, changeset_id, command, deciding, free, holder, lease, processing, run_id, start,
};

/// Locks the gate file, so that waiting jobs become one batch.
fn closed_gate(world: &World) -> File {
    let mut name = world.file().into_os_string();
    name.push("-gate");
    let gate = File::options().create(true).truncate(false).write(true).open(name).unwrap();
    gate.lock().unwrap();
    gate
}

/// Fails if a failing job undoes other jobs of its batch, or if its own writes are committed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_failing_job_does_not_fail_its_neighbours() {
    let world = World::sqlite();
    let store = world.open().await;
    let (lease, _plan, run) = processing(&store, "a").await;
    let taken = changeset_id();
    store.changeset_open(&lease, &run, "w", taken.clone()).await.unwrap();
    let lease = std::sync::Arc::new(lease);
    let gate = closed_gate(&world);
    let jobs: Vec<_> = (0..40)
        .map(|n| {
            let (store, lease, run, taken) =
                (store.clone(), std::sync::Arc::clone(&lease), run.clone(), taken.clone());
            crate::world::spawn(async move {
                match n % 4 {
                    0 => {
                        let twice = store.changeset_open(&lease, &run, "w", taken).await.unwrap_err();
                        assert!(
                            matches!(twice, CommitError::Store(StoreError::Database { .. })),
                            "{twice:?}"
                        );
                    }
                    1 => {
                        let bad = Box::new(|_: &_| panic!("on purpose"));
                        assert!(store.plan_transact(Leases::Plan(&lease), bad).await.is_err());
                    }
                    2 => assert!(command(&store, &lease, start(&run_id())).await.is_err()),
                    _ => drop(store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap()),
                }
            })
        })
        .collect();
    // Every job is queued once all senders have been polled. The gate may open before or after that; each job
    // must get its own result in both cases.
    tokio::task::yield_now().await;
    gate.unlock().unwrap();
    for job in jobs {
        job.await.unwrap();
    }
    assert_eq!(world.query("SELECT count(*) FROM changesets"), "11");
    assert_eq!(world.query("SELECT count(*) FROM events WHERE kind = 'changeset.opened'"), "11");
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Fails if a process that can read the gate file can block all writers by locking it.
#[tokio::test]
async fn a_gate_that_somebody_holds_stops_no_writer() {
    let world = World::sqlite();
    let store = world.open().await;
    let (lease, plan) = crate::world::queued(&store, "a").await;
    let gate = closed_gate(&world);
    for _ in 0..3 {
        store.event_append(&lease, &lease.batch(vec![drydock_domain::Event::Resumed])).await.unwrap();
    }
    assert_eq!(world.query("SELECT count(*) FROM events WHERE kind = 'plan.resumed'"), "3");
    // Once it is free, writers use the gate again.
    gate.unlock().unwrap();
    command(&store, &lease, start(&run_id())).await.unwrap();
    assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, 2);
}

/// Fails if the job of a caller that got a busy error runs later.
#[tokio::test]
async fn a_job_that_was_given_up_never_runs() {
    let world = World::sqlite();
    let store = world.open().await;
    let (lease, plan) = crate::world::queued(&store, "a").await;
    let gate = closed_gate(&world);
    // Paused time advances to the end of the wait as soon as nothing else can happen.
    tokio::time::pause();
    let busy = store.plan_transact(Leases::Plan(&lease), deciding(start(&run_id()))).await.unwrap_err();
    assert!(matches!(busy, CommitError::Store(StoreError::Busy { .. })), "{busy:?}");
    tokio::time::resume();
    gate.unlock().unwrap();
    // A later job of the same queue gets its result after the first would have run.
    let note = vec![drydock_domain::Event::Resumed];
    store.event_append(&lease, &lease.batch(note)).await.unwrap();
    assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, 1);
}

/// B13: fails if a process that is frozen inside its transaction makes others wait for more than ten seconds,
/// or if the error does not name that process.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_is_held_names_the_process() {
    let world = World::sqlite();
    let store = world.open().await;
    let (plan, other) = (free(&store).await, free(&store).await);
    let frozen = crate::child::spawn(&world, "freeze", plan.id.as_str());
    wait::until("the child to be inside", LIMIT, || frozen.stdout().contains("inside").then_some(()));
    frozen.pause();
    let began = Instant::now();
    let busy = store.plan_lease_acquire(&other.id, &holder("a"), LONG).await.unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let (pid, said) = (frozen.pid(), busy.to_string());
    assert_eq!(busy.code(), "store_busy");
    assert!(
        said.contains(&format!("process {pid} ")) && said.contains(&format!("kill -CONT {pid}")),
        "{said}"
    );
    frozen.kill();
    frozen.wait(LIMIT);
    lease(&store, &other.id, "a").await;
}
