//! Opening: a missing store is created, a foreign one is rejected, and every error names its cause.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use drydock_store::{Options, Store, StoreError, StoreUrl};
use drydock_testkit::proc;

use crate::child;
use crate::world::{LIMIT, World, now, queued};

/// The schema version that this program writes.
const NEWEST: i64 = 10;

async fn refused(url: &StoreUrl) -> StoreError {
    Store::open(url, Options::new(now)).await.expect_err("it must be refused")
}

on_both! {
    /// Fails if concurrent migrations collide.
    async fn many_openers_of_a_fresh_store_all_succeed(world: World) {
        let others: Vec<_> = (0..3).map(|_| child::spawn(&world, "open", "")).collect();
        let here: Vec<_> = (0..4)
            .map(|_| {
                let url = world.url();
                crate::world::spawn(async move { Store::open(&url, Options::new(now)).await.unwrap() })
            })
            .collect();
        for one in here {
            let store = one.await.unwrap();
            assert_eq!(store.schema_version(), NEWEST);
            queued(&store, "a").await;
        }
        for other in others {
            other.wait(LIMIT).expect_code(0);
        }
        assert_eq!(world.query("SELECT count(*) FROM plans"), "4");
    }
}

on_both! {
    /// Fails if a released migration step was edited, or loses data written by an older program.
    async fn an_older_store_is_taken_along(world: World) {
        match &world {
            World::Sqlite(_) => {
                let older = rusqlite::Connection::open(world.file()).unwrap();
                older.execute_batch(include_str!("../../src/sqlite/schema_1.sql")).unwrap();
                older.execute_batch("PRAGMA application_id = 0x44525944; PRAGMA user_version = 1").unwrap();
            }
            World::Postgres(_) => {
                world.meddle(include_str!("../../src/postgres/schema_1.sql"));
                world.meddle("CREATE TABLE drydock_schema (version BIGINT NOT NULL)");
                world.meddle("INSERT INTO drydock_schema VALUES (1)");
            }
        }
        world.meddle("INSERT INTO actions (name, body) VALUES ('old', '{}')");
        let store = world.open().await;
        queued(&store, "a").await;
        assert_eq!(store.delivery_list().await.unwrap(), []);
        assert_eq!(world.query("SELECT name FROM actions"), "old");
        drop(store);
        drop(world.open().await);
    }
}

on_both! {
    /// Fails if an older program writes into a schema that it does not know.
    async fn a_newer_schema_is_refused_and_untouched(world: World) {
        drop(world.open().await);
        match &world {
            World::Sqlite(_) => world.meddle("PRAGMA user_version = 99"),
            World::Postgres(_) => world.meddle("UPDATE drydock_schema SET version = 99"),
        }
        let error = refused(&world.url()).await;
        assert!(matches!(error, StoreError::Newer { found: 99, known: NEWEST, .. }), "{error:?}");
        assert_eq!(error.code(), "store_newer");
    }
}

on_both! {
    /// Fails if another program's tables are accepted as ours.
    async fn a_database_of_another_program_is_refused(world: World) {
        world.meddle("CREATE TABLE plans (x BIGINT)");
        let error = refused(&world.url()).await;
        assert!(matches!(error, StoreError::NotDrydock { .. }), "{error:?}");
        assert!(!error.is_transient());
    }
}

on_both! {
    /// Fails if the health check cannot report the database version.
    async fn a_store_tells_its_engine(world: World) {
        let text = world.open().await.engine_version().await.unwrap();
        let name = match &world {
            World::Sqlite(_) => "SQLite 3",
            World::Postgres(_) => "PostgreSQL ",
        };
        assert!(text.starts_with(name), "{text}");
    }
}

/// Fails if a missing directory is created, or reported as a different error.
#[tokio::test]
async fn a_missing_directory_is_named() {
    let error = refused(&StoreUrl::Sqlite("/nowhere/at/all/drydock.db".into())).await;
    assert!(
        matches!(&error, StoreError::Missing { reason, .. } if reason.contains("/nowhere/at/all")),
        "{error:?}"
    );
}

/// Fails if a text file, a directory or a torn page is accepted as a store.
#[tokio::test]
async fn what_is_not_a_database_is_refused() {
    let world = World::sqlite();
    fs::write(world.file(), "dear diary, ".repeat(1000)).unwrap();
    assert_eq!(refused(&world.url()).await.code(), "store_foreign");
    let directory = StoreUrl::Sqlite(world.file().parent().unwrap().to_owned());
    assert_eq!(refused(&directory).await.code(), "store_missing");
}

