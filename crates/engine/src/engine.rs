//! The engine: its parts, and the lookups of plans, projects and repositories that all modules share.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use drydock_agent::Runner;
use drydock_domain::{
    Authority, ChangesetId, Context, Decision, DecisionId, Event, IdPrefix, Name, Plan, PlanId, Project,
    RunId,
};
use drydock_store::{IdempotentRequest, PlanRows, PrefixMatch, Store};
use drydock_worktree::Repository;
use tokio_util::sync::CancellationToken;

use crate::absent::LeftAlone;
use crate::error::EngineError;
use crate::feed::Feed;
use crate::identity::Identity;
use crate::meter::{CommitMetrics, CommitStats};
use crate::reap::Reaper;
use crate::recall::TokenCache;
use crate::repositories::RepositoryCache;
use crate::settings::Settings;
use crate::subplan::ChildrenCache;
use crate::{clock, frozen, task};

/// The caller's name in events that no person asked for.
pub(crate) const WORKER: &str = "drydock";
/// How long a shutdown waits for runs to return their plans: agents have a few seconds to exit.
const SHUT_DOWN_MAX: Duration = Duration::from_secs(15);
const SHUT_DOWN_POLL: Duration = Duration::from_millis(10);

/// The caller of a command, and the channel it came through.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Actor<'a> {
    pub(crate) name: &'a str,
    pub(crate) via: &'a str,
    pub(crate) authority: Authority,
}

/// A bare name stands for the engine as the caller.
impl<'a> From<&'a str> for Actor<'a> {
    fn from(name: &'a str) -> Self {
        Actor { name, via: WORKER, authority: Authority::Engine }
    }
}

/// Runs plans through their phases. Cheap to clone; all clones share one state.
#[derive(Clone)]
pub struct Engine {
    inner: Arc<EngineInner>,
}

struct EngineInner {
    store: Store,
    settings: Settings,
    identity: Arc<Identity>,
    runner: Runner,
    stopping: CancellationToken,
    feed: Feed,
    meter: CommitMetrics,
    repositories: RepositoryCache,
    families: ChildrenCache,
    left_alone: LeftAlone,
    recall: TokenCache,
    served_at: OnceLock<String>,
    reaper: OnceLock<Reaper>,
    stopped_for: OnceLock<PlanId>,
}

impl Engine {
    /// Returns an engine on this store. Reads nothing yet: git is located when it is first needed.
    pub fn new(store: Store, settings: Settings) -> Engine {
        let runner = Runner::new(settings.launcher.clone()).with_sandbox(settings.sandbox.clone());
        let identity = Arc::new(Identity::of_this_process());
        let stopping = CancellationToken::new();
        Engine {
            inner: Arc::new(EngineInner {
                store,
                settings,
                identity,
                runner,
                stopping,
                feed: Feed::new(),
                meter: CommitMetrics::default(),
                repositories: RepositoryCache::default(),
                families: ChildrenCache::default(),
                left_alone: LeftAlone::default(),
                recall: TokenCache::default(),
                served_at: OnceLock::new(),
                reaper: OnceLock::new(),
                stopped_for: OnceLock::new(),
            }),
        }
    }

    /// Reaps the dead processes that this one inherits, while this engine exists. For a program that adopts
    /// orphans (`drydock_agent::adopt_orphans`).
    pub fn reaping(self) -> Engine {
        self.inner.reaper.get_or_init(Reaper::start);
        self
    }

    /// Sets the address at which this machine serves the engine. The address in the configuration has
    /// precedence.
    pub fn served_at(&self, url: String) {
        self.inner.served_at.get_or_init(|| url);
    }

    /// Returns the address at which agents can query their plan, if it is known.
    pub(crate) fn server(&self) -> Option<&str> {
        self.settings().server.as_ref().or(self.inner.served_at.get()).map(String::as_str)
    }

    /// Returns the store.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Returns the configuration.
    pub fn settings(&self) -> &Settings {
        &self.inner.settings
    }

    pub(crate) fn identity(&self) -> &Arc<Identity> {
        &self.inner.identity
    }

    pub(crate) fn runner(&self) -> &Runner {
        &self.inner.runner
    }

    /// Returns the runner for a plan. If the plan's profile requires it, the runner refuses to run anything
    /// outside a full sandbox.
    pub(crate) fn runner_for(&self, plan: &Plan) -> Runner {
        let strict = plan.spec.profile.names().any(|name| self.settings().sandboxed_profiles.contains(name));
        if strict { self.runner().requiring_sandbox() } else { self.runner().clone() }
    }

    pub(crate) fn families(&self) -> &ChildrenCache {
        &self.inner.families
    }

    pub(crate) fn left_alone(&self) -> &LeftAlone {
        &self.inner.left_alone
    }

    pub(crate) fn check_cached(&self) -> &TokenCache {
        &self.inner.recall
    }

    pub(crate) fn meter(&self) -> &CommitMetrics {
        &self.inner.meter
    }

    /// Returns the metrics of this process.
    pub fn metered(&self) -> CommitStats {
        self.inner.meter.read()
    }

    pub(crate) fn feed(&self) -> &Feed {
        &self.inner.feed
    }

