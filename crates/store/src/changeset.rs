//! Changesets. A change is recorded through the handle that its writer got when it opened the changeset. A
//! "current" changeset does not exist, so no interleaving can add a change to another writer's (S3.1).

use std::collections::HashMap;

use drydock_domain::{
    ChangeOp, Changeset, ChangesetEntry, ChangesetId, ChangesetState, Event, IdPrefix, PathChange, PlanId,
    Refusal, RunId, State, StoredPlan,
};

use crate::event::{EventSubject, append};
use crate::find::{PrefixMatch, by_prefix};
use crate::lease::LeaseKey;
use crate::plan::{LeasedPlan, check_lease, shared};
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{CommitError, PlanLease, RecordError, Store, StoreError};

/// The right to record into one changeset, under the lease it was opened with. Only a store creates one.
#[derive(Debug)]
pub struct ChangesetHandle {
    id: ChangesetId,
    plan: PlanId,
    grip: LeaseKey,
}

impl ChangesetHandle {
    /// Returns the changeset's id.
    pub fn id(&self) -> &ChangesetId {
        &self.id
    }
}

impl Store {
    /// Opens a changeset for one writer in the plan's current run.
    pub fn changeset_open(
        &self,
        lease: &PlanLease,
        run: &RunId,
        writer: &str,
        id: ChangesetId,
    ) -> BoxFuture<'_, Result<ChangesetHandle, CommitError>> {
        let handle = ChangesetHandle { id, plan: lease.plan().clone(), grip: lease.grip().clone() };
        let (run, writer) = (run.clone(), writer.to_owned());
        Box::pin(async move { self.write(move |tx| Box::pin(open(tx, handle, run, writer))).await? })
    }

    /// Records all of the changes or none, and returns the number of entries in the changeset.
    pub fn changeset_record(
        &self,
        handle: &ChangesetHandle,
        changes: Vec<PathChange>,
    ) -> BoxFuture<'_, Result<i64, RecordError>> {
        let handle =
            ChangesetHandle { id: handle.id.clone(), plan: handle.plan.clone(), grip: handle.grip.clone() };
        Box::pin(async move { self.write(move |tx| Box::pin(record(tx, handle, changes))).await? })
    }

    /// Makes a changeset final, and returns the number of its entries.
    pub fn changeset_seal(&self, handle: ChangesetHandle) -> BoxFuture<'_, Result<i64, RecordError>> {
        Box::pin(async move { self.write(move |tx| Box::pin(seal(tx, handle))).await? })
    }

    /// Returns a plan's changesets with their entries, in the order they were opened (S3.3).
    pub fn changeset_list(&self, plan: &PlanId) -> BoxFuture<'_, Result<Vec<Changeset>, StoreError>> {
        let params = || [plan.as_str().into()];
        let wanted = vec![Statement::new(LIST, params()), Statement::new(LIST_ENTRIES, params())];
        Box::pin(self.read(move |tx| Box::pin(list(tx, wanted))))
    }

    /// Returns the changesets of one run of a plan with their entries, in the order they were opened.
    pub fn changeset_of_run(
        &self,
        plan: &PlanId,
        run: &RunId,
    ) -> BoxFuture<'_, Result<Vec<Changeset>, StoreError>> {
        let params = || [plan.as_str().into(), run.as_str().into()];
        let wanted = vec![Statement::new(OF_RUN, params()), Statement::new(OF_RUN_ENTRIES, params())];
        Box::pin(self.read(move |tx| Box::pin(list(tx, wanted))))
    }

    /// Returns the changeset whose id starts with this prefix.
    pub fn changeset_find(
        &self,
        prefix: &IdPrefix,
    ) -> BoxFuture<'_, Result<PrefixMatch<Changeset>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { find(tx, prefix).await })))
    }
}

