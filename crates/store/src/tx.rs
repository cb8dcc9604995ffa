//! One implementation of the transaction logic for both databases. On SQLite all futures are ready
//! immediately, so that the writer thread can run a whole job without an async runtime. On PostgreSQL they
//! wait for the server.

use crate::StoreError;
use crate::crash::{CrashPoint, Faults};
use crate::value::{Row, Statement};

/// Boxing keeps callers from compiling the future again.
pub use futures_util::future::BoxFuture;

/// The rows of several statements, in order.
pub(crate) type ResultSets = Vec<Vec<Row>>;

/// The database, where one SQL text cannot serve both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Returns the SQL suffix that locks the rows of a `SELECT`. SQLite needs none, because it has a single
    /// writer.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE",
        }
    }
}

/// Whether a batch of statements ends its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchEnd {
    /// More statements follow.
    Open,
    /// These are the last statements; on PostgreSQL the commit is sent with them.
    Commit,
}

/// A transaction on either database. It begins with its first statement.
pub(crate) trait Sql: Send {
    /// Runs statements in order; on PostgreSQL without waiting for each response.
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        ending: BatchEnd,
    ) -> BoxFuture<'_, Result<ResultSets, StoreError>>;

    fn dialect(&self) -> Dialect;
}

/// Whether a job's writes are committed or rolled back; both carry the job's result.
#[derive(Debug)]
pub(crate) enum TxOutcome<T> {
    Keep(T),
    Undo(T),
}

/// A write job: the function to run inside one transaction.
pub(crate) trait WriteFn<T>:
    for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<TxOutcome<T>, StoreError>> + Send + 'static
{
}

impl<T, F> WriteFn<T> for F where
    F: for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<TxOutcome<T>, StoreError>> + Send + 'static
{
}

/// A read: the function to run at one point in time.
pub(crate) trait ReadFn<T>:
    for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'static
{
}

impl<T, F> ReadFn<T> for F where
    F: for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'static
{
}

/// A transaction, with the faults that a test requested.
pub(crate) struct Tx<'c> {
    sql: Box<dyn Sql + 'c>,
    faults: Faults,
    armed: bool,
    noise: WakeMode,
}

/// Whether the commit wakes the watchers of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WakeMode {
    Loud,
    Quiet,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(sql: Box<dyn Sql + 'c>, faults: Faults) -> Self {
        Self { sql, faults, armed: false, noise: WakeMode::Loud }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    /// Marks the transaction as one that does not wake watchers.
    pub(crate) fn quiet(&mut self) {
        self.noise = WakeMode::Quiet;
    }

    pub(crate) fn noise(&self) -> WakeMode {
        self.noise
    }

    /// Returns true if this is the commit of a transition for which a test requested a fault.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    pub(crate) async fn query(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.one(statement, BatchEnd::Open).await
    }

    /// Runs one statement; `ending` states whether more statements follow.
    pub(crate) async fn one(
        &mut self,
        statement: Statement,
        ending: BatchEnd,
    ) -> Result<Vec<Row>, StoreError> {
        let mut answers = self.sql.pipeline(vec![statement], ending).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    pub(crate) async fn pipeline(&mut self, statements: Vec<Statement>) -> Result<ResultSets, StoreError> {
        self.sql.pipeline(statements, BatchEnd::Open).await
    }

    /// Runs one statement, usually the last of the transaction.
    pub(crate) async fn last(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.one(statement, BatchEnd::Commit).await
    }

    /// Runs statements in order, as the last ones of the transaction.
    pub(crate) async fn finish(&mut self, statements: Vec<Statement>) -> Result<ResultSets, StoreError> {
        self.sql.pipeline(statements, BatchEnd::Commit).await
    }

    /// Marks this transaction as the commit of a transition, to which requested faults apply.
    pub(crate) async fn begin_transition(&mut self) -> Result<(), StoreError> {
        self.armed = self.faults.arm();
        if self.armed {
            // Makes the transaction begin, so that the first crash point is inside it.
            self.sql.pipeline(Vec::new(), BatchEnd::Open).await?;
        }
        self.point(CrashPoint::AfterBegin)
    }

    /// Crashes or fails here if a test requested it.
    pub(crate) fn point(&self, point: CrashPoint) -> Result<(), StoreError> {
        if self.armed { self.faults.hit(point) } else { Ok(()) }
    }

    /// Runs the steps of a transition: all at once with the commit, or one by one if a fault was requested.
    pub(crate) async fn finish_steps(&mut self, steps: Vec<CommitStep>) -> Result<(), StoreError> {
        if !self.armed {
            let statements = steps.into_iter().flat_map(|step| step.statements).collect();
            return self.finish(statements).await.map(drop);
        }
        for step in steps {
            self.pipeline(step.statements).await?;
            self.point(step.then)?;
        }
        Ok(())
    }
}

/// The statements of one step of a transition, and the crash point after them.
pub(crate) struct CommitStep {
    pub(crate) statements: Vec<Statement>,
    pub(crate) then: CrashPoint,
}