/// Fails if a damaged page is read without an error.
#[tokio::test]
async fn a_damaged_file_is_called_that() {
    let world = World::sqlite();
    let store = world.open().await;
    let (_lease, plan) = queued(&store, "a").await;
    drop(store);
    world.query("PRAGMA wal_checkpoint(TRUNCATE)");
    let mut bytes = fs::read(world.file()).unwrap();
    bytes[4096..].fill(0xa5);
    fs::write(world.file(), bytes).unwrap();
    let opened = Store::open(&world.url(), Options::new(now)).await;
    let error = match opened {
        Err(error) => error,
        Ok(store) => store.plan_fetch(&plan.id).await.expect_err("the pages are garbage"),
    };
    assert_eq!(error.code(), "store_corrupt");
}

/// Fails if the error does not name an unreachable server, or contains its password.
#[tokio::test]
async fn a_server_that_is_away_is_named_without_its_password() {
    let url: StoreUrl = "postgres://ann:s3cret@127.0.0.1:9/nothing".parse().unwrap();
    let error = refused(&url).await;
    let StoreError::Unavailable { place, reason } = &error else { panic!("{error:?}") };
    assert_eq!(place, "127.0.0.1:9");
    assert!(reason.to_lowercase().contains("refused"), "{reason}");
    assert!(!format!("{error} {error:?}").contains("s3cret"));
    assert!(error.is_transient());
    let odd: StoreUrl = "postgres://ann:s3cret@127.0.0.1:9/nothing?sslmode=maybe".parse().unwrap();
    assert!(!format!("{:?}", refused(&odd).await).contains("s3cret"));
}

/// Fails if a missing database is reported as an unreachable server.
#[tokio::test]
async fn a_missing_database_is_called_that() {
    let World::Postgres(database) = World::postgres() else { unreachable!() };
    let error = refused(&database.url().replace(database.name(), "no_such_database").parse().unwrap()).await;
    assert_eq!(error.code(), "store_missing");
    assert!(error.hint().contains("createdb"), "{}", error.hint());
}

/// Fails if a read-only store is opened as if it were writable.
#[tokio::test]
async fn a_store_of_somebody_else_is_read_only() {
    let world = World::sqlite();
    drop(world.open().await);
    let directory = world.file().parent().unwrap().to_owned();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o755)).unwrap();
    let program = directory.join("test");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    // Root can write everything, so another user runs the test.
    let mut other = Command::new("setpriv");
    other.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(&program);
    other.args(["--exact", "child::works", "--nocapture"]);
    other.env("DRYDOCK_STORE_TEST_JOB", "code").env("DRYDOCK_STORE_TEST_ARGUMENT", "");
    let tried = proc::run(other.env("DRYDOCK_STORE_TEST_URL", world.file()), LIMIT).expect_code(0);
    assert!(tried.stdout.contains("code=store_read_only"), "{tried:?}");
}

/// Fails if a full disk is reported as a different error, or damages committed data.
#[tokio::test]
async fn a_full_disk_is_called_that_and_tears_nothing() {
    let world = World::sqlite();
    let directory = world.file().parent().unwrap().to_owned();
    let script = r#"mount -t tmpfs -o size=700k none "$1" && exec "$2" --exact child::works --nocapture"#;
    let mut small = Command::new("unshare");
    small.args(["--mount", "sh", "-c", script, "sh"]).arg(&directory).arg(std::env::current_exe().unwrap());
    small.env("DRYDOCK_STORE_TEST_JOB", "fill").env("DRYDOCK_STORE_TEST_ARGUMENT", "");
    let filled = proc::run(small.env("DRYDOCK_STORE_TEST_URL", world.file()), LIMIT);
    if filled.stderr.contains("unshare failed") || filled.stderr.contains("permission denied") {
        eprintln!("not shown here: this machine does not let tests mount a small disk");
        return;
    }
    assert!(filled.clone().expect_code(0).stdout.contains("code=store_full"), "{filled:?}");
}

/// Fails if a backup is not a valid store, lacks committed data, or overwrites a file.
#[tokio::test]
async fn a_backup_is_a_store_of_its_own() {
    let world = World::sqlite();
    let store = world.open().await;
    let (_lease, plan) = queued(&store, "a").await;
    let copy = world.file().with_extension("copy");
    store.backup(&copy).await.unwrap();
    assert!(store.backup(&copy).await.is_err());
    let copied = Store::open(&StoreUrl::Sqlite(copy), Options::new(now)).await.unwrap();
    assert_eq!(copied.plan_fetch(&plan.id).await.unwrap(), Some(plan));
    assert_eq!(copied.check().await.unwrap(), Vec::<String>::new());
    let server = World::postgres();
    let error = server.open().await.backup(&world.file().with_extension("never")).await.unwrap_err();
    assert!(error.to_string().contains("pg_dump"), "{error}");
}