async fn open(
    tx: &mut Tx<'_>,
    handle: ChangesetHandle,
    run: RunId,
    writer: String,
) -> Result<TxOutcome<Result<ChangesetHandle, CommitError>>, StoreError> {
    let refuse = |error| Ok(TxOutcome::Undo(Err(error)));
    let (plan, grip) = (handle.plan.clone(), std::slice::from_ref(&handle.grip));
    let Some(claimed) = check_lease(tx, &plan, grip).await? else {
        return refuse(CommitError::LeaseLost { plan, fence: handle.grip.fence });
    };
    let Some(snapshot) = claimed.snapshot else { return refuse(CommitError::PlanMissing(plan)) };
    if let Some(refusal) = not_running(&snapshot, &run) {
        return refuse(CommitError::Refused(refusal));
    }
    let sql = "INSERT INTO changesets (id, plan, run, writer, state, opened_at, entries)
        VALUES ($1, $2, $3, $4, 'open', drydock_now(), 0)";
    let params =
        [handle.id.as_str().into(), plan.as_str().into(), run.as_str().into(), writer.as_str().into()];
    let event = Event::ChangesetOpened { id: handle.id.clone(), writer };
    let about = EventSubject::plan(&snapshot.plan);
    tx.finish(vec![Statement::new(sql, params), append(&about, &event)]).await?;
    Ok(TxOutcome::Keep(Ok(handle)))
}

fn not_running(snapshot: &StoredPlan, run: &RunId) -> Option<Refusal> {
    let plan = &snapshot.plan;
    if plan.run.as_ref() != Some(run) {
        return Some(Refusal::StaleRun { given: run.clone(), current: plan.run.clone() });
    }
    let (phase, state) = (plan.stage.phase(), plan.stage.state());
    (state != State::Processing).then_some(Refusal::WrongStage { command: "record changes of", phase, state })
}

const ENTRY: &str = "INSERT INTO entries (changeset, seq, path, op, from_path, before, after, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, drydock_now())";

async fn record(
    tx: &mut Tx<'_>,
    handle: ChangesetHandle,
    changes: Vec<PathChange>,
) -> Result<TxOutcome<Result<i64, RecordError>>, StoreError> {
    tx.quiet();
    let (id, grip) = (handle.id, handle.grip);
    // The counter in the row numbers the entries. Updating it also locks the row, so that the changeset
    // cannot be sealed before the commit.
    let sql =
        "UPDATE changesets SET entries = entries + $2 WHERE id = $1 AND state = 'open' RETURNING entries";
    let count = i64::try_from(changes.len()).unwrap_or(i64::MAX);
    let mut statements = shared(tx, &grip);
    statements.push(Statement::new(sql, [id.as_str().into(), count.into()]));
    let answers = tx.pipeline(statements).await?;
    let [.., current, counted] = answers.as_slice() else {
        return Ok(TxOutcome::Undo(Err(RecordError::NotOpen { id })));
    };
    if current.is_empty() {
        return Ok(TxOutcome::Undo(Err(RecordError::LeaseLost { id })));
    }
    let [row] = counted.as_slice() else { return Ok(TxOutcome::Undo(Err(RecordError::NotOpen { id }))) };
    let total = row.int(0)?;
    let numbered = (total - count + 1..).zip(changes);
    let statements = numbered.map(|(seq, change)| {
        let params: [Value; 7] = [
            id.as_str().into(),
            seq.into(),
            change.path.into(),
            change.op.name().into(),
            change.from.into(),
            change.before.into(),
            change.after.into(),
        ];
        Statement::new(ENTRY, params)
    });
    tx.finish(statements.collect()).await?;
    Ok(TxOutcome::Keep(Ok(total)))
}

async fn seal(
    tx: &mut Tx<'_>,
    handle: ChangesetHandle,
) -> Result<TxOutcome<Result<i64, RecordError>>, StoreError> {
    let ChangesetHandle { id, plan, grip } = handle;
    let claimed = check_lease(tx, &plan, std::slice::from_ref(&grip)).await?;
    let Some(LeasedPlan { snapshot: Some(snapshot), open }) = claimed else {
        return Ok(TxOutcome::Undo(Err(RecordError::LeaseLost { id })));
    };
    let Some((_, entries)) = open.into_iter().find(|(open, _)| *open == id) else {
        return Ok(TxOutcome::Undo(Err(RecordError::NotOpen { id })));
    };
    let sql = "UPDATE changesets SET state = 'sealed' WHERE id = $1";
    let event =
        append(&EventSubject::plan(&snapshot.plan), &Event::ChangesetSealed { id: id.clone(), entries });
    tx.finish(vec![Statement::new(sql, [id.as_str().into()]), event]).await?;
    Ok(TxOutcome::Keep(Ok(entries)))
}

