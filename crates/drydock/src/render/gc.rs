//! The report of gc: the removed objects and why that was safe, and the kept objects and why.

use drydock_api::Gc;

use super::columns::{Cell, table};
use super::style::{CAUTION, GOOD};

pub(crate) fn report(gc: &Gc) -> String {
    let removed = if gc.dry_run { "would remove" } else { "removed" };
    let mut rows: Vec<_> = gc
        .removed
        .iter()
        .map(|one| [Cell::styled(GOOD, removed), Cell::new(&one.what), Cell::new(&one.proof)])
        .collect();
    rows.extend(
        gc.kept
            .iter()
            .map(|one| [Cell::styled(CAUTION, "kept"), Cell::new(&one.what), Cell::new(&one.reason)]),
    );
    table(["", "OBJECT", "REASON"], rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::{Kept, Removed};

    #[test]
    fn a_dry_run_does_not_claim_to_have_removed() {
        let gc = Gc {
            removed: vec![Removed { what: "a".into(), proof: "landed".into() }],
            kept: vec![Kept { what: "b".into(), reason: "open".into() }],
            dry_run: true,
        };
        assert!(bare(&report(&gc)).contains("would remove  a       landed\nkept          b       open\n"));
        assert!(bare(&report(&Gc { dry_run: false, ..gc })).contains("removed  a"));
    }
}
