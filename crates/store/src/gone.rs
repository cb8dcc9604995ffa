//! Frees the locks and claims of processes that are gone. The caller proves that a process is gone. One
//! transaction frees everything it held: locks of plans and projects, and claims.

use drydock_domain::{LockId, ProcessIdentity};

use crate::lease::identity_text;
use crate::plan::row::parse;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// A process that holds locks or claims.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HoldingProcess {
    /// The process.
    pub process: ProcessIdentity,
    /// The locks that it holds; may be empty.
    pub locks: Vec<LockId>,
}

const HOLDING: &str = "SELECT process, id FROM locks WHERE owner IS NOT NULL AND process IS NOT NULL
    UNION ALL SELECT process, NULL FROM outbox WHERE claimed_by IS NOT NULL AND process IS NOT NULL";

impl Store {
    /// Returns the processes that hold locks or claims, as far as they are known.
    pub fn processes_holding(&self) -> BoxFuture<'_, Result<Vec<HoldingProcess>, StoreError>> {
        Box::pin(
            self.read(|tx| Box::pin(async move { grouped(&tx.last(Statement::new(HOLDING, [])).await?) })),
        )
    }

    /// Frees these locks of a process that is gone, and all its claims, in one transaction. A lock that
    /// another process acquired meanwhile has another id and stays. Returns the number of locks freed by this
    /// call: of several concurrent calls, exactly one frees each lock.
    pub fn process_free(&self, gone: &HoldingProcess) -> BoxFuture<'_, Result<usize, StoreError>> {
        let gone = gone.clone();
        Box::pin(self.write(move |tx| Box::pin(free(tx, gone))))
    }
}

fn grouped(rows: &[Row]) -> Result<Vec<HoldingProcess>, StoreError> {
    let mut found: Vec<HoldingProcess> = Vec::new();
    for row in rows {
        let (process, id) = (row.text(0)?, row.text_or_null(1)?);
        let key = id.unwrap_or("a claim");
        let process: ProcessIdentity = parse("locks", key, process)?;
        let lock = id.map(|id| id.parse::<LockId>()).transpose();
        let lock = lock.map_err(|error| StoreError::damaged("locks", key, format!("{error}")))?;
        match found.iter_mut().find(|one| one.process == process) {
            Some(one) => one.locks.extend(lock),
            None => found.push(HoldingProcess { process, locks: lock.into_iter().collect() }),
        }
    }
    Ok(found)
}

async fn free(tx: &mut Tx<'_>, gone: HoldingProcess) -> Result<TxOutcome<usize>, StoreError> {
    let process = identity_text(&gone.process);
    let claims = "UPDATE outbox SET ready_at = drydock_now(), claimed_by = NULL, process = NULL
        WHERE process = $1 AND claimed_by IS NOT NULL";
    let mut statements = Vec::new();
    if !gone.locks.is_empty() {
        let mut params: Vec<Value> = vec![process.as_str().into()];
        params.extend(gone.locks.iter().map(|id| Value::from(id.as_str())));
        let places: Vec<_> = (2..=params.len()).map(|at| format!("${at}")).collect();
        let sql = format!(
            "UPDATE locks SET owner = NULL, expires_at = 0
             WHERE process = $1 AND owner IS NOT NULL AND id IN ({}) RETURNING fence",
            places.join(", ")
        );
        statements.push(Statement::composed(sql, params));
    }
    let freed_at = statements.len();
    statements.push(Statement::new(claims, [process.as_str().into()]));
    let answers = tx.finish(statements).await?;
    Ok(TxOutcome::Keep(if freed_at == 0 { 0 } else { answers.first().map_or(0, Vec::len) }))
}