const LIST: &str = "SELECT id, plan, run, writer, state, opened_at, entries FROM changesets
    WHERE plan = $1 ORDER BY n";
const LIST_ENTRIES: &str = "SELECT changeset, e.seq, path, op, from_path, before, after, at
    FROM changesets c JOIN entries e ON e.changeset = c.id WHERE c.plan = $1 ORDER BY c.n, e.seq";
const OF_RUN: &str = "SELECT id, plan, run, writer, state, opened_at, entries FROM changesets
    WHERE plan = $1 AND run = $2 ORDER BY n";
const OF_RUN_ENTRIES: &str = "SELECT changeset, e.seq, path, op, from_path, before, after, at
    FROM changesets c JOIN entries e ON e.changeset = c.id WHERE c.plan = $1 AND c.run = $2 ORDER BY c.n, e.seq";
const FIND: &str = "SELECT id, plan, run, writer, state, opened_at, entries FROM changesets
    WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6";
const ENTRIES: &str = "SELECT changeset, seq, path, op, from_path, before, after, at FROM entries
    WHERE changeset = $1 ORDER BY seq";

/// Reads changesets and their entries; `wanted` has the statements in this order.
async fn list(tx: &mut Tx<'_>, wanted: Vec<Statement>) -> Result<Vec<Changeset>, StoreError> {
    let answers = tx.finish(wanted).await?;
    let [changesets, entries] = answers.as_slice() else { return Ok(Vec::new()) };
    let mut by_changeset: HashMap<&str, Vec<ChangesetEntry>> = HashMap::new();
    for row in entries {
        by_changeset.entry(row.text(0)?).or_default().push(entry_from(row)?);
    }
    let mut found = Vec::new();
    for row in changesets {
        let entries = by_changeset.remove(row.text(0)?).unwrap_or_default();
        found.push(changeset_from(row, entries)?);
    }
    Ok(found)
}

async fn find(tx: &mut Tx<'_>, prefix: IdPrefix) -> Result<PrefixMatch<Changeset>, StoreError> {
    let row = match by_prefix(tx, &prefix, FIND, |row| Ok(row.clone())).await? {
        PrefixMatch::One(row) => row,
        PrefixMatch::None => return Ok(PrefixMatch::None),
        PrefixMatch::Many(ids) => return Ok(PrefixMatch::Many(ids)),
    };
    let entries = tx.last(Statement::new(ENTRIES, [row.text(0)?.into()])).await?;
    let entries = entries.iter().map(entry_from).collect::<Result<_, _>>()?;
    changeset_from(&row, entries).map(PrefixMatch::One)
}

fn changeset_from(row: &Row, entries: Vec<ChangesetEntry>) -> Result<Changeset, StoreError> {
    let id = row.text(0)?;
    let damaged = |reason: String| StoreError::damaged("changesets", id, reason);
    let state = match row.text(4)? {
        "open" => ChangesetState::Open,
        "sealed" => ChangesetState::Sealed,
        other => return Err(damaged(format!("unknown state {other:?}"))),
    };
    Ok(Changeset {
        id: id.parse().map_err(|error| damaged(format!("{error}")))?,
        plan: row.text(1)?.parse().map_err(|error| damaged(format!("{error}")))?,
        run: row.text(2)?.parse().map_err(|error| damaged(format!("{error}")))?,
        writer: row.text(3)?.to_owned(),
        state,
        opened_at: row.time(5)?,
        entries,
    })
}

fn entry_from(row: &Row) -> Result<ChangesetEntry, StoreError> {
    let op = match row.text(3)? {
        "create" => ChangeOp::Create,
        "modify" => ChangeOp::Modify,
        "delete" => ChangeOp::Delete,
        "rename" => ChangeOp::Rename,
        other => {
            return Err(StoreError::damaged("entries", row.text(0)?, format!("unknown change {other:?}")));
        }
    };
    let owned = |column| row.text_or_null(column).map(|text| text.map(str::to_owned));
    let change = PathChange {
        path: row.text(2)?.to_owned(),
        op,
        from: owned(4)?,
        before: owned(5)?,
        after: owned(6)?,
    };
    Ok(ChangesetEntry { seq: row.int(1)?, change, at: row.time(7)? })
}
