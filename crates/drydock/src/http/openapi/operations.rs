//! The summary, query, body and answer of each route, one row per route. A test checks that every route has a row and
//! every row a route.

use axum::http::Method;
use drydock_api as api;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::Value;

/// Generates the schema of a type.
type Made = fn(&mut SchemaGenerator) -> Schema;

/// The route that answers with lines of JSON.
pub(super) const LOG: &str = "/plans/{id}/log";

/// The description of a route.
pub(super) struct Operation {
    pub(super) method: Method,
    pub(super) path: &'static str,
    pub(super) summary: &'static str,
    pub(super) query: Option<Made>,
    pub(super) body: Option<Made>,
    pub(super) answer: Made,
    /// True if the route changes a plan, so that `If-Match` applies.
    pub(super) moves_plan: bool,
}

fn made<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

fn new<T: JsonSchema>(method: Method, path: &'static str, summary: &'static str) -> Operation {
    Operation { method, path, summary, query: None, body: None, answer: made::<T>, moves_plan: false }
}

fn get<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    new::<T>(Method::GET, path, summary)
}

fn post<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    new::<T>(Method::POST, path, summary)
}

fn delete<T: JsonSchema>(path: &'static str, summary: &'static str) -> Operation {
    new::<T>(Method::DELETE, path, summary)
}

impl Operation {
    fn asks<T: JsonSchema>(self) -> Self {
        Self { query: Some(made::<T>), ..self }
    }

    fn takes<T: JsonSchema>(self) -> Self {
        Self { body: Some(made::<T>), ..self }
    }

    fn moves(self) -> Self {
        Self { moves_plan: true, ..self }
    }
}

/// Returns every route below `/api/v1`.
pub(super) fn all() -> Vec<Operation> {
    let mut all = set_up();
    all.extend(plans());
    all.extend(people());
    all.extend(upkeep());
    all
}

fn set_up() -> Vec<Operation> {
    vec![
        get::<Value>("/openapi.json", "Returns this API as an OpenAPI 3.1 document."),
        get::<api::Projects>("/projects", "Lists projects."),
        post::<api::OneProject>("/projects", "Adds a repository as a project.").takes::<api::NewProject>(),
        get::<api::OneProject>("/projects/{name}", "Shows a project."),
        delete::<Value>("/projects/{name}", "Removes a project that is not used by an unfinished plan."),
        get::<api::Actions>("/actions", "Lists actions."),
        post::<api::OneAction>("/actions", "Creates an action from the text of a TOML file.")
            .takes::<api::NewAction>(),
        get::<api::OneAction>("/actions/{name}", "Shows an action."),
        delete::<Value>("/actions/{name}", "Removes an action."),
        get::<api::Invariants>(
            "/invariants",
            "Lists invariants; with `effective`, those that apply to a plan.",
        )
        .asks::<api::InvariantQuery>(),
        post::<api::OneInvariant>("/invariants", "Adds an invariant.").takes::<api::NewInvariant>(),
        delete::<Value>("/invariants/{name}", "Removes an invariant from a scope.").asks::<api::ScopeQuery>(),
        get::<api::Agents>("/agents", "Lists configured and built-in agents."),
        post::<api::OneAgentCheck>("/agents/{name}/check", "Starts an agent and checks that it works."),
    ]
}

