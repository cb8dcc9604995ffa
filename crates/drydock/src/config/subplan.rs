//! `[subplans]` and `[limits]`: the width and depth of subplans, and the number of concurrent phases.

use drydock_engine::{PhaseLimits, SubplanLimits};
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSubplanLimits {
    depth_max: Option<u32>,
    width_max: Option<u32>,
    parallel: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPhaseLimits {
    running: Option<u32>,
    running_per_project: Option<u32>,
}

impl RawSubplanLimits {
    pub(super) fn resolve(self) -> Result<SubplanLimits, String> {
        let usual = SubplanLimits::default();
        if self.parallel == Some(0) {
            return Err("[subplans] parallel = 0 would prevent all subplans from running".to_owned());
        }
        Ok(SubplanLimits {
            depth_max: self.depth_max.unwrap_or(usual.depth_max),
            width_max: self.width_max.map_or(usual.width_max, |width| width as usize),
            parallel: self.parallel.unwrap_or(usual.parallel),
        })
    }
}

impl RawPhaseLimits {
    pub(super) fn resolve(self) -> Result<PhaseLimits, String> {
        let Self { running, running_per_project } = self;
        for (key, given) in [("running", running), ("running_per_project", running_per_project)] {
            if given == Some(0) {
                return Err(format!("[limits] {key} = 0 would prevent all runs"));
            }
        }
        Ok(PhaseLimits { store: running, project: running_per_project })
    }
}
