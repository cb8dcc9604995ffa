//! Server sessions: a transaction that fails, or whose process stops, does not block other processes.

use std::net::ToSocketAddrs;
use std::sync::mpsc;
use std::thread;

use drydock_domain::{ChangeOp, Event, PathChange};
use drydock_store::{CommitError, Leases, Options, RecordError, Store, StoreUrl};
use drydock_testkit::proxy::Proxy;

use crate::world::{LIMIT, World, changeset_id, deciding, lease, now, processing, run_id, start};

/// Fails if an error before the last pipelined batch leaves its transaction on a pooled connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_long_write_that_fails_early_leaves_no_transaction_behind() {
    let world = World::postgres();
    let store = world.open().await;
    let (lease, plan, run) = processing(&store, "a").await;
    let handle = store.changeset_open(&lease, &run, "w", changeset_id()).await.unwrap();
    // PostgreSQL rejects a zero byte in a text, so one of the first statements fails; the commit is several
    // batches later.
    let change =
        |path: String| PathChange { path, op: ChangeOp::Create, from: None, before: None, after: None };
    let changes =
        |zero| (0..200).map(|n| change(if n == zero { "\0".into() } else { n.to_string() })).collect();
    for zero in [3, 199] {
        let failed = store.changeset_record(&handle, changes(zero)).await;
        assert!(matches!(failed, Err(RecordError::Store(_))), "{failed:?}");
        let left = "SELECT count(*) FROM pg_stat_activity
            WHERE datname = current_database() AND state LIKE 'idle in transaction%'";
        assert_eq!(world.query(left), "0");
    }
    assert_eq!(store.changeset_record(&handle, changes(200)).await.unwrap(), 200);
    assert_eq!(store.changeset_of_run(&plan.id, &run).await.unwrap()[0].entries.len(), 200);
}

/// Fails if a process that stops between the round trips of a transition keeps its lock row forever, or can
/// still commit when it resumes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_stops_inside_a_transition_is_overtaken() {
    let world = World::postgres();
    let store = world.open().await;
    let (old, plan) = crate::world::queued(&store, "a").await;
    store.plan_lease_release(old).await.unwrap();
    let StoreUrl::Postgres(url) = world.url() else { unreachable!() };
    let join = if url.contains('?') { '&' } else { '?' };
    let impatient = format!("{url}{join}options=-c%20idle_in_transaction_session_timeout%3D300");
    let (stopped, is_stopped) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    // A thread with its own runtime simulates the process: nothing in it runs while it is stopped.
    let id = plan.id.clone();
    let process = thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let store = Store::open(&impatient.parse().unwrap(), Options::new(now)).await.unwrap();
            let lease = lease(&store, &id, "a").await;
            let decide = deciding(start(&run_id()));
            let stopping = Box::new(move |snapshot: &_| {
                stopped.send(()).unwrap();
                may_go_on.recv_timeout(LIMIT).unwrap();
                decide(snapshot)
            });
            store.plan_transact(Leases::Plan(&lease), stopping).await
        })
    });
    is_stopped.recv_timeout(LIMIT).unwrap();
    let next = lease(&store, &plan.id, "a").await;
    go_on.send(()).unwrap();
    let late = process.join().unwrap().unwrap_err();
    assert!(matches!(&late, CommitError::Store(error) if error.is_transient()), "{late:?}");
    assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, 1);
    crate::world::started(&store, &next).await;
}

/// Fails if a locked row makes a caller wait forever, or is reported as anything but busy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_stays_locked_is_busy() {
    let world = World::postgres();
    let StoreUrl::Postgres(url) = world.url() else { unreachable!() };
    let join = if url.contains('?') { '&' } else { '?' };
    let impatient = format!("{url}{join}options=-c%20lock_timeout%3D200");
    let store = Store::open(&impatient.parse().unwrap(), Options::new(now)).await.unwrap();
    let (lease, plan) = crate::world::queued(&store, "a").await;
    let (other, connection) = tokio_postgres::connect(&url, tokio_postgres::NoTls).await.unwrap();
    let driven = crate::world::spawn(connection);
    other.batch_execute("BEGIN; SELECT 1 FROM locks FOR UPDATE").await.unwrap();
    let busy = store.plan_transact(Leases::Plan(&lease), deciding(start(&run_id()))).await.unwrap_err();
    assert!(matches!(&busy, CommitError::Store(error) if error.code() == "store_busy"), "{busy:?}");
    other.batch_execute("ROLLBACK").await.unwrap();
    crate::world::started(&store, &lease).await;
    assert_eq!(store.plan_fetch(&plan.id).await.unwrap().unwrap().revision, 2);
    drop(other);
    driven.await.unwrap().unwrap();
}

/// code 8.6: fails if events are stored twice because the connection broke between their commit and its
/// response.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_commit_whose_answer_was_lost_can_be_retried() {
    const TRIES_MAX: usize = 50;
    let world = World::postgres();
    let StoreUrl::Postgres(url) = world.url() else { unreachable!() };
    let (user, rest) = url.split_once('@').unwrap();
    let (server, database) = rest.split_once('/').unwrap();
    let proxy = Proxy::start(server.to_socket_addrs().unwrap().next().unwrap()).unwrap();
    let over = format!("{user}@{}/{database}", proxy.address());
    let store = Store::open(&over.parse().unwrap(), Options::new(now)).await.unwrap();
    let (lease, ..) = processing(&store, "a").await;
    // The numbering of events also commits, so the lost response is not always that of the batch.
    for appended in 1..TRIES_MAX {
        let said = Event::Agent { what: "said", details: serde_json::json!({ "number": appended }) };
        let batch = lease.batch(vec![said]);
        proxy.lose_answer(b"COMMIT\0");
        let first = store.event_append(&lease, &batch).await;
        if let Err(error) = &first {
            assert!(matches!(error, CommitError::Store(error) if error.is_transient()), "{error:?}");
            store.event_append(&lease, &batch).await.unwrap();
        }
        let stored = world.query("SELECT count(*) FROM events WHERE kind = 'agent.said'");
        assert_eq!(stored, appended.to_string());
        if first.is_err() {
            return;
        }
    }
    panic!("no answer to a batch was lost");
}