fn plans() -> Vec<Operation> {
    vec![
        get::<api::Plans>("/plans", "Lists plans, newest first.").asks::<api::PlanQuery>(),
        post::<api::OnePlan>("/plans", "Creates a plan: one use of an action on a project.")
            .takes::<api::NewPlan>(),
        get::<api::OnePlan>("/plans/{id}", "Shows a plan."),
        get::<api::OneDiff>("/plans/{id}/diff", "Returns the diff of the plan."),
        get::<api::OneTree>("/plans/{id}/tree", "Shows the plan's choices and subplans."),
        get::<api::OneWhy>("/plans/{id}/why", "Explains what the plan waits for, and the available actions."),
        get::<api::OneExplanation>("/plans/{id}/explain", "Explains the plan: task, choices, guidance, rejections.")
            .asks::<api::ExplainQuery>(),
        get::<api::Checkpoints>("/plans/{id}/checkpoints", "Lists the checkpoints of the plan."),
        get::<api::LogLine>(
            LOG,
            "Reads the log of a run as JSON lines; with `Accept: text/event-stream`, follows it as server-sent events \
             whose ids are offsets, or `OFFSET@RUN` if no run is given.",
        )
        .asks::<api::LogQuery>(),
        get::<api::Logs>("/plans/{id}/logs", "Lists the logs of the plan's runs on this machine."),
        post::<api::OnePlan>("/plans/{id}/strategize", "Starts or continues Strategize.").moves(),
        post::<api::OnePlan>("/plans/{id}/execute", "Starts or continues Execute.").moves(),
        post::<api::OnePlan>("/plans/{id}/apply", "Starts or continues Apply: the result lands.").moves(),
        post::<api::OnePlan>("/plans/{id}/cancel", "Cancels the plan.").takes::<api::Reason>().moves(),
        post::<api::OnePlan>("/plans/{id}/retry", "Retries the failed phase from the work that was kept.")
            .takes::<api::RetryPlan>()
            .moves(),
        post::<api::OnePlan>(
            "/plans/{id}/accept",
            "Accepts the work of a failed Execute; checks still apply.",
        )
        .moves(),
        post::<api::OnePlan>("/plans/{id}/revert", "Reverts the plan to Strategize.")
            .takes::<api::Reason>()
            .moves(),
        post::<api::OnePlan>("/plans/{id}/prompt", "Adds guidance for the plan's agents.")
            .takes::<api::Prompt>()
            .moves(),
        post::<api::OnePlan>("/plans/{id}/takeover", "Takes over a plan from a worker whose lock expired.").moves(),
        post::<api::OnePlan>("/plans/{id}/rollback", "Returns to a checkpoint.")
            .takes::<api::RollBack>()
            .moves(),
        post::<api::Synced>("/plans/{id}/sync", "Syncs the plan's branch with its remote.").moves(),
        post::<api::OnePlan>("/plans/{id}/strategy/adopt", "Adopts the strategy draft in the worktree.")
            .moves(),
        get::<api::Backups>("/backups", "Lists backups.")
            .asks::<api::BackupQuery>(),
        post::<api::PrunedBackups>("/backups/prune", "Removes backups that are no longer needed.")
            .takes::<api::PruneBackups>(),
        get::<api::OneBackup>("/backups/{plan}/{number}", "Shows a backup."),
        delete::<api::OneBackup>("/backups/{plan}/{number}", "Removes a backup that is no longer needed.")
            .asks::<api::DeleteBackup>(),
        post::<api::RestoredBackup>("/backups/{plan}/{number}/restore", "Restores a backup as a new branch.")
            .takes::<api::RestoreBackup>(),
    ]
}

fn people() -> Vec<Operation> {
    vec![
        get::<api::Decisions>("/decisions", "Lists decisions.").asks::<api::DecisionQuery>(),
        get::<api::OneDecision>("/decisions/{id}", "Shows a decision."),
        post::<api::Resolved>("/decisions/{id}/resolve", "Answers a decision.")
            .takes::<api::Resolve>()
            .moves(),
        get::<api::Changesets>("/changesets", "Lists the changesets of a plan.")
            .asks::<api::ChangesetQuery>(),
        get::<api::OneChangeset>("/changesets/{id}", "Shows a changeset."),
        get::<api::Events>(
            "/events",
            "Reads the feed; with `Accept: text/event-stream`, follows it as server-sent events.",
        )
        .asks::<api::EventQuery>(),
        get::<api::LastEvent>("/events/last", "Returns the end of the feed of a plan.")
            .asks::<api::LastEventQuery>(),
    ]
}

fn upkeep() -> Vec<Operation> {
    vec![
        get::<api::Locks>("/locks", "Lists locks."),
        post::<api::OneLock>("/locks/{id}/break", "Breaks a lock, with a reason.").takes::<api::BreakLock>(),
        get::<api::Tokens>("/tokens", "Lists tokens, without their secrets."),
        post::<api::MadeToken>("/tokens", "Creates a token; its secret is returned only once.")
            .takes::<api::NewToken>(),
        post::<api::MadeLink>("/tokens/link", "Creates a link that signs in a browser, once.")
            .takes::<api::NewLink>(),
        post::<api::RevokedToken>(
            "/tokens/{id}/revoke",
            "Revokes a token and ends the sessions that its links started.",
        ),
        get::<api::OneDoctor>("/doctor", "Checks everything that plans need."),
        post::<api::OneGc>("/gc", "Removes worktrees and refs that are safe to delete.")
            .takes::<api::GcRequest>(),
    ]
}
