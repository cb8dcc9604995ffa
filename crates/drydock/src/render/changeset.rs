//! Changesets as text: the paths that one writer changed.

use drydock_api::{ChangeOp, Changeset, ChangesetState};

use super::columns::{Block, Cell, table};
use super::style::{BAD, BUSY, CAUTION, GOOD, STRONG, paint, plain};

/// Returns a table of changesets.
pub(crate) fn list(changesets: &[Changeset]) -> String {
    let rows = changesets.iter().map(|changeset| {
        [
            Cell::styled(STRONG, &changeset.id),
            Cell::new(changeset.state.name()),
            Cell::new(&changeset.run),
            Cell::new(&changeset.writer),
            Cell::new(changeset.entries.len().to_string()),
        ]
    });
    table(["ID", "STATE", "RUN", "WRITER", "CHANGES"], rows.collect())
}

/// Returns a changeset with every path.
pub(crate) fn show(changeset: &Changeset) -> String {
    let state = match changeset.state {
        ChangesetState::Open => CAUTION,
        ChangesetState::Sealed => BUSY,
    };
    let head = Block::default()
        .line(format!("{}  {}", paint(STRONG, &changeset.id), paint(state, changeset.state.name())))
        .field("plan", &changeset.plan)
        .field("run", &changeset.run)
        .field("writer", &changeset.writer)
        .done();
    let entries = changeset.entries.iter().map(|entry| {
        let style = match entry.op {
            ChangeOp::Create => GOOD,
            ChangeOp::Modify => CAUTION,
            ChangeOp::Delete => BAD,
            ChangeOp::Rename => BUSY,
        };
        let from = entry.from.as_ref().map(|from| format!(" (was {from})")).unwrap_or_default();
        let op = paint(style, &format!("{:<6}", entry.op.name()));
        format!("  {op} {}{}\n", plain(&entry.path), plain(&from))
    });
    head + &entries.collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::Entry;

    #[test]
    fn every_path_is_named_with_what_happened_to_it() {
        let entry = |path: &str, op, from: Option<&str>| Entry {
            seq: 1,
            path: path.into(),
            op,
            from: from.map(Into::into),
            before: None,
            after: None,
            at: String::new(),
        };
        let changeset = Changeset {
            id: "chg-1".into(),
            plan: "pln-1".into(),
            run: "run-1".into(),
            writer: "w".into(),
            state: ChangesetState::Sealed,
            entries: vec![entry("a", ChangeOp::Create, None), entry("b", ChangeOp::Rename, Some("c"))],
            opened_at: None,
        };
        assert!(bare(&show(&changeset)).ends_with("  create a\n  rename b (was c)\n"));
        assert!(bare(&list(&[changeset])).ends_with("chg-1  sealed  run-1  w       2\n"));
    }
}
