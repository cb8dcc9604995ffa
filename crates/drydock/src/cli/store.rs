//! `drydock store`: commands on the store itself. They always open it directly, never through a server.

use std::path::PathBuf;

use clap::Subcommand;
use drydock_api::{Code, Problem};
use drydock_engine::EngineError;
use drydock_store::StoreError;
use serde_json::json;

use super::args::Global;
use super::report::{CliResult, Report, ReportStatus};
use crate::config::Config;
use crate::http::problem;
use crate::{config, embedded};

/// Subcommands of `drydock store`.
#[derive(Debug, Subcommand)]
pub(crate) enum StoreCommand {
    /// Migrate the store to the current schema; every command also does this when it opens a store
    Migrate,
    /// Check the file and every record in it for damage
    Check,
    /// Copy a SQLite store to a new file while it is in use
    Backup {
        /// New file; must not exist
        to: PathBuf,
    },
}

impl StoreCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            StoreCommand::Migrate => "migrate",
            StoreCommand::Check => "check",
            StoreCommand::Backup { .. } => "backup",
        }
    }
}

pub(crate) async fn run(global: &Global, command: StoreCommand) -> CliResult {
    let place = config::store_place(global.store.as_deref())?;
    let store = embedded::open_store(&place, &Config::default()).await?;
    let refused = |error: StoreError| Box::new(problem(&EngineError::from(error)));
    match command {
        StoreCommand::Migrate => {
            let version = store.schema_version();
            Ok(Report::new(
                json!({ "schema_version": version }),
                format!("the schema is at version {version}\n"),
            ))
        }
        StoreCommand::Check => {
            let problems = store.check().await.map_err(refused)?;
            if problems.is_empty() {
                return Ok(Report::new(json!({ "problems": problems }), "no damage found\n"));
            }
            let text = format!("{}\n", problems.join("\n"));
            let hint = "restore a copy made by `drydock store backup`, or report these lines";
            let failed =
                Problem::new(Code::StoreDamaged, format!("{} problems found", problems.len())).hint(hint);
            Ok(Report::new(json!({ "problems": problems }), text)
                .ending(ReportStatus::Failed(Box::new(failed))))
        }
        StoreCommand::Backup { to } => {
            store.backup(&to).await.map_err(refused)?;
            let path = to.display().to_string();
            Ok(Report::new(json!({ "backup": path }), format!("copied to {path}\n")))
        }
    }
}
