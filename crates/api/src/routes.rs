//! One method per route of `/api/v1`. The server's handlers document their behaviour.

use drydock_domain::PINS;
use serde::{Deserialize, Serialize};

use crate::client::{Client, ClientError, PlanMove, RequestOptions};
use crate::query::{query, segment};
use crate::{
    Action, Actions, AgentCheck, Agents, Backup, BackupQuery, Backups, BreakLock, Changeset, ChangesetQuery,
    Changesets, Checkpoints, Code, Decision, DecisionQuery, Decisions, DeleteBackup, Diff, Doctor,
    EventQuery, EventStream, Events, ExplainQuery, Explanation, Gc, GcRequest, Invariant, InvariantQuery,
    Invariants, LastEvent, LastEventQuery, Lock, Locks, LogLine, LogPage, LogQuery, Logs, MadeLink,
    MadeToken, NewAction, NewInvariant, NewLink, NewPlan, NewProject, NewToken, OneAction, OneAgentCheck,
    OneBackup, OneChangeset, OneDecision, OneDiff, OneDoctor, OneExplanation, OneGc, OneInvariant, OneLock,
    OnePlan, OneProject, OneTree, OneWhy, Plan, PlanQuery, Plans, Problem, Project, Projects, Prompt,
    PruneBackups, PrunedBackups, Reason, Resolve, Resolved, RestoreBackup, RestoredBackup, RetryPlan,
    RevokedToken, RollBack, ScopeQuery, Synced, Tokens, Tree, Why,
};

type ClientResult<T> = Result<T, ClientError>;

/// A body without fields.
#[derive(Serialize, Deserialize)]
struct EmptyBody {}

