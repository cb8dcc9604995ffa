//! `plan list` (50 rows) and `plan show` with a million plans stored against the same with a thousand.

use std::path::Path;
use std::time::Instant;

use drydock_domain::{Plan, PlanId};
use drydock_store::{PlanFilter, Store, StoreUrl};
use drydock_testkit::postgres;

use crate::measure::{Promise, Table, median};
use crate::seed;

const FEW: u128 = 1_000;
const MANY: u128 = 1_000_000;
const ROUNDS: usize = 9;
const LOOKS: usize = 60;
const COLUMNS: &str =
    "id, phase, state, project, action, parent, root, revision, created_at, updated_at, body";

pub(crate) async fn run(table: &mut Table) {
    let world = tempfile::tempdir().unwrap();
    let mut stores = Vec::new();
    for count in [FEW, MANY] {
        let path = world.path().join(format!("{count}.db"));
        let store = seed::open(&StoreUrl::Sqlite(path.clone())).await;
        let (plan, _lease) = seed::plan(&store, 0).await;
        fill_sqlite(&path, &plan, count);
        stores.push(store);
    }
    compare(table, "SQLite", &stores[0], &stores[1]).await;

    let (few, many) = (postgres::database(), postgres::database());
    let mut stores = Vec::new();
    for (database, count) in [(&few, FEW), (&many, MANY)] {
        let store = seed::open(&database.url().parse().unwrap()).await;
        let (plan, _lease) = seed::plan(&store, 0).await;
        fill_postgres(database, &plan, count);
        stores.push(store);
    }
    compare(table, "PostgreSQL", &stores[0], &stores[1]).await;
}

async fn compare(table: &mut Table, database: &str, few: &Store, many: &Store) {
    let (mut listed, mut shown) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        listed.push(list(many).await / list(few).await);
        shown.push(show(many, MANY).await / show(few, FEW).await);
    }
    let what = format!("{database}: `plan list` with 1,000,000 plans ÷ with 1,000");
    table.ratio(&what, Promise::AtMost(1.5), &listed);
    let what = format!("{database}: `plan show` with 1,000,000 plans ÷ with 1,000");
    table.ratio(&what, Promise::AtMost(1.5), &shown);
}

async fn list(store: &Store) -> f64 {
    let mut times = Vec::new();
    for _ in 0..LOOKS {
        let began = Instant::now();
        let page = store.plan_list(&PlanFilter::default()).await.unwrap();
        times.push(began.elapsed().as_secs_f64());
        assert_eq!(page.items.len(), 50);
    }
    median(&times)
}

async fn show(store: &Store, count: u128) -> f64 {
    let mut times = Vec::new();
    for look in 0..LOOKS {
        // A few plans seen again and again, as a person does, so that both sides find them in the cache.
        let id = PlanId::from_random(seed::scattered((look as u128 % 8) * (count / 8)));
        let began = Instant::now();
        let plan = store.plan_fetch(&id).await.unwrap();
        times.push(began.elapsed().as_secs_f64());
        assert!(plan.is_some());
    }
    median(&times)
}

/// Returns the row of the plan under another id.
fn row(plan: &Plan, number: u128) -> (String, String) {
    let mut other = plan.clone();
    other.id = PlanId::from_random(seed::scattered(number));
    other.root = other.id.clone();
    let body = serde_json::to_string(&other).unwrap();
    (other.id.to_string(), body)
}

/// Stores the plan so many times in all, each under an id of its own.
pub(crate) fn fill_sqlite(path: &Path, plan: &Plan, count: u128) {
    let mut connection = rusqlite::Connection::open(path).unwrap();
    let tx = connection.transaction().unwrap();
    let sql = format!(
        "INSERT INTO plans ({COLUMNS}) SELECT ?1, phase, state, project, action, parent, ?1, revision, created_at, \
         updated_at, ?2 FROM plans WHERE id = ?3"
    );
    let mut insert = tx.prepare(&sql).unwrap();
    for number in 1..count {
        let (id, body) = row(plan, number);
        insert.execute([&id, &body, plan.id.as_str()]).unwrap();
    }
    drop(insert);
    tx.commit().unwrap();
    connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
}

/// The same on PostgreSQL.
pub(crate) fn fill_postgres(database: &postgres::Database, plan: &Plan, count: u128) {
    let file = tempfile::NamedTempFile::new().unwrap();
    {
        use std::io::Write;
        let mut out = std::io::BufWriter::new(file.as_file());
        for number in 1..count {
            let (id, body) = row(plan, number);
            let stage = (plan.stage.phase(), plan.stage.state());
            let at = plan.created_at.as_micros();
            // The text form of COPY: a backslash in the JSON must be doubled.
            let body = body.replace('\\', "\\\\");
            writeln!(
                out,
                "{id}\t{}\t{}\t{}\t{}\t\\N\t{id}\t{}\t{at}\t{at}\t{body}",
                stage.0, stage.1, plan.spec.project, plan.spec.action, plan.revision
            )
            .unwrap();
        }
        out.flush().unwrap();
    }
    database.load(&format!("\\copy plans ({COLUMNS}) from '{}'", file.path().display()));
    database.load("VACUUM ANALYZE plans");
}
