//! Reads decisions. They are written only as part of a transition, so that no plan can wait without a stored
//! question.

use drydock_domain::{Decision, IdPrefix, PlanId};

use crate::find::{Page, PrefixMatch, by_prefix, page_size};
use crate::plan::row::decision_from;
use crate::tx::BoxFuture;
use crate::value::{Statement, Value};
use crate::{Store, StoreError};

/// The order of listed decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DecisionOrder {
    /// Newest first.
    #[default]
    Newest,
    /// Questions from agents first and gates last; within each group, oldest first.
    Need,
}

/// The sort key for [`DecisionOrder::Need`]: urgency and row number in one integer, used for ordering and for
/// paging. Decisions that an agent waits for come first, then failures, then gates, of which a profile may
/// open thousands.
const NEED: &str = "(CASE kind WHEN 'agent' THEN 0 WHEN 'permission' THEN 0 WHEN 'gate' THEN 2 ELSE 1 END * 1152921504606846976 + n)";

/// Which decisions to list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionFilter {
    /// Only open decisions.
    pub open_only: bool,
    /// Only decisions of this plan.
    pub plan: Option<PlanId>,
    /// Only decisions with these ids.
    pub ids: Option<Vec<String>>,
    /// The order.
    pub order: DecisionOrder,
    /// Maximum number of decisions; default 50, at most 1000.
    pub limit: i64,
    /// Only decisions after this cursor, taken from a previous page.
    pub after: Option<i64>,
}

impl Default for DecisionFilter {
    fn default() -> Self {
        Self { open_only: false, plan: None, ids: None, order: DecisionOrder::Newest, limit: 50, after: None }
    }
}

impl DecisionFilter {
    pub(crate) fn statement(&self) -> Statement {
        let (place, follows, direction) = match self.order {
            DecisionOrder::Newest => ("n", "<", "DESC"),
            DecisionOrder::Need => (NEED, ">", "ASC"),
        };
        let (matching, mut params) = self.matching();
        let mut sql = format!("SELECT {place}, id, plan, status, body FROM decisions WHERE {matching}");
        if let Some(after) = self.after {
            params.push(after.into());
            sql.push_str(&format!(" AND {place} {follows} ${}", params.len()));
        }
        params.push((page_size(self.limit) + 1).into());
        sql.push_str(&format!(" ORDER BY {place} {direction} LIMIT ${}", params.len()));
        Statement::composed(sql, params)
    }

    fn count(&self) -> Statement {
        let (matching, params) = self.matching();
        Statement::composed(format!("SELECT count(*) FROM decisions WHERE {matching}"), params)
    }

    /// Returns the condition that all pages share, and its parameters.
    fn matching(&self) -> (String, Vec<Value>) {
        let (mut sql, mut params) = ("true".to_owned(), Vec::<Value>::new());
        if self.open_only {
            sql.push_str(" AND status = 'open'");
        }
        if let Some(plan) = &self.plan {
            params.push(plan.as_str().into());
            sql.push_str(&format!(" AND plan = ${}", params.len()));
        }
        if let Some(ids) = &self.ids {
            let first = params.len() + 1;
            params.extend(ids.iter().map(|id| Value::from(id.as_str())));
            let places: Vec<_> = (first..=params.len()).map(|place| format!("${place}")).collect();
            sql.push_str(&format!(" AND id IN ({})", places.join(", ")));
        }
        (sql, params)
    }
}

const FIND: &str =
    "SELECT id, plan, status, body FROM decisions WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6";

impl Store {
    /// Returns the decision whose id starts with this prefix.
    pub fn decision_find(
        &self,
        prefix: &IdPrefix,
    ) -> BoxFuture<'_, Result<PrefixMatch<Decision>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move { by_prefix(tx, &prefix, FIND, |row| decision_from(row, 0)).await })
        }))
    }

    /// Returns the number of decisions on all pages of a list.
    pub fn decision_count(&self, filter: &DecisionFilter) -> BoxFuture<'_, Result<u64, StoreError>> {
        let statement = filter.count();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(statement).await?;
                let count = rows.first().map(|row| row.int(0)).transpose()?.unwrap_or_default();
                Ok(u64::try_from(count).unwrap_or_default())
            })
        }))
    }

    /// Returns one page of decisions.
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
