//! `drydock plan sync|adopt`: bringing a plan's branch and its remote together, and taking a draft by hand.

use drydock_api::{Terms, exit};

use super::args::Which;
use crate::cli::outcome::of_steering;
use crate::cli::report::{Ending, Level, Outcome, Report};
use crate::cli::session::Session;
use crate::render;

pub(crate) async fn sync(session: &Session, plan: Which) -> Outcome {
    let synced = session.client().plan_sync(&plan.id, &Terms::default()).await?;
    let text = format!("{}  {}", synced.sync.outcome, synced.sync.text);
    let (ending, next) = match &synced.decision {
        Some(decision) => {
            (Ending::Attention(exit::UNDECIDED), Some(format!("drydock decision show {}", decision.id)))
        }
        None if synced.sync.standing == "settled" => (Ending::Done, render::next::command(&synced.plan)),
        None => (Ending::Attention(exit::FAILED), None),
    };
    let level = match ending {
        Ending::Done => Level::Info,
        Ending::Attention(_) | Ending::Failed(_) => Level::Warn,
    };
    let hint = synced.sync.hint.clone().filter(|_| level == Level::Warn && next.is_none());
    let report = Report::new(synced, text).ending(ending).go_on(level, next);
    Ok(match hint {
        Some(hint) => report.note(Level::Warn, hint),
        None => report,
    })
}

pub(crate) async fn adopt(session: &Session, plan: Which) -> Outcome {
    let plan = session.client().plan_adopt(&plan.id, &Terms::default()).await?;
    Ok(of_steering(plan))
}
