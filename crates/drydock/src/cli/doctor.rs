//! `drydock doctor`.

use clap::Args;
use drydock_api::{CheckStatus, Code, OneDoctor, Problem, exit};

use super::report::{CliResult, Report, ReportStatus};
use super::session::Invocation;
use crate::render;

/// Arguments of `drydock doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {}

pub(crate) async fn run(session: &Invocation, _args: DoctorArgs) -> CliResult {
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
        ReportStatus::Attention(exit::OK)
    } else if broken.is_empty() {
        ReportStatus::Done
    } else {
        let text = format!("checks failed: {}", broken.join(", "));
        ReportStatus::Failed(Box::new(Problem::new(Code::Unhealthy, text).hint("see the lines above")))
    };
    Ok(Report::new(OneDoctor { doctor }, text).ending(ending))
}