    /// Returns the token that is cancelled when this process is asked to stop.
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    /// Returns the plan whose command a person stopped in this process, if any.
    pub(crate) fn stopped_for(&self) -> Option<&PlanId> {
        self.inner.stopped_for.get()
    }

    /// Records that a person stopped the command that runs this plan: the plan waits until a person continues
    /// it.
    pub(crate) fn stop_for(&self, plan: &PlanId) {
        self.inner.stopped_for.get_or_init(|| plan.clone());
    }

    /// Asks all work in this process to stop, waits until it has returned its plans, and releases the
    /// remaining locks (S1.5). Does not access the store if this process took no lock.
    pub async fn shut_down(&self) -> Result<(), EngineError> {
        self.inner.stopping.cancel();
        let deadline = tokio::time::Instant::now() + SHUT_DOWN_MAX;
        while self.identity().works_under_lock() && tokio::time::Instant::now() < deadline {
            tokio::time::sleep(SHUT_DOWN_POLL).await;
        }
        if self.identity().holds_any() {
            self.store().leases_release_all(self.identity().prefix()).await?;
        }
        Ok(())
    }

    pub(crate) fn context(&self, who: Actor<'_>) -> Context {
        Context {
            now: clock::now(),
            by: who.name.to_owned(),
            via: who.via.to_owned(),
            authority: who.authority,
            spent: None,
            fresh_decision: DecisionId::from_random(clock::random()),
        }
    }

    pub(crate) fn fresh_plan(&self) -> PlanId {
        PlanId::from_random(clock::random())
    }

    /// Returns a request with an idempotency key, with its own random seed and owner.
    pub fn keyed_request(&self, key: String, fingerprint: String) -> IdempotentRequest {
        let owner = self.identity().holder("answer a request").owner;
        IdempotentRequest { key, fingerprint, seed: clock::random(), owner }
    }

    pub(crate) fn fresh_run(&self) -> RunId {
        RunId::from_random(clock::random())
    }

    pub(crate) fn fresh_changeset(&self) -> ChangesetId {
        ChangesetId::from_random(clock::random())
    }

    /// Returns the plan whose id starts with this prefix.
    pub async fn plan(&self, given: &str) -> Result<Plan, EngineError> {
        // Programs send whole ids, which need no search.
        if let Ok(id) = given.parse() {
            return self.store().plan_fetch(&id).await?.ok_or_else(|| EngineError::absent("plan", given));
        }
        let prefix = prefix(given, PlanId::PREFIX, "plan")?;
        one(self.store().plan_find(&prefix).await?, "plan", given)
    }

    /// Returns the rows of a plan: the plan, and the rows that determine which commands it accepts.
    pub async fn plan_rows(&self, given: &str) -> Result<PlanRows, EngineError> {
        let id = match given.parse() {
            Ok(id) => id,
            Err(_) => self.plan(given).await?.id,
        };
        self.store().plan_rows(&id).await?.ok_or_else(|| EngineError::absent("plan", given))
    }

    /// Returns the decision whose id starts with this prefix.
    pub async fn decision(&self, given: &str) -> Result<Decision, EngineError> {
        let prefix = prefix(given, DecisionId::PREFIX, "decision")?;
        one(self.store().decision_find(&prefix).await?, "decision", given)
    }

    pub(crate) async fn load_plan(&self, id: &PlanId) -> Result<Plan, EngineError> {
        self.store().plan_fetch(id).await?.ok_or_else(|| EngineError::absent("plan", id))
    }

    /// Returns the project with this name.
    pub async fn project(&self, name: &str) -> Result<Project, EngineError> {
        let absent = || EngineError::absent("project", name);
        let name: Name = name.parse().map_err(|_| absent())?;
        self.store().project_fetch(&name).await?.ok_or_else(absent)
    }

    pub(crate) async fn repository(&self, project: &Project) -> Result<Repository, EngineError> {
        self.repository_at(PathBuf::from(&project.repo)).await
    }

    pub(crate) async fn repository_at(&self, path: PathBuf) -> Result<Repository, EngineError> {
        let engine = self.clone();
        let repository = task::blocking(move || engine.inner.repositories.open(&path)).await?;
        let repository = repository.capturing(self.settings().capture);
        Ok(repository.judged_by(frozen::judge(self.store()), self.settings().lock_ttl))
    }

    /// Appends events to a plan without changing the plan.
    pub(crate) async fn emit(
        &self,
        hold: &crate::hold::PlanLockGuard,
        events: Vec<Event>,
    ) -> Result<(), EngineError> {
        Ok(self.store().event_append(hold.lease(), &hold.lease().batch(events)).await?)
    }
}

pub(crate) fn prefix(given: &str, prefix: &'static str, kind: &'static str) -> Result<IdPrefix, EngineError> {
    IdPrefix::parse(given, prefix, kind).map_err(|_| EngineError::absent(kind, given))
}

pub(crate) fn one<T>(found: PrefixMatch<T>, kind: &'static str, given: &str) -> Result<T, EngineError> {
    match found {
        PrefixMatch::One(thing) => Ok(thing),
        PrefixMatch::None => Err(EngineError::absent(kind, given)),
        PrefixMatch::Many(candidates) => {
            Err(EngineError::Ambiguous { kind, given: given.to_owned(), candidates })
        }
    }
}
