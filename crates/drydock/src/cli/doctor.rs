//! `drydock doctor`.

use clap::Args;
use drydock_api::{CheckStatus, Code, OneDoctor, Problem, exit};

use super::report::{Ending, Outcome, Report};
use super::session::Session;
use crate::render;

/// Arguments of `drydock doctor`.
#[derive(Debug, Args)]
pub(crate) struct Doctor {}

pub(crate) async fn run(session: &Session, _args: Doctor) -> Outcome {
    let doctor = session.client().doctor().await?;
    let text = render::doctor::report(&doctor);
    let broken: Vec<_> = doctor
        .checks
        .iter()
        .filter(|check| check.status == CheckStatus::Error)
        .map(|check| check.name.clone())
        .collect();
    let warned =
        doctor.stale_locks > 0 || doctor.checks.iter().any(|check| check.status == CheckStatus::Warn);
    let ending = if broken.is_empty() && warned {
        Ending::Attention(exit::OK)
    } else if broken.is_empty() {
        Ending::Done
    } else {
        let text = format!("checks failed: {}", broken.join(", "));
        Ending::Failed(Box::new(Problem::new(Code::Unhealthy, text).hint("see the lines above")))
    };
    Ok(Report::new(OneDoctor { doctor }, text).ending(ending))
}