impl Client<'_> {
    /// Lists projects.
    pub async fn projects(&self) -> ClientResult<Projects> {
        self.get("/projects".to_owned()).await
    }

    /// Adds a project.
    pub async fn project_add(&self, project: &NewProject) -> ClientResult<Project> {
        let one: OneProject = self.post("/projects".to_owned(), project, &RequestOptions::default()).await?;
        Ok(one.project)
    }

    /// Reads a project.
    pub async fn project(&self, name: &str) -> ClientResult<Project> {
        let one: OneProject = self.get(format!("/projects/{}", segment(name))).await?;
        Ok(one.project)
    }

    /// Removes a project.
    pub async fn project_remove(&self, name: &str) -> ClientResult<()> {
        let EmptyBody {} = self.delete(format!("/projects/{}", segment(name))).await?;
        Ok(())
    }

    /// Lists actions.
    pub async fn actions(&self) -> ClientResult<Actions> {
        self.get("/actions".to_owned()).await
    }

    /// Creates an action.
    pub async fn action_create(&self, action: &NewAction) -> ClientResult<Action> {
        let one: OneAction = self.post("/actions".to_owned(), action, &RequestOptions::default()).await?;
        Ok(one.action)
    }

    /// Reads an action.
    pub async fn action(&self, name: &str) -> ClientResult<Action> {
        let one: OneAction = self.get(format!("/actions/{}", segment(name))).await?;
        Ok(one.action)
    }

    /// Removes an action.
    pub async fn action_remove(&self, name: &str) -> ClientResult<()> {
        let EmptyBody {} = self.delete(format!("/actions/{}", segment(name))).await?;
        Ok(())
    }

    /// Lists invariants.
    pub async fn invariants(&self, which: &InvariantQuery) -> ClientResult<Invariants> {
        self.get(format!("/invariants{}", query(which))).await
    }

    /// Adds an invariant.
    pub async fn invariant_add(&self, invariant: &NewInvariant) -> ClientResult<Invariant> {
        let one: OneInvariant =
            self.post("/invariants".to_owned(), invariant, &RequestOptions::default()).await?;
        Ok(one.invariant)
    }

    /// Removes an invariant.
    pub async fn invariant_remove(&self, name: &str, scope: &ScopeQuery) -> ClientResult<()> {
        let EmptyBody {} = self.delete(format!("/invariants/{}{}", segment(name), query(scope))).await?;
        Ok(())
    }

    /// Lists the agents that are configured on the server.
    pub async fn agents(&self) -> ClientResult<Agents> {
        self.get("/agents".to_owned()).await
    }

    /// Starts an agent and checks its login.
    pub async fn agent_check(&self, name: &str) -> ClientResult<AgentCheck> {
        let path = format!("/agents/{}/check", segment(name));
        let one: OneAgentCheck = self.post(path, &EmptyBody {}, &RequestOptions::default()).await?;
        Ok(one.check)
    }

    /// Creates a plan.
    pub async fn plan_use(&self, plan: &NewPlan, terms: &RequestOptions) -> ClientResult<Plan> {
        let one: OnePlan = self.post("/plans".to_owned(), plan, terms).await?;
        Ok(one.plan)
    }

    /// Lists plans.
    pub async fn plans(&self, which: &PlanQuery) -> ClientResult<Plans> {
        self.get(format!("/plans{}", query(which))).await
    }

    /// Reads a plan.
    pub async fn plan(&self, id: &str) -> ClientResult<Plan> {
        let one: OnePlan = self.get(format!("/plans/{}", segment(id))).await?;
        Ok(one.plan)
    }

    /// Reads a plan's changes.
    pub async fn plan_diff(&self, id: &str) -> ClientResult<Diff> {
        let one: OneDiff = self.get(format!("/plans/{}/diff", segment(id))).await?;
        Ok(one.diff)
    }

    /// Reads a plan's choices and subplans.
    pub async fn plan_tree(&self, id: &str) -> ClientResult<Tree> {
        let one: OneTree = self.get(format!("/plans/{}/tree", segment(id))).await?;
        Ok(one.tree)
    }

    /// Reads why a plan is not moving.
    pub async fn plan_why(&self, id: &str) -> ClientResult<Why> {
        let one: OneWhy = self.get(format!("/plans/{}/why", segment(id))).await?;
        Ok(one.why)
    }

    /// Reads the explanation of a plan.
    pub async fn plan_explain(&self, id: &str, which: &ExplainQuery) -> ClientResult<Explanation> {
        let path = format!("/plans/{}/explain{}", segment(id), query(which));
        let one: OneExplanation = self.get(path).await?;
        Ok(one.explanation)
    }

    /// Lists a plan's checkpoints.
    pub async fn checkpoints(&self, plan: &str) -> ClientResult<Checkpoints> {
        self.get(format!("/plans/{}/checkpoints", segment(plan))).await
    }

    /// Requests a phase of a plan: passes its gate and queues it.
    pub async fn plan_move(&self, id: &str, to: PlanMove, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, to.name(), &EmptyBody {}, terms).await
    }

    /// Syncs a plan's branch with its remote.
    pub async fn plan_sync(&self, id: &str, terms: &RequestOptions) -> ClientResult<Synced> {
        self.post(format!("/plans/{}/sync", segment(id)), &EmptyBody {}, terms).await
    }

    /// Adopts the draft in a plan's worktree as its strategy.
    pub async fn plan_adopt(&self, id: &str, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, "strategy/adopt", &EmptyBody {}, terms).await
    }

    /// Returns to a checkpoint of a plan.
    pub async fn plan_rollback(
        &self,
        id: &str,
        checkpoint: String,
        terms: &RequestOptions,
    ) -> ClientResult<Plan> {
        self.plan_post(id, "rollback", &RollBack { checkpoint }, terms).await
    }

    /// Lists backups.
    pub async fn backups(&self, which: &BackupQuery) -> ClientResult<Backups> {
        self.get(format!("/backups{}", query(which))).await
    }

    /// Reads a backup.
    pub async fn backup(&self, name: &str) -> ClientResult<Backup> {
        let one: OneBackup = self.get(backup_path(name)?).await?;
        Ok(one.backup)
    }

    /// Restores a backup as a new branch.
    pub async fn backup_restore(&self, name: &str, how: &RestoreBackup) -> ClientResult<RestoredBackup> {
        self.post(format!("{}/restore", backup_path(name)?), how, &RequestOptions::default()).await
    }

    /// Removes one backup that is no longer needed, or any that a person discards.
    pub async fn backup_delete(&self, name: &str, how: &DeleteBackup) -> ClientResult<Backup> {
        let one: OneBackup = self.delete(format!("{}{}", backup_path(name)?, query(how))).await?;
        Ok(one.backup)
    }

    /// Removes backups that are no longer needed.
    pub async fn backup_prune(&self, which: &PruneBackups) -> ClientResult<PrunedBackups> {
        self.post("/backups/prune".to_owned(), which, &RequestOptions::default()).await
    }

    /// Lists the logs of a plan's runs.
    pub async fn plan_logs(&self, id: &str) -> ClientResult<Logs> {
        self.get(format!("/plans/{}/logs", segment(id))).await
    }

    /// Reads a part of a log. With `wait_ms`, waits for a line if there is none.
    pub async fn plan_log(&self, id: &str, which: &LogQuery) -> ClientResult<LogPage> {
        let path = format!("/plans/{}/log{}", segment(id), query(which));
        let answer = self.fetch(path.clone()).await?;
        let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok());
        let Some(next) = header(LogPage::NEXT_OFFSET).and_then(|next| next.parse().ok()) else {
            let reason = format!("it has no {}", LogPage::NEXT_OFFSET);
            return Err(ClientError::Unreadable { request: format!("GET {path}"), reason });
        };
        let over = header(LogPage::RUN_OVER) == Some("true");
        let run = header(LogPage::RUN).map(str::to_owned);
        let lines = String::from_utf8_lossy(answer.body()).lines().map(LogLine::read).collect();
        Ok(LogPage { run, lines, next, over })
    }

    /// Cancels a plan.
    pub async fn plan_cancel(
        &self,
        id: &str,
        reason: Option<String>,
        terms: &RequestOptions,
    ) -> ClientResult<Plan> {
        self.plan_post(id, "cancel", &Reason { reason }, terms).await
    }

    /// Queues a failed phase again.
    pub async fn plan_retry(&self, id: &str, how: &RetryPlan, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, "retry", how, terms).await
    }

    /// Accepts the work of a failed Execute as its result.
    pub async fn plan_accept(&self, id: &str, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, "accept", &EmptyBody {}, terms).await
    }

    /// Reverts a plan to Strategize.
    pub async fn plan_revert(
        &self,
        id: &str,
        reason: Option<String>,
        terms: &RequestOptions,
    ) -> ClientResult<Plan> {
        self.plan_post(id, "revert", &Reason { reason }, terms).await
    }

    /// Adds guidance to a plan.
    pub async fn plan_prompt(&self, id: &str, text: String, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, "prompt", &Prompt { text }, terms).await
    }

    /// Takes over a plan from a worker whose lock expired.
    pub async fn plan_takeover(&self, id: &str, terms: &RequestOptions) -> ClientResult<Plan> {
        self.plan_post(id, "takeover", &EmptyBody {}, terms).await
    }

    /// Lists decisions.
    pub async fn decisions(&self, which: &DecisionQuery) -> ClientResult<Decisions> {
        self.get(format!("/decisions{}", query(which))).await
    }

    /// Reads a decision.
    pub async fn decision(&self, id: &str) -> ClientResult<Decision> {
        let one: OneDecision = self.get(format!("/decisions/{}", segment(id))).await?;
        Ok(one.decision)
    }

    /// Answers a decision.
    pub async fn decision_resolve(
        &self,
        id: &str,
        answer: &Resolve,
        terms: &RequestOptions,
    ) -> ClientResult<Resolved> {
        self.post(format!("/decisions/{}/resolve", segment(id)), answer, terms).await
    }

    /// Lists changesets.
    pub async fn changesets(&self, which: &ChangesetQuery) -> ClientResult<Changesets> {
        self.get(format!("/changesets{}", query(which))).await
    }

    /// Reads a changeset.
    pub async fn changeset(&self, id: &str) -> ClientResult<Changeset> {
        let one: OneChangeset = self.get(format!("/changesets/{}", segment(id))).await?;
        Ok(one.changeset)
    }

    /// Lists locks.
    pub async fn locks(&self) -> ClientResult<Locks> {
        self.get("/locks".to_owned()).await
    }

    /// Breaks a lock.
    pub async fn lock_break(&self, id: &str, reason: String) -> ClientResult<Lock> {
        let path = format!("/locks/{}/break", segment(id));
        let one: OneLock = self.post(path, &BreakLock { reason }, &RequestOptions::default()).await?;
        Ok(one.lock)
    }

    /// Lists tokens.
    pub async fn tokens(&self) -> ClientResult<Tokens> {
        self.get("/tokens".to_owned()).await
    }

    /// Creates a token.
    pub async fn token_create(&self, token: &NewToken) -> ClientResult<MadeToken> {
        self.post("/tokens".to_owned(), token, &RequestOptions::default()).await.map_err(untold)
    }

    /// Creates a sign-in link for a browser.
    pub async fn token_link(&self, link: &NewLink) -> ClientResult<MadeLink> {
        self.post("/tokens/link".to_owned(), link, &RequestOptions::default()).await.map_err(untold)
    }

    /// Revokes a token.
    pub async fn token_revoke(&self, id: &str) -> ClientResult<RevokedToken> {
        let path = format!("/tokens/{}/revoke", segment(id));
        self.post(path, &EmptyBody {}, &RequestOptions::default()).await
    }

    /// Reads events. With `wait_ms`, waits for one if there is none.
    pub async fn events(&self, which: &EventQuery) -> ClientResult<Events> {
        self.get(format!("/events{}", query(which))).await
    }

    /// Follows the feed: the stored events, then each new one.
    pub async fn events_follow(&self, which: &EventQuery) -> ClientResult<EventStream> {
        EventStream::open(self, format!("/events{}", query(which))).await
    }

    /// Reads the position of the last event of a plan.
    pub async fn events_last(&self, plan: &str) -> ClientResult<i64> {
        let which = LastEventQuery { plan: Some(plan.to_owned()) };
        let LastEvent { last } = self.get(format!("/events/last{}", query(&which))).await?;
        Ok(last)
    }

    /// Reads the position of the last event of the whole feed.
    pub async fn feed_last(&self) -> ClientResult<i64> {
        let LastEvent { last } = self.get("/events/last".to_owned()).await?;
        Ok(last)
    }

    /// Runs all checks.
    pub async fn doctor(&self) -> ClientResult<Doctor> {
        let one: OneDoctor = self.get("/doctor".to_owned()).await?;
        Ok(one.doctor)
    }

    /// Runs a garbage collection.
    pub async fn gc(&self, request: &GcRequest) -> ClientResult<Gc> {
        let one: OneGc = self.post("/gc".to_owned(), request, &RequestOptions::default()).await?;
        Ok(one.gc)
    }

    async fn plan_post(
        &self,
        id: &str,
        verb: &str,
        body: &impl Serialize,
        terms: &RequestOptions,
    ) -> ClientResult<Plan> {
        let one: OnePlan = self.post(format!("/plans/{}/{verb}", segment(id)), body, terms).await?;
        Ok(one.plan)
    }
}

/// Returns the path of a backup, which is named by its ref or by the end of it.
fn backup_path(name: &str) -> ClientResult<String> {
    let end = name.strip_prefix(PINS).unwrap_or(name);
    let Some((plan, number)) = end.rsplit_once('/') else {
        let problem = Problem::new(Code::NotFound, format!("no backup {name:?}"));
        let hint = "a backup is named PLAN/NUMBER; `drydock backup list` shows all backups";
        return Err(ClientError::Problem(Box::new(problem.hint(hint))));
    };
    Ok(format!("/backups/{}/{}", segment(plan), segment(number)))
}

/// Removes the content of an unreadable answer from the error, because it may contain a secret.
fn untold(error: ClientError) -> ClientError {
    match error {
        ClientError::Unreadable { request, .. } => {
            let reason = "the response is not shown because it may contain a secret".to_owned();
            ClientError::Unreadable { request, reason }
        }
        error @ (ClientError::Problem(_) | ClientError::Unreachable(_)) => error,
    }
}
