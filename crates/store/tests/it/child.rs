//! Runs this test program as another process: the parent sets environment variables, and the one test here
//! does the requested job.

use std::env;
use std::process::Command;

use drydock_domain::Event;
use drydock_store::{CommitError, Options, Store, StoreUrl};
use drydock_testkit::proc;

use crate::world::{World, command, events_total, fail_and_ask, lease, now, queued};

const JOB: &str = "DRYDOCK_STORE_TEST_JOB";
const URL: &str = "DRYDOCK_STORE_TEST_URL";
const ARGUMENT: &str = "DRYDOCK_STORE_TEST_ARGUMENT";

/// Starts another process with a job on this world's store.
pub(crate) fn spawn(world: &World, job: &str, argument: &str) -> proc::RunningProcess {
    let url = match world.url() {
        StoreUrl::Sqlite(path) => path.to_str().unwrap().to_owned(),
        StoreUrl::Postgres(url) => url,
    };
    let mut program = Command::new(env::current_exe().unwrap());
    program.args(["--exact", "child::works", "--nocapture"]);
    proc::spawn(program.env(JOB, job).env(URL, url).env(ARGUMENT, argument))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works() {
    let Ok(job) = env::var(JOB) else { return };
    let (url, argument) = (env::var(URL).unwrap(), env::var(ARGUMENT).unwrap());
    let url: StoreUrl = url.parse().unwrap();
    match job.as_str() {
        "crash" => crash(&url, &argument).await,
        "open" => drop(Store::open(&url, Options::new(now)).await.unwrap()),
        "note" => note(&url, argument.parse().unwrap()).await,
        "code" => {
            let opened = Store::open(&url, Options::new(now)).await;
            println!("code={}", opened.err().map_or("none", |error| error.code()));
        }
        "fill" => fill(&url).await,
        "freeze" => freeze(&url, &argument).await,
        other => panic!("unknown job {other}"),
    }
}

/// Crashes inside the commit, at the point in the argument `point plan run`.
async fn crash(url: &StoreUrl, argument: &str) {
    let words: Vec<_> = argument.split(' ').collect();
    let options = Options { crash_at: Some(words[0].parse().unwrap()), ..Options::new(now) };
    let store = Store::open(url, options).await.unwrap();
    let lease = lease(&store, &words[1].parse().unwrap(), "child").await;
    command(&store, &lease, fail_and_ask(&words[2].parse().unwrap())).await.unwrap();
}

/// Stops inside the transaction of a transition.
async fn freeze(url: &StoreUrl, plan: &str) {
    let store = Store::open(url, Options::new(now)).await.unwrap();
    let lease = lease(&store, &plan.parse().unwrap(), "child").await;
    let stopping = Box::new(|_: &_| {
        println!("inside");
        loop {
            std::thread::park();
        }
    });
    store.plan_transact(drydock_store::Leases::Plan(&lease), stopping).await.unwrap();
}

/// Creates plans until the disk is full, and then reads the store.
async fn fill(url: &StoreUrl) {
    let store = Store::open(url, Options::new(now)).await.unwrap();
    let (lease, plan) = queued(&store, "a").await;
    let mut notes = 0;
    let error = loop {
        let said = Event::Agent { what: "said", details: serde_json::json!({ "text": "x".repeat(5000) }) };
        match store.event_append(&lease, &lease.batch(vec![said])).await {
            Ok(()) => notes += 1,
            Err(CommitError::Store(error)) => break error,
            Err(other) => panic!("{other}"),
        }
    };
    println!("code={}", error.code());
    if let StoreUrl::Sqlite(path) = url {
        let copy = path.with_extension("copy");
        assert_eq!(store.backup(&copy).await.unwrap_err().code(), "store_full");
        assert!(!copy.exists(), "half a backup stays");
    }
    assert_eq!(events_total(&store).await, notes + 1);
    assert_eq!(store.plan_fetch(&plan.id).await.unwrap(), Some(plan));
    assert_eq!(store.check().await.unwrap(), Vec::<String>::new());
}

/// Four concurrent writers, each with its own plan, append events in order.
async fn note(url: &StoreUrl, each: i64) {
    let store = Store::open(url, Options::new(now)).await.unwrap();
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let store = store.clone();
            crate::world::spawn(async move {
                let (lease, _) = queued(&store, &format!("{}-{writer}", std::process::id())).await;
                for n in 0..each {
                    let said = Event::Agent { what: "said", details: serde_json::json!({ "n": n }) };
                    store.event_append(&lease, &lease.batch(vec![said])).await.unwrap();
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}
