//! The engine in this process: opens the store, makes the router, and drives plans in the foreground. This is what
//! every command uses when no server is named.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_api::{BoxFuture, Code, Phase, Problem, Transport};
use drydock_domain::told;
use drydock_engine::{Engine, EngineError, Hooks, Settings};
use drydock_store::{CrashPoint, Options, Store, StoreError, StoreUrl};
use drydock_worktree::make_folder;
use tokio_util::sync::CancellationToken;

use crate::cli::{Backend, Driven};
use crate::config::{Config, StorePlace};
use crate::http::{Local, event_shape, phase_asked, problem, problem_of, router};

/// The word that makes this program the keeper of a child.
pub(crate) const KEEP: &str = "__keep";

/// How long a command that changed something may go on telling hooks of it.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// The engine in this process.
pub(crate) struct Embedded {
    engine: Engine,
    local: Local,
}

impl Embedded {
    /// Opens the store and makes the engine; nothing runs yet.
    pub(crate) async fn open(place: &StorePlace, config: Config) -> Result<Self, Box<Problem>> {
        let engine = engine(place, config).await?;
        // Before anything is moved, so that a hook that is new is told of it.
        if let Err(error) = engine.hooks_begin().await {
            tracing::warn!(error = %told(&error), "hooks that are new are not told of what happens now");
        }
        let local = Local::new(router(engine.clone(), &person(), "command line"));
        Ok(Self { engine, local })
    }

    /// Returns the engine.
    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Opens the engine in this process, as a session does.
pub(crate) fn open(
    place: StorePlace,
    config: Config,
) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>> {
    Box::pin(async move {
        let embedded = Embedded::open(&place, config).await.map_err(|problem| *problem)?;
        Ok(Box::new(embedded) as Box<dyn Backend>)
    })
}

/// Opens the store that is meant.
pub(crate) async fn open_store(place: &StorePlace, config: &Config) -> Result<Store, Box<Problem>> {
    let refused = |error: StoreError| Box::new(problem(&EngineError::from(error)));
    let url = match place {
        StorePlace::Named(text) => text.parse::<StoreUrl>().map_err(|error| {
            Box::new(
                Problem::new(Code::Usage, error.to_string())
                    .hint("use a path or postgres://user@host/database"),
            )
        })?,
        StorePlace::Default(path) => {
            make_parent(path)?;
            StoreUrl::Sqlite(path.clone())
        }
    };
    Store::open(&url, options(config)?).await.map_err(refused)
}

/// Opens the store and makes an engine on it.
pub(crate) async fn engine(place: &StorePlace, config: Config) -> Result<Engine, Box<Problem>> {
    let store = open_store(place, &config).await?;
    let settings = Settings {
        agents: config.agents,
        presets: config.presets,
        profiles: config.profiles,
        sandbox: config.sandbox,
        sandboxed_profiles: config.sandboxed_profiles,
        default_agent: config.default_agent,
        default_profile: config.default_profile,
        lock_ttl: config.lock_ttl,
        hooks: Hooks { list: config.hooks, shape: event_shape },
        subplans: config.subplans,
        limits: config.limits,
        capture: config.capture,
        server: config.server.url,
        worktrees: beside_store(place, "worktrees")?,
        logs: beside_store(place, "logs")?,
        launcher: launcher(),
    };
    Ok(Engine::new(store, settings).reaping())
}

/// The words that start this very program as a keeper, even after an upgrade replaced its file.
fn launcher() -> Vec<OsString> {
    ["/proc/self/exe", KEEP, "--"].map(OsString::from).to_vec()
}

/// Worktrees and logs are beside the store's file; a PostgreSQL store has none, so they go where the default store would be.
fn beside_store(place: &StorePlace, name: &str) -> Result<PathBuf, Box<Problem>> {
    let file = match place {
        StorePlace::Default(path) => path.clone(),
        StorePlace::Named(text) => match text.parse() {
            Ok(StoreUrl::Sqlite(path)) => path,
            Ok(StoreUrl::Postgres(_)) | Err(_) => match crate::config::store_place(None)? {
                StorePlace::Default(path) => path,
                StorePlace::Named(path) => PathBuf::from(path),
            },
        },
    };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(directory.join(name)).map_err(|error| {
        Box::new(Problem::new(
            Code::Internal,
            format!("could not tell where {} is: {error}", directory.display()),
        ))
    })
}

fn make_parent(path: &Path) -> Result<(), Box<Problem>> {
    let Some(parent) = path.parent() else { return Ok(()) };
    make_folder(parent).map_err(|error| {
        let text = format!("could not make {}: {error}", parent.display());
        Box::new(Problem::new(Code::StoreMissing, text).hint("name another store with --store"))
    })
}

/// Debug builds can be told to abort or to fail at a point of a commit, for the tests that prove it tears nothing:
/// `before_commit`, or `before_commit:3` for the third transition of the process.
fn options(config: &Config) -> Result<Options, Box<Problem>> {
    let mut options = Options::new(drydock_engine::now);
    options.connections = config.connections.unwrap_or(Options::CONNECTIONS);
    options.patience = config.lock_ttl;
    if cfg!(debug_assertions) {
        let (crash, fail) = (fault("DRYDOCK_CRASH_AT")?, fault("DRYDOCK_FAIL_AT")?);
        options.spared = crash.or(fail).map_or(0, |(_, nth)| nth.saturating_sub(1));
        options.crash_at = crash.map(|(point, _)| point);
        options.fail_at = fail.map(|(point, _)| point);
    }
    Ok(options)
}

fn fault(variable: &str) -> Result<Option<(CrashPoint, u32)>, Box<Problem>> {
    let Some(text) = std::env::var_os(variable) else { return Ok(None) };
    let text = text.to_string_lossy();
    let (point, nth) = text.split_once(':').unwrap_or((&text, "1"));
    // Points of a sync and of a landing are `worktree`'s.
    if point.starts_with("sync.") || point.starts_with("land.") {
        return Ok(None);
    }
    match (point.parse(), nth.parse()) {
        (Ok(point), Ok(nth)) => Ok(Some((point, nth))),
        (Err(_), _) | (_, Err(_)) => {
            Err(Box::new(Problem::new(Code::Usage, format!("{variable}={text} is no such point"))))
        }
    }
}

/// Who a person's commands count as.
pub(crate) fn person() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "person".to_owned())
}

