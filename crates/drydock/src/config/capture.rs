//! `[capture]`: limits on the changed files that a capture takes.

use drydock_agent::Size;
use drydock_engine::CaptureBounds;
use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Written {
    file_max: Option<Size>,
    total_max: Option<Size>,
    files_max: Option<u64>,
}

impl Written {
    pub(super) fn resolve(self) -> Result<CaptureBounds, String> {
        let usual = CaptureBounds::default();
        let bounds = CaptureBounds {
            file_max: self.file_max.map_or(usual.file_max, Size::bytes),
            total_max: self.total_max.map_or(usual.total_max, Size::bytes),
            files_max: self.files_max.unwrap_or(usual.files_max),
        };
        let CaptureBounds { file_max, total_max, files_max } = bounds;
        for (key, given) in [("file_max", file_max), ("total_max", total_max), ("files_max", files_max)] {
            if given == 0 {
                return Err(format!("[capture] {key} = 0 would allow no changes"));
            }
        }
        Ok(bounds)
    }
}
