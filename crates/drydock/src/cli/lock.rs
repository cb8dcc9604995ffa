//! `drydock lock`: list, break.

use clap::Subcommand;
use drydock_api::OneLock;

use super::report::{CliResult, Level, Report};
use super::session::Invocation;
use crate::render;

/// Subcommands of `drydock lock`.
#[derive(Debug, Subcommand)]
pub(crate) enum LockCommand {
    /// List locks
    List,
    /// Break a lock; its holder can no longer commit
    Break {
        /// Lock id or unique prefix
        id: String,
        /// Reason, which is recorded
        #[arg(long)]
        reason: String,
    },
}

impl LockCommand {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            LockCommand::List => "list",
            LockCommand::Break { .. } => "break",
        }
    }
}

pub(crate) async fn run(session: &Invocation, command: LockCommand) -> CliResult {
    let client = session.client();
    match command {
        LockCommand::List => {
            let locks = client.locks().await?;
            let text = render::lock::list(&locks.locks, session.now());
            Ok(Report::new(locks, text).or_say("no locks are held"))
        }
        LockCommand::Break { id, reason } => {
            let lock = client.lock_break(&id, reason).await?;
            let said = format!("broke the lock of {} {}, held by {}", lock.scope, lock.key, lock.owner);
            let text = render::lock::list(std::slice::from_ref(&lock), session.now());
            Ok(Report::new(OneLock { lock }, text).note(Level::Info, said))
        }
    }
}
