//! The engine in this process: opens the store, builds the router, and drives plans in the foreground. Every command
//! uses it if no server is given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use drydock_api::{BoxFuture, Code, Phase, Problem, Transport};
use drydock_domain::error_chain;
use drydock_engine::{Engine, EngineError, Hooks, Settings};
use drydock_store::{CrashPoint, Options, Store, StoreError, StoreUrl};
use drydock_worktree::make_folder;
use tokio_util::sync::CancellationToken;

use crate::cli::{Backend, DriveOutcome};
use crate::config::{Config, StoreLocation};
use crate::http::{Local, event_shape, phase_asked, problem, problem_of, router};

/// The argument that makes this program act as the keeper of a child process.
pub(crate) const KEEP: &str = "__keep";

/// How long a command that changed something may keep delivering events to hooks before it ends.
const LAST_WORDS: Duration = Duration::from_secs(3);

pub(crate) struct Embedded {
    engine: Engine,
    local: Local,
}

impl Embedded {
    /// Opens the store and creates the engine. Nothing runs yet.
    pub(crate) async fn open(place: &StoreLocation, config: Config) -> Result<Self, Box<Problem>> {
        let engine = engine(place, config).await?;
        // Before any plan is changed, so that a new hook receives the event.
        if let Err(error) = engine.hooks_begin().await {
            tracing::warn!(error = %error_chain(&error), "could not start new hooks; they miss the events of this command");
        }
        let local = Local::new(router(engine.clone(), &person(), "command line"));
        Ok(Self { engine, local })
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.engine
    }
}

/// Opens the engine in this process for a session.
pub(crate) fn open(
    place: StoreLocation,
    config: Config,
) -> BoxFuture<'static, Result<Box<dyn Backend>, Problem>> {
    Box::pin(async move {
        let embedded = Embedded::open(&place, config).await.map_err(|problem| *problem)?;
        Ok(Box::new(embedded) as Box<dyn Backend>)
    })
}

/// Opens the store.
pub(crate) async fn open_store(place: &StoreLocation, config: &Config) -> Result<Store, Box<Problem>> {
    let refused = |error: StoreError| Box::new(problem(&EngineError::from(error)));
    let url = match place {
        StoreLocation::Named(text) => text.parse::<StoreUrl>().map_err(|error| {
            Box::new(
                Problem::new(Code::Usage, error.to_string())
                    .hint("use a path or postgres://user@host/database"),
            )
        })?,
        StoreLocation::Default(path) => {
            make_parent(path)?;
            StoreUrl::Sqlite(path.clone())
        }
    };
    Store::open(&url, options(config)?).await.map_err(refused)
}

/// Opens the store and creates an engine on it.
pub(crate) async fn engine(place: &StoreLocation, config: Config) -> Result<Engine, Box<Problem>> {
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
        logs_keep_days: config.logs_keep_days,
        launcher: launcher(),
    };
    Ok(Engine::new(store, settings).reaping())
}

/// Returns the command that starts this program as a keeper. `/proc/self/exe` still works after an upgrade replaced
/// the file.
fn launcher() -> Vec<OsString> {
    ["/proc/self/exe", KEEP, "--"].map(OsString::from).to_vec()
}

/// Returns the directory for worktrees or logs: beside the store's file, or beside the default store for PostgreSQL.
fn beside_store(place: &StoreLocation, name: &str) -> Result<PathBuf, Box<Problem>> {
    let file = match place {
        StoreLocation::Default(path) => path.clone(),
        StoreLocation::Named(text) => match text.parse() {
            Ok(StoreUrl::Sqlite(path)) => path,
            Ok(StoreUrl::Postgres(_)) | Err(_) => match crate::config::store_place(None)? {
                StoreLocation::Default(path) => path,
                StoreLocation::Named(path) => PathBuf::from(path),
            },
        },
    };
    let directory = file.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::path::absolute(directory.join(name)).map_err(|error| {
        Box::new(Problem::new(
            Code::Internal,
            format!("could not find the absolute path of {}: {error}", directory.display()),
        ))
    })
}

fn make_parent(path: &Path) -> Result<(), Box<Problem>> {
    let Some(parent) = path.parent() else { return Ok(()) };
    make_folder(parent).map_err(|error| {
        let text = format!("could not create {}: {error}", parent.display());
        Box::new(Problem::new(Code::StoreMissing, text).hint("choose another store with --store"))
    })
}

/// Reads the crash points of debug builds, which abort or fail at a point of a commit. The tests use them to prove
/// that commits are atomic. `before_commit:3` means the third transition of the process; `before_commit` means the
/// first.
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
    // Crash points of a sync and of a landing are read by `worktree`.
    if point.starts_with("sync.") || point.starts_with("land.") {
        return Ok(None);
    }
    match (point.parse(), nth.parse()) {
        (Ok(point), Ok(nth)) => Ok(Some((point, nth))),
        (Err(_), _) | (_, Err(_)) => {
            Err(Box::new(Problem::new(Code::Usage, format!("{variable}={text} is not a crash point"))))
        }
    }
}

/// Returns the name under which a person's commands are recorded.
pub(crate) fn person() -> String {
    std::env::var("USER").or_else(|_| std::env::var("LOGNAME")).unwrap_or_else(|_| "person".to_owned())
}

impl Backend for Embedded {
    fn transport(&self) -> &dyn Transport {
        &self.local
    }

    fn drive(&self, plan: &str, phase: Phase) -> Option<BoxFuture<'static, Result<DriveOutcome, Problem>>> {
        let (engine, given) = (self.engine.clone(), plan.to_owned());
        Some(Box::pin(async move {
            let driven = async {
                let plan = engine.plan(&given).await?;
                engine.drive(plan.id, phase_asked(&phase)).await
            };
            // Deliver while the plan is driven: a person who waits for an alert needs it now, not after the end.
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
                Ok(plan) if plan.waits().is_some() => Ok(DriveOutcome::Postponed),
                Ok(_) => Ok(DriveOutcome::Over),
                // Compares the plan's own lock. A landing may also wait for the project's lock, which is not meant
                // here.
                Err(EngineError::LockHeld { lock }) if lock.key == given && lock.holder.is_worker() => {
                    Ok(DriveOutcome::ByWorker)
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
                tracing::warn!(error = %error_chain(&error), "could not release all locks; they expire");
            }
            if self.local.has_changed_things() {
                self.engine.deliver_due(LAST_WORDS).await;
            }
        })
    }
}
