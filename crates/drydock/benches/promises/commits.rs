//! Durable transitions per second against bare commits of one row on the same database at the same durability.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use drydock_domain::{Command, Enforcement, Phase, Remains, RunId, Start, TakeOverCause, decide};
use drydock_store::{Leases, PlanLease, Store, StoreUrl};
use drydock_testkit::postgres;

use crate::measure::{Promise, SPELL, Table, median};
use crate::seed;

const ROUNDS: usize = 7;
const WRITERS: usize = 8;

static NEXT: AtomicU64 = AtomicU64::new(1);

pub(crate) async fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let store = seed::open(&StoreUrl::Sqlite(world.path().join("drydock.db"))).await;
    let bare = bare_sqlite(&world.path().join("bare.db"));
    compare(table, "SQLite", store, 3.0, || Box::pin(std::future::ready(bare_sqlite_spell(&bare)))).await;

    let (ours, theirs) = (postgres::database(), postgres::database());
    let store = seed::open(&ours.url().parse().unwrap()).await;
    let client = Arc::new(bare_postgres(&theirs.url()).await);
    compare(table, "PostgreSQL", store, 2.5, || Box::pin(bare_postgres_spell(client.clone()))).await;
}

/// Returns how many transitions a second one writer commits to a store of its own in this directory.
pub(crate) async fn one_writer_on_sqlite(directory: &Path) -> f64 {
    let store = seed::open(&StoreUrl::Sqlite(directory.join("commits.db"))).await;
    let lease = Arc::new(seed::plan(&store, 1).await.1);
    spell(&store, &[lease]).await
}

type Spell<'a> = std::pin::Pin<Box<dyn Future<Output = f64> + 'a>>;

async fn compare<'a>(
    table: &mut Table,
    database: &str,
    store: Store,
    eight_bound: f64,
    bare: impl Fn() -> Spell<'a>,
) {
    let mut leases = Vec::new();
    for number in 0..WRITERS {
        leases.push(Arc::new(seed::plan(&store, number as u128).await.1));
    }
    let (mut to_bare, mut to_one, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let bare = bare().await;
        let one = spell(&store, &leases[..1]).await;
        let eight = spell(&store, &leases).await;
        to_bare.push(one / bare);
        to_one.push(eight / one);
        rates.push([bare, one, eight]);
    }
    let what = format!("{database}: transitions, one writer ÷ bare commits of one row");
    table.ratio(&what, Promise::AtLeast(0.6), &to_bare);
    let what = format!("{database}: transitions, eight writers ÷ one writer");
    table.ratio(&what, Promise::AtLeast(eight_bound), &to_one);
    let middle = |at: usize| median(&rates.iter().map(|rate| rate[at]).collect::<Vec<_>>());
    let shown = format!("{:.0} / {:.0} / {:.0} a second", middle(0), middle(1), middle(2));
    table.plain(&format!("{database}: bare / one writer / eight writers"), shown);
}

/// Returns how many transitions a second these writers commit, each on its own plan.
async fn spell(store: &Store, leases: &[Arc<PlanLease>]) -> f64 {
    let began = Instant::now();
    let mut writers = Vec::new();
    for lease in leases {
        let (store, lease) = (store.clone(), lease.clone());
        writers.push(drydock_engine::shield(async move { write(&store, &lease, began).await }));
    }
    let mut count = 0;
    for done in futures_util::future::join_all(writers).await {
        count += done;
    }
    count as f64 / began.elapsed().as_secs_f64()
}

/// Starts a run and takes it over, again and again: two transitions that leave the plan as small as it was.
async fn write(store: &Store, lease: &PlanLease, began: Instant) -> u64 {
    let mut count = 0;
    while began.elapsed() < SPELL {
        let number = u128::from(NEXT.fetch_add(1, Ordering::Relaxed));
        let run = RunId::from_random(seed::scattered(number));
        let enforcement = Enforcement::nothing(Phase::Strategize);
        let start =
            Command::Start(Start { run, base: "1".repeat(40), from: None, replaces: None, enforcement });
        for command in [start, Command::TakeOver(TakeOverCause::Interrupted, Remains::Work(None))] {
            let context = seed::context(seed::scattered(number));
            let judge = Box::new(move |snapshot: &_| decide(snapshot, command, &context));
            store.plan_transact(Leases::Plan(lease), judge).await.unwrap();
            count += 1;
        }
    }
    count
}

fn bare_sqlite(path: &Path) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.pragma_update(None, "journal_mode", "wal").unwrap();
    connection.pragma_update(None, "synchronous", "full").unwrap();
    connection
        .execute_batch("CREATE TABLE one (id INTEGER PRIMARY KEY, v INTEGER); INSERT INTO one VALUES (1, 0)")
        .unwrap();
    connection
}

fn bare_sqlite_spell(connection: &rusqlite::Connection) -> f64 {
    let began = Instant::now();
    let mut count = 0_u64;
    while began.elapsed() < SPELL {
        let mut update = connection.prepare_cached("UPDATE one SET v = v + 1 WHERE id = 1").unwrap();
        update.execute([]).unwrap();
        count += 1;
    }
    count as f64 / began.elapsed().as_secs_f64()
}

async fn bare_postgres(url: &str) -> tokio_postgres::Client {
    let (client, connection) = tokio_postgres::connect(url, tokio_postgres::NoTls).await.unwrap();
    drop(std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(connection)
    }));
    client
        .batch_execute("CREATE TABLE one (id BIGINT PRIMARY KEY, v BIGINT); INSERT INTO one VALUES (1, 0)")
        .await
        .unwrap();
    client
}

async fn bare_postgres_spell(client: Arc<tokio_postgres::Client>) -> f64 {
    let update = client.prepare("UPDATE one SET v = v + 1 WHERE id = 1").await.unwrap();
    let began = Instant::now();
    let mut count = 0_u64;
    while began.elapsed() < SPELL {
        client.execute(&update, &[]).await.unwrap();
        count += 1;
    }
    count as f64 / began.elapsed().as_secs_f64()
}
