//! `drydock plan sync|adopt`: syncs a plan's branch with its remote, and adopts a strategy draft.

use drydock_api::{Code, Problem, RequestOptions, Synced, exit};

use super::args::PlanIdArgs;
use crate::cli::outcome::of_steering;
use crate::cli::report::{CliResult, Level, Report, ReportStatus};
use crate::cli::session::Invocation;
use crate::render;

pub(crate) async fn sync(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let synced = session.client().plan_sync(&plan.id, &RequestOptions::default()).await?;
    let text = format!("{}  {}", synced.sync.outcome, synced.sync.text);
    let (ending, level, next) = match &synced.decision {
        Some(decision) => {
            let next = Some(format!("drydock decision show {}", decision.id));
            (ReportStatus::Attention(exit::UNDECIDED), Level::Warn, next)
        }
        None if synced.sync.standing == "settled" => {
            (ReportStatus::Done, Level::Info, render::next::command(&synced.plan))
        }
        None => (ReportStatus::Failed(Box::new(unsynced(&synced))), Level::Warn, None),
    };
    Ok(Report::new(synced, text).ending(ending).go_on(level, next))
}

fn unsynced(synced: &Synced) -> Problem {
    let problem =
        Problem::new(Code::SyncFailed, synced.sync.text.clone()).with("plan", synced.plan.id.clone());
    match &synced.sync.hint {
        Some(hint) => problem.hint(hint.clone()),
        None => problem,
    }
}

pub(crate) async fn adopt(session: &Invocation, plan: PlanIdArgs) -> CliResult {
    let plan = session.client().plan_adopt(&plan.id, &RequestOptions::default()).await?;
    Ok(of_steering(plan))
}
