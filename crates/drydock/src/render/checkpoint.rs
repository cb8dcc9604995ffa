//! Checkpoints in a table.

use drydock_api::Checkpoint;
use jiff::Timestamp;

use super::columns::{Cell, table};
use super::style::STRONG;
use super::time::ago;

/// Returns a table of checkpoints.
pub(crate) fn list(checkpoints: &[Checkpoint], now: Timestamp) -> String {
    let rows = checkpoints.iter().map(|checkpoint| {
        [
            Cell::styled(STRONG, &checkpoint.reference),
            Cell::new(&checkpoint.commit),
            Cell::new(ago(&checkpoint.created_at, now)),
            Cell::new(checkpoint.label.as_deref().unwrap_or_default()),
        ]
    });
    table(["REF", "COMMIT", "CREATED", "LABEL"], rows.collect())
}
