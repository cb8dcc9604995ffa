//! Locks as seen by processes that do not hold them: list, find, and break with a reason (S1.6, S1.7).

use drydock_domain::{Event, Fence, Holder, IdPrefix, Lock, LockId, LockScope, ProcessIdentity};
use serde_json::Value as Json;

use crate::event::{EventSubject, append_with};
use crate::find::{PrefixMatch, by_prefix};
use crate::plan::row::parse;
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement};
use crate::{Store, StoreError};

pub(crate) const LOCK_COLUMNS: &str = "id, scope, key, owner, host, pid, purpose, fence, acquired_at, expires_at, \
    CAST(CASE WHEN expires_at <= drydock_now() THEN 1 ELSE 0 END AS BIGINT), process";

pub(crate) fn lock_from(row: &Row) -> Result<Lock, StoreError> {
    let key = row.text(2)?.to_owned();
    let damaged = |reason: String| StoreError::damaged("locks", key.clone(), reason);
    let scope = match row.text(1)? {
        "plan" => LockScope::Plan,
        "project" => LockScope::Project,
        other => return Err(damaged(format!("unknown scope {other:?}"))),
    };
    let process = match row.text_or_null(11)? {
        Some(text) => parse("locks", &key, text)?,
        // An older program version acquired it and did not write this column.
        None => {
            let pid = u32::try_from(row.int(5)?).map_err(|error| damaged(error.to_string()))?;
            ProcessIdentity::unproven(row.text(4)?, pid)
        }
    };
    Ok(Lock {
        id: row.text(0)?.parse().map_err(|error| damaged(format!("{error}")))?,
        scope,
        holder: Holder { owner: row.text(3)?.to_owned(), process, purpose: row.text(6)?.to_owned() },
        fence: Fence(row.int(7)?),
        acquired_at: row.time(8)?,
        expires_at: row.time(9)?,
        stale: row.int(10)? != 0,
        key,
    })
}

impl Store {
    /// Returns every held lock, including stale ones.
    pub fn lock_list(&self) -> BoxFuture<'_, Result<Vec<Lock>, StoreError>> {
        Box::pin(self.read(|tx| {
            Box::pin(async move {
                let sql = format!("SELECT {LOCK_COLUMNS} FROM locks WHERE owner IS NOT NULL ORDER BY id");
                tx.last(Statement::composed(sql, Vec::new())).await?.iter().map(lock_from).collect()
            })
        }))
    }

    /// Returns the held lock whose id starts with this prefix.
    pub fn lock_find(&self, prefix: &IdPrefix) -> BoxFuture<'_, Result<PrefixMatch<Lock>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { by_prefix(tx, &prefix, FIND, lock_from).await })))
    }

    /// Frees a held lock and increments its fence, so that its holder can no longer commit, and appends an
    /// event to the feed. Returns the lock as it was, or `None` if it is no longer held.
    pub fn lock_break(
        &self,
        id: &LockId,
        reason: &str,
        by: &str,
    ) -> BoxFuture<'_, Result<Option<Lock>, StoreError>> {
        let (id, reason, by) = (id.clone(), reason.to_owned(), by.to_owned());
        Box::pin(self.write(move |tx| Box::pin(break_lock(tx, id, reason, by))))
    }
}

const FIND: &str = "SELECT id, scope, key, owner, host, pid, purpose, fence, acquired_at, expires_at,
    CAST(CASE WHEN expires_at <= drydock_now() THEN 1 ELSE 0 END AS BIGINT), process
    FROM locks WHERE id >= $1 AND id < $2 AND owner IS NOT NULL ORDER BY id LIMIT 6";

async fn break_lock(
    tx: &mut Tx<'_>,
    id: LockId,
    reason: String,
    by: String,
) -> Result<TxOutcome<Option<Lock>>, StoreError> {
    let waiting = tx.dialect().for_update();
    let sql = format!("SELECT {LOCK_COLUMNS} FROM locks WHERE id = $1 AND owner IS NOT NULL{waiting}");
    let rows = tx.query(Statement::composed(sql, vec![id.as_str().into()])).await?;
    let [row] = rows.as_slice() else { return Ok(TxOutcome::Undo(None)) };
    let lock = lock_from(row)?;
    let about = match lock.scope {
        LockScope::Plan => EventSubject::of_stored(tx, &lock.key).await?,
        LockScope::Project => EventSubject::nothing(),
    };
    let event = Event::LockBroken { owner: lock.holder.owner.clone(), reason };
    let more = [
        ("by", Json::from(by)),
        ("scope", Json::from(lock.scope.name())),
        ("key", Json::from(lock.key.as_str())),
    ];
    let free =
        "UPDATE locks SET owner = NULL, fence = fence + 1, expires_at = 0 WHERE scope = $1 AND key = $2";
    let free = Statement::new(free, [lock.scope.name().into(), lock.key.as_str().into()]);
    tx.finish(vec![free, append_with(&about, &event, more)]).await?;
    Ok(TxOutcome::Keep(Some(lock)))
}
