//! Reads plans. Nothing is cached: the next read sees every commit of other processes (S2.1).

use std::collections::BTreeMap;

use drydock_domain::{IdPrefix, Name, Phase, Plan, PlanId, State, StoredPlan};

use super::claim::snapshot_from;
use super::row::{PLAN_COLUMNS, plan_from};
use crate::find::{Page, PrefixMatch, by_prefix, page_size};
use crate::tx::{BoxFuture, Dialect, Tx};
use crate::value::{Statement, Value};
use crate::{Store, StoreError};

/// Maximum number of words in a text search.
const WORDS_MAX: usize = 8;

/// Which plans to list, newest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanFilter {
    /// Only plans in this phase.
    pub phase: Option<Phase>,
    /// Only plans in this state.
    pub state: Option<State>,
    /// Only plans of this project.
    pub project: Option<Name>,
    /// Only plans of this action.
    pub action: Option<Name>,
    /// Only subplans of one plan, or only plans without parent.
    pub parent: Option<Parent>,
    /// Only plans whose task, id, action or project contains, for each of these words, a word that starts
    /// with it.
    pub text: Option<String>,
    /// Maximum number of plans; default 50, at most 1000.
    pub limit: i64,
    /// Only plans after this cursor, taken from a previous page.
    pub after: Option<i64>,
}

/// A filter on the parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parent {
    /// Plans without parent, at the top of their plan tree.
    Nobody,
    /// Subplans of this plan.
    Plan(PlanId),
}

impl Default for PlanFilter {
    fn default() -> Self {
        Self {
            phase: None,
            state: None,
            project: None,
            action: None,
            parent: None,
            text: None,
            limit: 50,
            after: None,
        }
    }
}

impl PlanFilter {
    /// Returns the statement of this list. It reads one row more than the page, to detect whether there is a
    /// next page.
    pub(crate) fn statement(&self, dialect: Dialect) -> Statement {
        let (from, number) = match (&self.text, dialect) {
            (None, Dialect::Sqlite | Dialect::Postgres) => ("plans", "n"),
            // The word index is walked from the newest match, and each plan is fetched by its number.
            (Some(_), Dialect::Sqlite) => {
                ("plan_words CROSS JOIN plans ON plans.n = plan_words.rowid", "plan_words.rowid")
            }
            (Some(_), Dialect::Postgres) => ("plans JOIN plan_words USING (n)", "n"),
        };
        let matching = match dialect {
            Dialect::Sqlite => "plan_words MATCH $",
            Dialect::Postgres => "words @@ to_tsquery('simple', $)",
        };
        let parent = match &self.parent {
            Some(Parent::Plan(parent)) => Some(parent.as_str().into()),
            Some(Parent::Nobody) | None => None,
        };
        let below = format!("{number} < $");
        let filters = [
            (matching, self.text.as_deref().map(|text| asked(text, dialect).into())),
            ("phase = $", self.phase.map(|phase| phase.name().into())),
            ("state = $", self.state.map(|state| state.name().into())),
            ("project = $", self.project.as_ref().map(|project| project.as_str().into())),
            ("action = $", self.action.as_ref().map(|action| action.as_str().into())),
            ("parent = $", parent),
            (below.as_str(), self.after.map(Value::from)),
        ];
        let mut conditions: Vec<String> = Vec::new();
        let mut params: Vec<Value> = Vec::new();
        for (condition, value) in filters {
            let Some(value) = value else { continue };
            params.push(value);
            conditions.push(condition.replace('$', &format!("${}", params.len())));
        }
        if self.parent == Some(Parent::Nobody) {
            conditions.push("parent IS NULL".to_owned());
        }
        let which = if conditions.is_empty() {
            String::new()
        } else {
            format!(" WHERE {}", conditions.join(" AND "))
        };
        params.push((page_size(self.limit) + 1).into());
        let last = params.len();
        let sql = format!("SELECT n, {PLAN_COLUMNS} FROM {from}{which} ORDER BY {number} DESC LIMIT ${last}");
        Statement::composed(sql, params)
    }
}

/// Returns a full-text query for plans that have, for each word of the text, a word that starts with it. A
/// text without words matches no plan.
fn asked(text: &str, dialect: Dialect) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words = words.take(WORDS_MAX).map(str::to_lowercase);
    let (each, between): (fn(String) -> String, _) = match dialect {
        Dialect::Sqlite => (|word| format!("\"{word}\"*"), " AND "),
        Dialect::Postgres => (|word| format!("{word}:*"), " & "),
    };
    let asked = words.map(each).collect::<Vec<_>>().join(between);
    match (asked.is_empty(), dialect) {
        (false, Dialect::Sqlite | Dialect::Postgres) => asked,
        (true, Dialect::Sqlite) => "\"\"".to_owned(),
        (true, Dialect::Postgres) => String::new(),
    }
}

