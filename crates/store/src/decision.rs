//! Reading decisions. They are written only as part of a transition, so that no plan waits without its question.

use drydock_domain::{Decision, IdPrefix, PlanId};

use crate::find::{Found, Page, by_prefix, page_size};
use crate::plan::row::decision_from;
use crate::tx::BoxFuture;
use crate::value::{Statement, Value};
use crate::{Store, StoreError};

/// Which decisions to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFilter {
    /// Only those that still wait.
    pub open_only: bool,
    /// Only those of this plan.
    pub plan: Option<PlanId>,
    /// At most so many; 50 by default, 1000 at most.
    pub limit: i64,
    /// Only those behind this cursor, which a page gave.
    pub after: Option<i64>,
}

impl Default for DecisionFilter {
    fn default() -> Self {
        Self { open_only: false, plan: None, limit: 50, after: None }
    }
}

impl DecisionFilter {
    pub(crate) fn statement(&self) -> Statement {
        let mut sql = "SELECT n, id, plan, status, body FROM decisions WHERE true".to_owned();
        let mut params: Vec<Value> = Vec::new();
        if self.open_only {
            sql.push_str(" AND status = 'open'");
        }
        if let Some(plan) = &self.plan {
            params.push(plan.as_str().into());
            sql.push_str(&format!(" AND plan = ${}", params.len()));
        }
        if let Some(after) = self.after {
            params.push(after.into());
            sql.push_str(&format!(" AND n < ${}", params.len()));
        }
        params.push((page_size(self.limit) + 1).into());
        sql.push_str(&format!(" ORDER BY n DESC LIMIT ${}", params.len()));
        Statement::composed(sql, params)
    }
}

const FIND: &str =
    "SELECT id, plan, status, body FROM decisions WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6";

impl Store {
    /// Returns the decision whose id begins like this.
    pub fn decision_find(&self, prefix: &IdPrefix) -> BoxFuture<'_, Result<Found<Decision>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move { by_prefix(tx, &prefix, FIND, |row| decision_from(row, 0)).await })
        }))
    }

    /// Returns decisions, newest first.
    pub fn decision_list(
        &self,
        filter: &DecisionFilter,
    ) -> BoxFuture<'_, Result<Page<Decision>, StoreError>> {
        let (statement, limit) = (filter.statement(), page_size(filter.limit));
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(statement).await?;
                Page::of(&rows, limit, |row| decision_from(row, 1))
            })
        }))
    }
}
