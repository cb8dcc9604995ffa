//! The store of one test, with a second observer beside it, and helpers that create plans.

use std::collections::BTreeMap;
use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use drydock_domain::{
    Authority, ChangesetId, Command, Context, CreatePlan, DecisionId, Enforcement, ErrorClass, Failure,
    Holder, Phase, Plan, PlanAgents, PlanId, PlanSpec, ProcessIdentity, Profile, Question, RunId, Start,
    Target, Timestamp, create, decide,
};
use drydock_store::{
    Acquired, CommitError, Committed, Decide, EventFilter, Leases, Options, PlanLease, ProjectLease, Store,
    StoreUrl,
};
use drydock_testkit::postgres::Database;
use drydock_testkit::sqlite;
use tempfile::TempDir;

/// Runs one test on both databases.
macro_rules! on_both {
    ($(#[$meta:meta])* async fn $name:ident($world:ident: World) $body:block) => {
        $(#[$meta])*
        mod $name {
            #[allow(unused_imports)]
            use super::*;

            async fn holds($world: crate::world::World) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                holds(crate::world::World::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                holds(crate::world::World::postgres()).await;
            }
        }
    };
}

/// Long enough for everything on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);
/// The duration of a lease that outlives every test.
pub(crate) const LONG: Duration = Duration::from_secs(600);
/// The duration of a lease that expires immediately.
pub(crate) const BRIEF: Duration = Duration::from_millis(1);

pub(crate) enum World {
    Sqlite(TempDir),
    Postgres(Database),
}

impl World {
    pub(crate) fn sqlite() -> Self {
        World::Sqlite(TempDir::with_prefix("drydock-store-").unwrap())
    }

    pub(crate) fn postgres() -> Self {
        World::Postgres(drydock_testkit::postgres::database())
    }

    pub(crate) fn file(&self) -> PathBuf {
        match self {
            World::Sqlite(directory) => directory.path().join("drydock.db"),
            World::Postgres(_) => panic!("a database on a server has no file"),
        }
    }

    pub(crate) fn url(&self) -> StoreUrl {
        match self {
            World::Sqlite(_) => StoreUrl::Sqlite(self.file()),
            World::Postgres(database) => database.url().parse().unwrap(),
        }
    }

    pub(crate) async fn open(&self) -> Store {
        self.open_with(Options::new(now)).await
    }

    pub(crate) async fn open_with(&self, options: Options) -> Store {
        Store::open(&self.url(), options).await.unwrap()
    }

    /// Runs a statement as a second observer: columns separated by `|`, one row per line.
    pub(crate) fn query(&self, sql: &str) -> String {
        match self {
            World::Postgres(database) => database.query(sql),
            World::Sqlite(_) => sqlite::query(&self.file(), sql),
        }
    }

    /// Changes the database directly, bypassing the store.
    pub(crate) fn meddle(&self, sql: &str) {
        self.query(sql);
    }

    /// Downgrades the schema to an older version, as a program of that version left it.
    pub(crate) fn take_back_to(&self, version: usize) {
        // The statements that undo each step, newest first; the last one undoes step 7.
        let (steps, stamp): ([&[&str]; 4], String) = match self {
            World::Sqlite(_) => (
                [
                    &[
                        "ALTER TABLE requests DROP COLUMN authority",
                        "ALTER TABLE requests DROP COLUMN asked_via",
                    ],
                    &[
                        "DROP TABLE enforcements",
                        "DROP INDEX events_by_batch",
                        "ALTER TABLE events DROP COLUMN batch",
                        "DROP INDEX outbox_by_rank",
                        "CREATE INDEX outbox_by_time ON outbox (ready_at)",
                        "ALTER TABLE outbox DROP COLUMN rank",
                        "ALTER TABLE outbox DROP COLUMN process",
                        "ALTER TABLE locks DROP COLUMN process",
                    ],
                    &["DROP INDEX tokens_by_maker", "ALTER TABLE tokens DROP COLUMN made_by"],
                    &["DROP TRIGGER plans_words", "DROP TABLE plan_words", "DROP INDEX plans_top_by_state"],
                ],
                format!("PRAGMA user_version = {version}"),
            ),
            World::Postgres(_) => (
                [
                    &["ALTER TABLE requests DROP COLUMN authority, DROP COLUMN asked_via"],
                    &[
                        "DROP TABLE enforcements",
                        "ALTER TABLE events DROP COLUMN batch",
                        "CREATE INDEX outbox_by_time ON outbox (ready_at)",
                        "ALTER TABLE outbox DROP COLUMN rank, DROP COLUMN process",
                        "ALTER TABLE locks DROP COLUMN process",
                    ],
                    &["ALTER TABLE tokens DROP COLUMN made_by"],
                    &[
                        "DROP TABLE plan_words",
                        "DROP TRIGGER plans_words ON plans",
                        "DROP FUNCTION drydock_words, drydock_plan_words",
                        "DROP INDEX plans_top_by_state",
                    ],
                ],
                format!("UPDATE drydock_schema SET version = {version}"),
            ),
        };
        let newest = 6 + steps.len();
        steps[..newest - version].iter().flat_map(|step| step.iter()).for_each(|undo| self.meddle(undo));
        self.meddle(&stamp);
    }

    /// Returns everything that one transition of a plan can change, without ids and times.
    pub(crate) fn observe(&self, plan: &PlanId) -> String {
        let of = |sql: &str| self.query(&sql.replace("PLAN", &format!("'{plan}'")));
        [
            of("SELECT phase, state, revision FROM plans WHERE id = PLAN"),
            of("SELECT kind, status FROM decisions WHERE plan = PLAN ORDER BY n"),
            of("SELECT kind, revision FROM events WHERE plan = PLAN ORDER BY 2, 1"),
            of("SELECT state, entries FROM changesets WHERE plan = PLAN ORDER BY n"),
            of("SELECT effect, attempts FROM outbox WHERE plan = PLAN"),
            of("SELECT kind FROM requests WHERE plan = PLAN"),
        ]
        .join("\n--\n")
    }
}

#[allow(clippy::disallowed_methods, reason = "the tests' one clock")]
pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    Timestamp::from_micros(i64::try_from(since.as_micros()).unwrap())
}

pub(crate) fn random() -> u128 {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let half = || {
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
        u128::from(hasher.finish())
    };
    half() << 64 | half()
}

pub(crate) fn plan_id() -> PlanId {
    PlanId::from_random(random())
}

pub(crate) fn run_id() -> RunId {
    RunId::from_random(random())
}

pub(crate) fn changeset_id() -> ChangesetId {
    ChangesetId::from_random(random())
}

pub(crate) fn context() -> Context {
    Context {
        now: now(),
        by: "tester".to_owned(),
        via: "a test".to_owned(),
        authority: Authority::Person,
        spent: None,
        fresh_decision: DecisionId::from_random(random()),
    }
}

pub(crate) fn holder(owner: &str) -> Holder {
    Holder {
        owner: owner.to_owned(),
        process: ProcessIdentity::unproven("here", 7),
        purpose: "test".to_owned(),
    }
}

pub(crate) fn spec(project: &str, action: &str) -> PlanSpec {
    let profile = Profile::built_in().into_iter().find(|profile| profile.name == "auto").unwrap();
    PlanSpec {
        action: action.parse().unwrap(),
        project: project.parse().unwrap(),
        task: "mend the boat".to_owned(),
        definition_of_done: None,
        arguments: BTreeMap::new(),
        profile,
        agents: PlanAgents::default(),
        validations: Vec::new(),
        invariants: Vec::new(),
        target: Target::default(),
        allow_empty: false,
        budget: drydock_domain::Budget::UNLIMITED,
    }
}

pub(crate) async fn lease(store: &Store, plan: &PlanId, owner: &str) -> PlanLease {
    match store.plan_lease_acquire(plan, &holder(owner), LONG).await.unwrap() {
        Acquired::Held(lease) => lease,
        Acquired::Busy(lock) => panic!("{plan} is held: {lock:?}"),
    }
}

pub(crate) async fn project_lease(store: &Store, project: &str, owner: &str) -> ProjectLease {
    match store.project_lease_acquire(&project.parse().unwrap(), &holder(owner), LONG).await.unwrap() {
        Acquired::Held(lease) => lease,
        Acquired::Busy(lock) => panic!("{project} is held: {lock:?}"),
    }
}

/// Creates a plan that waits for a worker, and keeps its lease.
pub(crate) async fn queued(store: &Store, owner: &str) -> (PlanLease, Plan) {
    queued_as(store, owner, spec("boat", "fix")).await
}

pub(crate) async fn queued_as(store: &Store, owner: &str, spec: PlanSpec) -> (PlanLease, Plan) {
    let id = plan_id();
    let lease = lease(store, &id, owner).await;
    let transition = create(CreatePlan { id, spec, base_commit: "0".repeat(40) }, &context());
    let plan = store.plan_create(&lease, transition).await.unwrap();
    (lease, plan)
}

/// Creates a plan in state `processing`.
pub(crate) async fn processing(store: &Store, owner: &str) -> (PlanLease, Plan, RunId) {
    let (lease, _) = queued(store, owner).await;
    let (plan, run) = started(store, &lease).await;
    (lease, plan, run)
}

pub(crate) async fn started(store: &Store, lease: &PlanLease) -> (Plan, RunId) {
    let run = run_id();
    let plan = command(store, lease, start(&run)).await.unwrap().plan;
    (plan, run)
}

pub(crate) fn start(run: &RunId) -> Command {
    let enforcement = Enforcement::nothing(Phase::Strategize);
    let base = "0".repeat(40);
    Command::Start(Start { run: run.clone(), base, from: None, replaces: None, enforcement })
}

/// Returns a command that writes into every table at once: the plan fails, asks, and its changesets are
/// sealed.
pub(crate) fn fail_and_ask(run: &RunId) -> Command {
    let failure = Failure::new(ErrorClass::Diverged, "the branches diverged");
    Command::Fail(run.clone(), failure, Some(Question::from_agent("go on?".to_owned(), Vec::new())))
}

pub(crate) fn deciding(command: Command) -> Decide {
    let context = context();
    Box::new(move |snapshot| decide(snapshot, command, &context))
}

pub(crate) async fn command(
    store: &Store,
    lease: &PlanLease,
    command: Command,
) -> Result<Committed, CommitError> {
    store.plan_transact(Leases::Plan(lease), deciding(command)).await
}

/// Counts the events by reading all of them.
pub(crate) async fn events_total(store: &Store) -> i64 {
    let mut after = 0;
    loop {
        let page = store.event_list(&EventFilter { after, plan: None, limit: 1000 }).await.unwrap();
        match page.last() {
            Some(last) => after = last.seq,
            None => return after,
        }
    }
}

/// Creates a plan that waits for a worker, without a held lock.
pub(crate) async fn free(store: &Store) -> Plan {
    let (lease, plan) = queued(store, "maker").await;
    store.plan_lease_release(lease).await.unwrap();
    plan
}

/// Waits until a lock has expired, by the clock of the store.
pub(crate) async fn expired(store: &Store, key: &str) {
    loop {
        let locks = store.lock_list().await.unwrap();
        if locks.iter().any(|lock| lock.key == key && lock.stale) {
            return;
        }
        tokio::task::yield_now().await;
    }
}

#[allow(clippy::disallowed_methods, reason = "the tests' one way to start tasks; each is joined")]
pub(crate) fn spawn<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> tokio::task::JoinHandle<T> {
    tokio::spawn(work)
}