pub(super) const FETCH: &str =
    "SELECT id, phase, state, revision, project, action, body FROM plans WHERE id = $1";
const FIND: &str = "SELECT id, phase, state, revision, project, action, body FROM plans
    WHERE id >= $1 AND id < $2 ORDER BY id LIMIT 6";

impl Store {
    /// Returns a plan.
    pub fn plan_fetch(&self, id: &PlanId) -> BoxFuture<'_, Result<Option<Plan>, StoreError>> {
        let id = id.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(Statement::new(FETCH, [id.as_str().into()])).await?;
                rows.first().map(|row| plan_from(row, 0)).transpose()
            })
        }))
    }

    /// Returns a plan and its open decision, read at one point in time.
    pub fn plan_snapshot(&self, id: &PlanId) -> BoxFuture<'_, Result<Option<StoredPlan>, StoreError>> {
        let id = id.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { snapshot(tx, id).await })))
    }

    /// Returns the plan whose id starts with this prefix.
    pub fn plan_find(&self, prefix: &IdPrefix) -> BoxFuture<'_, Result<PrefixMatch<Plan>, StoreError>> {
        let prefix = prefix.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move { by_prefix(tx, &prefix, FIND, |row| plan_from(row, 0)).await })
        }))
    }

    /// Returns the subplans of a plan, oldest first, including those of earlier strategies.
    pub fn plan_children(&self, parent: &PlanId) -> BoxFuture<'_, Result<Vec<Plan>, StoreError>> {
        let parent = parent.clone();
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let sql = format!("SELECT {PLAN_COLUMNS} FROM plans WHERE parent = $1 ORDER BY n");
                let rows = tx.last(Statement::composed(sql, vec![parent.as_str().into()])).await?;
                rows.iter().map(|row| plan_from(row, 0)).collect()
            })
        }))
    }

    /// Returns the subplans of a plan whose revision differs from the known one.
    pub fn plan_children_changed(
        &self,
        parent: &PlanId,
        known: BTreeMap<String, i64>,
    ) -> BoxFuture<'_, Result<Vec<Plan>, StoreError>> {
        let parent = parent.clone();
        Box::pin(self.read(move |tx| Box::pin(async move { changed(tx, parent, known).await })))
    }

    /// Returns plans, newest first. A damaged row fails the list, and the error names it.
    pub fn plan_list(&self, filter: &PlanFilter) -> BoxFuture<'_, Result<Page<Plan>, StoreError>> {
        let (filter, limit) = (filter.clone(), page_size(filter.limit));
        Box::pin(self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(filter.statement(tx.dialect())).await?;
                Page::of(&rows, limit, |row| plan_from(row, 1))
            })
        }))
    }
}

async fn changed(
    tx: &mut Tx<'_>,
    parent: PlanId,
    known: BTreeMap<String, i64>,
) -> Result<Vec<Plan>, StoreError> {
    let revisions = "SELECT id, revision FROM plans WHERE parent = $1 ORDER BY n";
    let mut news = Vec::new();
    for row in tx.query(Statement::new(revisions, [parent.as_str().into()])).await? {
        let (id, revision) = (row.text(0)?, row.int(1)?);
        if known.get(id) != Some(&revision) {
            news.push(Value::from(id));
        }
    }
    if news.is_empty() {
        return Ok(Vec::new());
    }
    let rows = news.into_iter().map(|id| Statement::new(FETCH, [id]));
    let rows = tx.finish(rows.collect()).await?;
    rows.iter().flatten().map(|row| plan_from(row, 0)).collect()
}

async fn snapshot(tx: &mut Tx<'_>, id: PlanId) -> Result<Option<StoredPlan>, StoreError> {
    let decision = "SELECT id, plan, status, body FROM decisions WHERE plan = $1 AND status = 'open'";
    let id = || Value::from(id.as_str());
    let answers = tx.finish(vec![Statement::new(FETCH, [id()]), Statement::new(decision, [id()])]).await?;
    match answers.as_slice() {
        [plans, decisions] => snapshot_from(plans, decisions),
        _ => Ok(None),
    }
}
