//! Cost of reads: independent of the number of plans, because no statement scans a table or sorts.

use drydock_domain::{Phase, PlanId, State, Timestamp};
use drydock_testkit::postgres::Database;
use rusqlite::Connection;
use tempfile::TempDir;

use super::{Parent, PlanFilter};
use crate::tx::Dialect;
use crate::value::{Statement, Value};
use crate::{DecisionFilter, Options, Store, StoreUrl};

/// Returns SQLite's query plan of a statement, one line per step.
fn steps(connection: &Connection, statement: &Statement) -> String {
    let sql = format!("EXPLAIN QUERY PLAN {}", statement.sql.replace('$', "?"));
    let mut asked = connection.prepare(&sql).unwrap();
    let params = rusqlite::params_from_iter(&statement.params);
    let lines = asked.query_map(params, |row| row.get::<_, String>(3)).unwrap();
    lines.collect::<Result<Vec<_>, _>>().unwrap().join("\n")
}

/// Returns PostgreSQL's query plan of a statement, with sequential scans and sorts disabled where possible.
fn steps_on_server(database: &Database, statement: &Statement) -> String {
    let mut sql = statement.sql.to_string();
    for (place, value) in statement.params.iter().enumerate() {
        let literal = match value {
            Value::Int(number) => number.to_string(),
            Value::Text(text) => format!("'{text}'"),
            Value::Null | Value::Blob(_) => panic!("no list takes {value:?}"),
        };
        sql = sql.replace(&format!("${}", place + 1), &literal);
    }
    database.query(&format!(
        "SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off; EXPLAIN {sql}"
    ))
}

/// Fails if an index is missing, or does not end with the column that orders the list.
#[tokio::test]
async fn no_list_scans_or_sorts() {
    let server = drydock_testkit::postgres::database();
    let url = server.url().parse().unwrap();
    let _tables = Store::open(&url, Options::new(|| Timestamp::from_micros(0))).await.unwrap();
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("drydock.db");
    let options = Options::new(|| Timestamp::from_micros(0));
    let _store = Store::open(&StoreUrl::Sqlite(file.clone()), options).await.unwrap();
    let connection = Connection::open(file).unwrap();
    let plan = Some(PlanId::from_random(1));
    let filters = [
        PlanFilter { phase: Some(Phase::Apply), ..PlanFilter::default() },
        PlanFilter { state: Some(State::Queued), ..PlanFilter::default() },
        PlanFilter { project: Some("p".parse().unwrap()), ..PlanFilter::default() },
        PlanFilter { action: Some("a".parse().unwrap()), ..PlanFilter::default() },
        PlanFilter { parent: Some(Parent::Plan(PlanId::from_random(1))), ..PlanFilter::default() },
        PlanFilter { parent: Some(Parent::Nobody), state: Some(State::Queued), ..PlanFilter::default() },
    ];
    let mut searches = Vec::new();
    for filter in filters {
        searches.push(PlanFilter { after: Some(9), ..filter.clone() }.statement(Dialect::Sqlite));
        searches.push(filter.statement(Dialect::Sqlite));
    }
    searches.push(PlanFilter { after: Some(9), ..PlanFilter::default() }.statement(Dialect::Sqlite));
    searches.push(DecisionFilter { plan, ..DecisionFilter::default() }.statement());
    searches.push(crate::event::recent(&PlanId::from_random(1), 20));
    searches.push(Statement::new("SELECT body FROM plans WHERE id = $1", ["x".into()]));
    for search in &searches {
        let steps = steps(&connection, search);
        assert!(steps.starts_with("SEARCH") && !steps.contains("TEMP B-TREE"), "{}: {steps}", search.sql);
        let steps = steps_on_server(&server, search);
        let free = ["Seq Scan", "Sort", "Filter"].iter().all(|word| !steps.contains(word));
        assert!(free && steps.contains("Index Cond"), "{}: {steps}", search.sql);
    }
    // The word index is walked from the newest matching plan, and each plan is fetched by its number.
    for after in [None, Some(9)] {
        let filter = PlanFilter {
            text: Some("some words".to_owned()),
            state: Some(State::Queued),
            after,
            ..PlanFilter::default()
        };
        let search = filter.statement(Dialect::Sqlite);
        let steps = steps(&connection, &search);
        let is_walk =
            steps.contains("VIRTUAL TABLE INDEX") && steps.contains("SEARCH plans USING INTEGER PRIMARY KEY");
        assert!(is_walk && !steps.contains("TEMP B-TREE"), "{}: {steps}", search.sql);
    }
    // Without a filter the rows are walked from the newest, and the walk ends with the page.
    let walks = [
        PlanFilter::default().statement(Dialect::Sqlite),
        DecisionFilter::default().statement(),
        DecisionFilter { open_only: true, ..DecisionFilter::default() }.statement(),
    ];
    for walk in &walks {
        let steps = steps(&connection, walk);
        assert!(!steps.contains("TEMP B-TREE") && !steps.contains('\n'), "{}: {steps}", walk.sql);
    }
    assert!(steps(&connection, &walks[2]).contains("decisions_open"), "{}", steps(&connection, &walks[2]));
}
