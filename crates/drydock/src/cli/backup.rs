//! `drydock backup`: list, show, restore, prune.

use clap::Subcommand;
use drydock_api::{BackupQuery, DeleteBackup, OneBackup, PruneBackups, PrunedBackups, RestoreBackup, exit};

use super::report::{CliResult, Level, Report, ReportStatus};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock backup`.
#[derive(Debug, Subcommand)]
pub(crate) enum BackupCommand {
    /// List backups: refs that keep commits removed from a plan's branch
    List {
        /// Only backups of this plan
        #[arg(long)]
        plan: Option<String>,
    },
    /// Show a backup with its commits
    Show {
        /// Backup ref or its end (PLAN/NUMBER)
        #[arg(value_name = "REF")]
        name: String,
    },
    /// Restore a backup as a new branch; nothing that exists is changed
    Restore {
        /// Backup ref or its end (PLAN/NUMBER)
        #[arg(value_name = "REF")]
        name: String,
        /// New branch [default: a name derived from the backup's]
        #[arg(long)]
        branch: Option<String>,
    },
    /// Remove backups that are no longer needed, or the named ones
    Prune {
        /// Only these; one that is still needed is refused, with a list of the commits that would be lost
        #[arg(value_name = "REF")]
        names: Vec<String>,
        /// Delete the named backups permanently even if they are still needed
        #[arg(long, requires = "names")]
        discard: bool,
        /// Only backups of this plan
        #[arg(long, conflicts_with = "names")]
        plan: Option<String>,
        /// Print what would be removed, and remove nothing
        #[arg(long, conflicts_with = "names")]
        dry_run: bool,
    },
}

impl BackupCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            BackupCommand::List { .. } => "list",
            BackupCommand::Show { .. } => "show",
            BackupCommand::Restore { .. } => "restore",
            BackupCommand::Prune { .. } => "prune",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: BackupCommand) -> CliResult {
    let client = session.client();
    match command {
        BackupCommand::List { plan } => {
            let backups = client.backups(&BackupQuery { plan }).await?;
            let text = render::backup::list(&backups.backups, session.now());
            let unseen = backups.unseen.clone();
            let report = Report::new(backups, text);
            if unseen.is_empty() {
                return Ok(report.or_say("no backups"));
            }
            let report = report.ending(ReportStatus::Attention(exit::OK));
            Ok(unseen.iter().fold(report, |report, text| report.note(Level::Warn, text)))
        }
        BackupCommand::Show { name } => {
            let backup = client.backup(&name).await?;
            let text = render::backup::show(&backup, session.now());
            Ok(Report::new(OneBackup { backup }, text))
        }
        BackupCommand::Restore { name, branch } => {
            let restored = client.backup_restore(&name, &RestoreBackup { branch }).await?;
            let text = format!("{} is on the branch {}", restored.backup.commit, restored.branch);
            let next = Some(format!("git switch {}", restored.branch));
            Ok(Report::new(restored, text).go_on(Level::Info, next))
        }
        BackupCommand::Prune { names, plan, dry_run, discard: _ } if names.is_empty() => {
            let pruned = client.backup_prune(&PruneBackups { plan, dry_run }).await?;
            Ok(report(pruned, dry_run, session))
        }
        BackupCommand::Prune { names, discard, .. } => {
            let mut pruned = PrunedBackups { removed: Vec::new(), kept: Vec::new() };
            for name in names {
                pruned.removed.push(client.backup_delete(&name, &DeleteBackup { discard }).await?);
            }
            Ok(report(pruned, false, session))
        }
    }
}

fn report(pruned: PrunedBackups, dry_run: bool, session: &Invocation) -> Report {
    let verb = if dry_run { "would remove" } else { "removed" };
    let said = format!("{verb} {}, kept {} that are still needed", pruned.removed.len(), pruned.kept.len());
    let text = render::backup::list(&pruned.removed, session.now());
    Report::new(pruned, text).note(Level::Info, said)
}
