//! Projects, actions and invariants: configuration that users create before plans. Each is stored as a name
//! and a JSON body.

use drydock_domain::{Action, Invariant, InvariantScope, Name, PlanId, Project};
use serde::de::DeserializeOwned;

use crate::enforcement::forget;
use crate::plan::row::{body, parse};
use crate::tx::{BoxFuture, Tx, TxOutcome};
use crate::value::{Row, Statement, Value};
use crate::{Store, StoreError};

/// Maximum number of plans to name when a project cannot be removed.
const NAMED_MAX: i64 = 5;

/// The outcome of adding an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddOutcome {
    /// The entry was added.
    Added,
    /// An entry with that name exists; it is unchanged.
    Exists,
}

/// The outcome of removing an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoveOutcome {
    /// The entry was removed.
    Removed,
    /// The entry does not exist.
    Missing,
    /// These plans, and possibly more, still need it.
    InUse(Vec<PlanId>),
}

impl Store {
    /// Adds a project.
    pub fn project_add(&self, project: &Project) -> BoxFuture<'_, Result<AddOutcome, StoreError>> {
        let written = body("projects", project.name.as_str(), project);
        let (name, repo) = (project.name.clone(), project.repo.clone());
        let sql = "INSERT INTO projects (name, repo, body) VALUES ($1, $2, $3)
            ON CONFLICT (name) DO NOTHING RETURNING name";
        Box::pin(async move { self.add(sql, vec![name.as_str().into(), repo.into(), written?.into()]).await })
    }

    /// Returns a project.
    pub fn project_fetch(&self, name: &Name) -> BoxFuture<'_, Result<Option<Project>, StoreError>> {
        let statement =
            Statement::new("SELECT name, body FROM projects WHERE name = $1", [name.as_str().into()]);
        Box::pin(self.one("projects", statement))
    }

    /// Returns all projects, by name.
    pub fn project_list(&self) -> BoxFuture<'_, Result<Vec<Project>, StoreError>> {
        Box::pin(self.all("projects", Statement::new("SELECT name, body FROM projects ORDER BY name", [])))
    }

    /// Removes a project, unless a plan that has not ended uses it.
    pub fn project_remove(&self, name: &Name) -> BoxFuture<'_, Result<RemoveOutcome, StoreError>> {
        let name = name.clone();
        Box::pin(self.write(move |tx| Box::pin(remove_project(tx, name))))
    }

    /// Adds an action.
    pub fn action_add(&self, action: &Action) -> BoxFuture<'_, Result<AddOutcome, StoreError>> {
        let written = body("actions", action.name.as_str(), action);
        let name = action.name.clone();
        let sql =
            "INSERT INTO actions (name, body) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING RETURNING name";
        Box::pin(async move { self.add(sql, vec![name.as_str().into(), written?.into()]).await })
    }

    /// Returns an action.
    pub fn action_fetch(&self, name: &Name) -> BoxFuture<'_, Result<Option<Action>, StoreError>> {
        let sql = "SELECT name, body FROM actions WHERE name = $1";
        Box::pin(self.one("actions", Statement::new(sql, [name.as_str().into()])))
    }

    /// Returns all actions, by name.
    pub fn action_list(&self) -> BoxFuture<'_, Result<Vec<Action>, StoreError>> {
        Box::pin(self.all("actions", Statement::new("SELECT name, body FROM actions ORDER BY name", [])))
    }

    /// Removes an action; plans keep their own copy of it.
    pub fn action_remove(&self, name: &Name) -> BoxFuture<'_, Result<RemoveOutcome, StoreError>> {
        let sql = "DELETE FROM actions WHERE name = $1 RETURNING name";
        Box::pin(self.remove(Statement::new(sql, [name.as_str().into()])))
    }

    /// Adds an invariant at its scope.
    pub fn invariant_add(&self, invariant: &Invariant) -> BoxFuture<'_, Result<AddOutcome, StoreError>> {
        let written = body("invariants", invariant.name.as_str(), invariant);
        let (scope, name) = (invariant.scope.to_string(), invariant.name.clone());
        let sql = "INSERT INTO invariants (scope, name, body) VALUES ($1, $2, $3)
            ON CONFLICT (scope, name) DO NOTHING RETURNING name";
        Box::pin(async move {
            let statement = Statement {
                sql: sql.into(),
                params: vec![scope.into(), name.as_str().into(), written?.into()],
            };
            let changed = self.rule_change(name, statement).await?;
            Ok(if changed { AddOutcome::Added } else { AddOutcome::Exists })
        })
    }

    /// Returns the invariants of one scope, or of all.
    pub fn invariant_list(
        &self,
        scope: Option<&InvariantScope>,
    ) -> BoxFuture<'_, Result<Vec<Invariant>, StoreError>> {
        let statement = match scope {
            None => Statement::new("SELECT name, body FROM invariants ORDER BY scope, name", []),
            Some(scope) => Statement::new(
                "SELECT name, body FROM invariants WHERE scope = $1 ORDER BY name",
                [scope.to_string().into()],
            ),
        };
        Box::pin(self.all("invariants", statement))
    }

    /// Removes an invariant from a scope.
    pub fn invariant_remove(
        &self,
        name: &Name,
        scope: &InvariantScope,
    ) -> BoxFuture<'_, Result<RemoveOutcome, StoreError>> {
        let sql = "DELETE FROM invariants WHERE name = $1 AND scope = $2 RETURNING name";
        let statement = Statement::new(sql, [name.as_str().into(), scope.to_string().into()]);
        let name = name.clone();
        Box::pin(async move {
            let changed = self.rule_change(name, statement).await?;
            Ok(if changed { RemoveOutcome::Removed } else { RemoveOutcome::Missing })
        })
    }

    /// Changes an invariant and deletes the stored enforcements that it blocked. Returns true if it changed.
    async fn rule_change(&self, name: Name, statement: Statement) -> Result<bool, StoreError> {
        self.write(move |tx| {
            Box::pin(async move {
                if tx.query(statement).await?.is_empty() {
                    return Ok(TxOutcome::Undo(false));
                }
                forget(tx, &name).await?;
                Ok(TxOutcome::Keep(true))
            })
        })
        .await
    }

    /// Returns the invariants of every scope that could apply to a plan of this project and action.
    pub fn invariant_candidates(
        &self,
        project: &Name,
        action: &Name,
        plan: Option<&PlanId>,
    ) -> BoxFuture<'_, Result<Vec<Invariant>, StoreError>> {
        let sql =
            "SELECT name, body FROM invariants WHERE scope IN ('global', $1, $2, $3) ORDER BY scope, name";
        let scope = |scope: InvariantScope| Value::from(scope.to_string());
        let params = [
            scope(InvariantScope::Project(project.clone())),
            scope(InvariantScope::Action(action.clone())),
            plan.map(|plan| InvariantScope::Plan(plan.clone()).to_string()).into(),
        ];
        Box::pin(self.all("invariants", Statement::new(sql, params)))
    }

    async fn add(&self, sql: &'static str, params: Vec<Value>) -> Result<AddOutcome, StoreError> {
        let statement = Statement { sql: sql.into(), params };
        self.write(move |tx| {
            Box::pin(async move {
                match tx.last(statement).await?.is_empty() {
                    true => Ok(TxOutcome::Undo(AddOutcome::Exists)),
                    false => Ok(TxOutcome::Keep(AddOutcome::Added)),
                }
            })
        })
        .await
    }

    async fn remove(&self, statement: Statement) -> Result<RemoveOutcome, StoreError> {
        self.write(move |tx| {
            Box::pin(async move {
                match tx.last(statement).await?.is_empty() {
                    true => Ok(TxOutcome::Undo(RemoveOutcome::Missing)),
                    false => Ok(TxOutcome::Keep(RemoveOutcome::Removed)),
                }
            })
        })
        .await
    }

    async fn one<T: DeserializeOwned + Send + 'static>(
        &self,
        table: &'static str,
        statement: Statement,
    ) -> Result<Option<T>, StoreError> {
        self.read(move |tx| {
            Box::pin(async move {
                let rows = tx.last(statement).await?;
                rows.first().map(|row| named(table, row)).transpose()
            })
        })
        .await
    }

    async fn all<T: DeserializeOwned + Send + 'static>(
        &self,
        table: &'static str,
        statement: Statement,
    ) -> Result<Vec<T>, StoreError> {
        self.read(move |tx| {
            Box::pin(async move { tx.last(statement).await?.iter().map(|row| named(table, row)).collect() })
        })
        .await
    }
}

