//! A transaction on one connection. `BEGIN` is sent with the first statement, and `COMMIT` with the last
//! ones, so that a transition takes two round trips regardless of the number of statements.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;

use deadpool_postgres::Object;
use futures_util::future::{maybe_done, try_join_all};
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Error, Row as PgRow};

use super::fault::classify;
use crate::StoreError;
use crate::tx::{BatchEnd, BoxFuture, Dialect, ResultSets, Sql};
use crate::value::{Row, Statement, Value};

/// Maximum number of pipelined statements.
const FLIGHT_MAX: usize = 64;

/// The mode of a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TxKind {
    /// Each statement sees the rows committed when it starts; the important rows are locked.
    Write,
    /// Every statement sees the same point in time.
    Look,
}

impl TxKind {
    fn sql(self) -> &'static str {
        match self {
            TxKind::Write => "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
            TxKind::Look => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        }
    }
}

/// A connection, and whether a transaction is open on it.
pub(crate) struct PgConnection<'p> {
    client: Option<Object>,
    open: bool,
    begin: TxKind,
    place: &'p str,
}

impl<'p> PgConnection<'p> {
    pub(crate) fn new(client: Object, begin: TxKind, place: &'p str) -> Self {
        Self { client: Some(client), open: false, begin, place }
    }

    pub(crate) async fn commit(&mut self) -> Result<(), StoreError> {
        self.end("COMMIT").await
    }

    pub(crate) async fn roll_back(&mut self) -> Result<(), StoreError> {
        self.end("ROLLBACK").await
    }

    async fn end(&mut self, sql: &str) -> Result<(), StoreError> {
        if !self.open {
            return Ok(());
        }
        let ended = self.client().batch_execute(sql).await;
        ended.map_err(|error| classify(self.place, "end a transaction", error))?;
        self.open = false;
        Ok(())
    }

    fn client(&self) -> &Object {
        self.client.as_ref().expect("only dropping takes the connection away")
    }

    async fn run(&mut self, statements: Vec<Statement>, ending: BatchEnd) -> Result<ResultSets, StoreError> {
        // A single statement needs no explicit transaction.
        let alone = !self.open && statements.len() == 1 && ending == BatchEnd::Commit;
        let begins = !self.open && !alone;
        let start = begins.then_some(self.begin);
        self.open |= begins;
        let ending = if alone { BatchEnd::Open } else { ending };
        let mut reached = BatchEnd::Open;
        let answers = self.send_pipelined(&statements, start, ending, &mut reached).await;
        if reached == BatchEnd::Commit {
            // In every error case the server has ended the transaction, or the connection is broken.
            self.open = false;
        }
        answers.map_err(|error| classify(self.place, "run a statement", error))
    }

    /// Sends the statements and then the commit, unless a statement fails first. Sets `reached` if the commit
    /// was sent.
    async fn send_pipelined(
        &self,
        statements: &[Statement],
        start: Option<TxKind>,
        ending: BatchEnd,
        reached: &mut BatchEnd,
    ) -> Result<ResultSets, Error> {
        let client = self.client();
        let prepared = try_join_all(statements.iter().map(|one| client.prepare_cached(&one.sql))).await?;
        let mut flight: Vec<BoxFuture<'_, Result<Option<Vec<PgRow>>, Error>>> = Vec::new();
        if let Some(begin) = start.map(TxKind::sql) {
            flight.push(Box::pin(async move { client.batch_execute(begin).await.map(|()| None) }));
        }
        let mut answers = Vec::with_capacity(statements.len());
        for (statement, prepared) in statements.iter().zip(&prepared) {
            flight.push(Box::pin(async move {
                let params: Vec<_> =
                    statement.params.iter().map(|value| value as &(dyn ToSql + Sync)).collect();
                client.query(prepared, &params).await.map(Some)
            }));
            if flight.len() >= FLIGHT_MAX {
                collect_results(std::mem::take(&mut flight), &mut answers).await?;
            }
        }
        if ending == BatchEnd::Commit {
            *reached = BatchEnd::Commit;
            flight.push(Box::pin(async move { client.batch_execute("COMMIT").await.map(|()| None) }));
        }
        collect_results(flight, &mut answers).await?;
        Ok(answers)
    }
}

impl Drop for PgConnection<'_> {
    fn drop(&mut self) {
        if self.open
            && let Some(client) = self.client.take()
        {
            // Dropped halfway: the connection must not return to the pool with an open transaction.
            drop(Object::take(client));
        }
    }
}

/// Sends everything in order, waits for all responses, and returns the first error.
async fn collect_results(
    flight: Vec<BoxFuture<'_, Result<Option<Vec<PgRow>>, Error>>>,
    answers: &mut ResultSets,
) -> Result<(), Error> {
    let mut flight: Vec<_> = flight.into_iter().map(maybe_done).collect();
    // A future sends its statement when it is first polled, so polling in order keeps the statements in
    // order.
    poll_fn(|context| {
        let mut landed = true;
        for one in &mut flight {
            landed &= Pin::new(one).poll(context).is_ready();
        }
        if landed { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    for mut one in flight {
        match Pin::new(&mut one).take_output() {
            Some(Ok(Some(rows))) => answers.push(rows.iter().map(row_from).collect::<Result<_, _>>()?),
            Some(Ok(None)) | None => {}
            Some(Err(error)) => return Err(error),
        }
    }
    Ok(())
}

/// A session borrowed by a job.
pub(crate) struct PgTx<'s, 'p> {
    pub(crate) session: &'s mut PgConnection<'p>,
}

impl Sql for PgTx<'_, '_> {
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        ending: BatchEnd,
    ) -> BoxFuture<'_, Result<ResultSets, StoreError>> {
        Box::pin(self.session.run(statements, ending))
    }

    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }
}

fn row_from(row: &PgRow) -> Result<Row, Error> {
    (0..row.len()).map(|column| row.try_get::<_, Value>(column)).collect::<Result<_, _>>().map(Row)
}

type BoxError = Box<dyn std::error::Error + Sync + Send>;

impl<'a> FromSql<'a> for Value {
    fn from_sql(kind: &Type, raw: &'a [u8]) -> Result<Self, BoxError> {
        match *kind {
            Type::INT8 => i64::from_sql(kind, raw).map(Value::Int),
            Type::INT4 => i32::from_sql(kind, raw).map(|value| Value::Int(value.into())),
            Type::BYTEA => Ok(Value::Blob(raw.to_vec())),
            _ => String::from_sql(kind, raw).map(Value::Text),
        }
    }

    fn from_sql_null(_: &Type) -> Result<Self, BoxError> {
        Ok(Value::Null)
    }

    fn accepts(kind: &Type) -> bool {
        matches!(*kind, Type::INT8 | Type::INT4 | Type::BYTEA | Type::TEXT | Type::VARCHAR | Type::NAME)
    }
}

impl ToSql for Value {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut tokio_postgres::types::private::BytesMut,
    ) -> Result<IsNull, BoxError> {
        match self {
            Value::Null => Ok(IsNull::Yes),
            Value::Int(value) if *kind == Type::INT4 => i32::try_from(*value)?.to_sql(kind, out),
            Value::Int(value) if *kind == Type::INT8 => value.to_sql(kind, out),
            Value::Text(value) if *kind == Type::TEXT => value.to_sql(kind, out),
            Value::Blob(value) if *kind == Type::BYTEA => value.to_sql(kind, out),
            other => Err(format!("{other:?} does not fit a parameter of type {kind}").into()),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}
