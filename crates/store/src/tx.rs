//! One text of logic for both databases. What is written here waits for nothing on SQLite, whose futures are ready
//! at once, so that the writer thread can run a whole job without a runtime; on PostgreSQL it waits for the server.

use std::future::Future;
use std::pin::Pin;

use crate::StoreError;
use crate::crash::{CrashPoint, Faults};
use crate::value::{Row, Statement};

/// A future that is boxed, so that callers do not compile it again.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Rows of several statements, in order.
pub(crate) type Answers = Vec<Vec<Row>>;

/// Which database it is, where one text cannot serve both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

impl Dialect {
    /// Returns the words that keep others from writing the rows of a `SELECT`; SQLite has one writer anyway.
    pub(crate) fn for_update(self) -> &'static str {
        match self {
            Dialect::Sqlite => "",
            Dialect::Postgres => " FOR UPDATE",
        }
    }
}

/// What a batch of statements does to the transaction it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// More will come.
    Open,
    /// These are the last; on PostgreSQL the commit travels with them.
    Commit,
}

/// A transaction of either database. It begins with its first statement.
pub(crate) trait Sql: Send {
    /// Runs statements in order; on PostgreSQL without waiting in between.
    fn pipeline(
        &mut self,
        statements: Vec<Statement>,
        ending: Ending,
    ) -> BoxFuture<'_, Result<Answers, StoreError>>;

    fn dialect(&self) -> Dialect;
}

/// What becomes of a job's writes; both carry the job's answer.
#[derive(Debug)]
pub(crate) enum Verdict<T> {
    Keep(T),
    Undo(T),
}

/// A job: what to do inside one transaction.
pub(crate) trait Work<T>:
    for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<Verdict<T>, StoreError>> + Send + 'static
{
}

impl<T, F> Work<T> for F where
    F: for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<Verdict<T>, StoreError>> + Send + 'static
{
}

/// A look: what to read at one point in time.
pub(crate) trait Look<T>:
    for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'static
{
}

impl<T, F> Look<T> for F where
    F: for<'a, 'c> FnOnce(&'a mut Tx<'c>) -> BoxFuture<'a, Result<T, StoreError>> + Send + 'static
{
}

/// A transaction, with the faults that a test asked for.
pub(crate) struct Tx<'c> {
    sql: Box<dyn Sql + 'c>,
    faults: Faults,
    armed: bool,
    noise: Noise,
}

/// Whether those who watch the store should look after this commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Noise {
    Loud,
    Quiet,
}

impl<'c> Tx<'c> {
    pub(crate) fn new(sql: Box<dyn Sql + 'c>, faults: Faults) -> Self {
        Self { sql, faults, armed: false, noise: Noise::Loud }
    }

    pub(crate) fn dialect(&self) -> Dialect {
        self.sql.dialect()
    }

    /// Marks a write that nobody waits for.
    pub(crate) fn quiet(&mut self) {
        self.noise = Noise::Quiet;
    }

    pub(crate) fn noise(&self) -> Noise {
        self.noise
    }

    /// Says whether this is the commit of a transition in which a test asked for a fault.
    pub(crate) fn is_armed(&self) -> bool {
        self.armed
    }

    /// Runs one statement.
    pub(crate) async fn query(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.one(statement, Ending::Open).await
    }

    /// Runs one statement, after which more may come or not.
    pub(crate) async fn one(&mut self, statement: Statement, ending: Ending) -> Result<Vec<Row>, StoreError> {
        let mut answers = self.sql.pipeline(vec![statement], ending).await?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Runs statements in order.
    pub(crate) async fn pipeline(&mut self, statements: Vec<Statement>) -> Result<Answers, StoreError> {
        self.sql.pipeline(statements, Ending::Open).await
    }

    /// Runs one statement, the last of the transaction if it does what was wanted.
    pub(crate) async fn last(&mut self, statement: Statement) -> Result<Vec<Row>, StoreError> {
        self.one(statement, Ending::Commit).await
    }

    /// Runs statements in order, the last of the transaction.
    pub(crate) async fn finish(&mut self, statements: Vec<Statement>) -> Result<Answers, StoreError> {
        self.sql.pipeline(statements, Ending::Commit).await
    }

    /// Marks this transaction as the commit of a transition, which is where faults are asked for.
    pub(crate) async fn begin_transition(&mut self) -> Result<(), StoreError> {
        self.armed = self.faults.arm();
        if self.armed {
            // Makes the transaction begin, so that the first point lies inside it.
            self.sql.pipeline(Vec::new(), Ending::Open).await?;
        }
        self.point(CrashPoint::AfterBegin)
    }

    /// Dies or fails here when a test asked for it.
    pub(crate) fn point(&self, point: CrashPoint) -> Result<(), StoreError> {
        if self.armed { self.faults.hit(point) } else { Ok(()) }
    }

    /// Runs the steps of a transition: all at once with the commit, or one by one when a fault lies between.
    pub(crate) async fn finish_steps(&mut self, steps: Vec<Step>) -> Result<(), StoreError> {
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

/// Statements of a transition, and the point that lies behind them.
pub(crate) struct Step {
    pub(crate) statements: Vec<Statement>,
    pub(crate) then: CrashPoint,
}