impl Backend for Embedded {
    fn transport(&self) -> &dyn Transport {
        &self.local
    }

    fn drive(&self, plan: &str, phase: Phase) -> Option<BoxFuture<'static, Result<Driven, Problem>>> {
        let (engine, given) = (self.engine.clone(), plan.to_owned());
        Some(Box::pin(async move {
            let driven = async {
                let plan = engine.plan(&given).await?;
                engine.drive(plan.id, phase_asked(&phase)).await
            };
            // A person who waits for an alert should have it while the plan is driven, not when it has ended.
            let over = CancellationToken::new();
            let (driven, ()) = tokio::join!(
                async {
                    let driven = driven.await;
                    over.cancel();
                    driven
                },
                engine.deliver(&over)
            );
            match driven {
                Ok(plan) if plan.waits().is_some() => Ok(Driven::Postponed),
                Ok(_) => Ok(Driven::Over),
                // Its own lock, not that of the project that a landing waits for.
                Err(EngineError::LockHeld { lock }) if lock.key == given && lock.holder.is_worker() => {
                    Ok(Driven::ByWorker)
                }
                Err(error) => Err(problem_of(&error, Some(&given))),
            }
        }))
    }

    fn hold_stopped(&self, plan: &str) -> BoxFuture<'_, ()> {
        let plan = plan.to_owned();
        Box::pin(async move { self.engine.hold_stopped(&plan).await })
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(error) = self.engine.shut_down().await {
                tracing::warn!(error = %told(&error), "could not let go of every lock; they run out by themselves");
            }
            if self.local.has_changed_things() {
                self.engine.deliver_due(LAST_WORDS).await;
            }
        })
    }
}