fn named<T: DeserializeOwned>(table: &'static str, row: &Row) -> Result<T, StoreError> {
    parse(table, row.text(0)?, row.text(1)?)
}

/// A plan that is created concurrently with the removal reports the missing project later. Preventing that
/// would need a lock on the project for every new plan, which costs more than it saves.
async fn remove_project(tx: &mut Tx<'_>, name: Name) -> Result<TxOutcome<RemoveOutcome>, StoreError> {
    let sql = "SELECT id FROM plans WHERE project = $1 AND state NOT IN ('applied', 'cancelled') LIMIT $2";
    let rows = tx.query(Statement::new(sql, [name.as_str().into(), NAMED_MAX.into()])).await?;
    if !rows.is_empty() {
        let ids = rows.iter().map(|row| {
            let id = row.text(0)?;
            id.parse().map_err(|error| StoreError::damaged("plans", id, format!("{error}")))
        });
        return Ok(TxOutcome::Undo(RemoveOutcome::InUse(ids.collect::<Result<_, _>>()?)));
    }
    let sql = "DELETE FROM projects WHERE name = $1 RETURNING name";
    match tx.last(Statement::new(sql, [name.as_str().into()])).await?.is_empty() {
        true => Ok(TxOutcome::Undo(RemoveOutcome::Missing)),
        false => Ok(TxOutcome::Keep(RemoveOutcome::Removed)),
    }
}
