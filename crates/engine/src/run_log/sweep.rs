//! Removes the logs of plans that ended long enough ago. Logs of plans that are not in this store are left
//! alone, because several stores may have their logs in one directory.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

use drydock_domain::{Plan, PlanId, Timestamp, counted};

use crate::engine::Engine;
use crate::error::EngineError;
use crate::upkeep::{GcKept, GcMode, GcRemoved, GcResult};
use crate::{clock, task};

impl Engine {
    pub(crate) async fn collect_logs(
        &self,
        sweep: GcMode,
        collected: &mut GcResult,
    ) -> Result<(), EngineError> {
        let failed = |source| EngineError::File { attempt: "list the logs".to_owned(), source };
        let logs = self.settings().logs.clone();
        for id in task::blocking(move || plans(&logs)).await.map_err(failed)? {
            let Some(plan) = self.store().plan_fetch(&id).await? else { continue };
            let Some(proof) = proof(&plan, self.settings().logs_keep_days, clock::now()) else { continue };
            let (what, directory) = (format!("logs of {id}"), self.settings().logs.join(id.as_str()));
            let removed = match sweep {
                GcMode::Tell => Ok(()),
                GcMode::Remove => task::blocking(move || fs::remove_dir_all(directory)).await,
            };
            match removed {
                Ok(()) => collected.removed.push(GcRemoved { what, proof }),
                Err(error) => collected.kept.push(GcKept { what, reason: error.to_string() }),
            }
        }
        Ok(())
    }
}

/// Returns why the logs of a plan may be removed; `None` if they may not.
fn proof(plan: &Plan, keep_days: u32, now: Timestamp) -> Option<String> {
    let kept_for = Duration::from_secs(u64::from(keep_days) * 24 * 3600);
    let over = plan.stage.is_terminal() && now >= plan.updated_at.plus(kept_for);
    let (state, since) = (plan.stage.state(), plan.updated_at);
    over.then(|| {
        format!(
            "the plan is {state} since {since}; logs are kept for {} after that",
            counted(keep_days, "day")
        )
    })
}

fn plans(logs: &Path) -> io::Result<Vec<PlanId>> {
    let entries = match fs::read_dir(logs) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut plans = Vec::new();
    for entry in entries {
        // A directory that is not named like a plan was not created by drydock.
        plans.extend(entry?.file_name().to_string_lossy().parse::<PlanId>());
    }
    Ok(plans)
}
