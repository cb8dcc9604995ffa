//! `drydock lock`: list, break.

use clap::Subcommand;
use drydock_api::OneLock;

use super::report::{Level, Outcome, Report};
use super::session::Session;
use crate::render;

/// Subcommands of `drydock lock`.
#[derive(Debug, Subcommand)]
pub(crate) enum Lock {
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

impl Lock {
    pub(crate) fn verb(&self) -> &'static str {
        match self {
            Lock::List => "list",
            Lock::Break { .. } => "break",
        }
    }
}

pub(crate) async fn run(session: &Session, command: Lock) -> Outcome {
    let client = session.client();
    match command {
        Lock::List => {
            let locks = client.locks().await?;
            let text = render::lock::list(&locks.locks, session.now());
            Ok(Report::new(locks, text).or_say("no locks are held"))
        }
        Lock::Break { id, reason } => {
            let lock = client.lock_break(&id, reason).await?;
            let said = format!("broke the lock of {} {}, held by {}", lock.scope, lock.key, lock.owner);
            let text = render::lock::list(std::slice::from_ref(&lock), session.now());
            Ok(Report::new(OneLock { lock }, text).note(Level::Info, said))
        }
    }
}
