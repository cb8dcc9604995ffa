//! Backups as text: one with its commits, many in a table.

use drydock_api::Backup;
use drydock_domain::counted;
use jiff::Timestamp;

use super::columns::{Block, Cell, table};
use super::style::{STRONG, paint, short};
use super::time::ago;

const REASON_CHARS_MAX: usize = 50;
const COMMITS_SHOWN_MAX: usize = 50;

/// Returns a table of backups.
pub(crate) fn list(backups: &[Backup], now: Timestamp) -> String {
    let rows = backups.iter().map(|backup| {
        [
            Cell::styled(STRONG, &backup.reference),
            Cell::new(kept(backup)),
            Cell::new(ago(&backup.created_at, now)),
            Cell::new(short(&backup.reason, REASON_CHARS_MAX)),
        ]
    });
    table(["REF", "KEEPS", "CREATED", "REASON"], rows.collect())
}

/// Returns a backup with its commits.
pub(crate) fn show(backup: &Backup, now: Timestamp) -> String {
    let mut block = Block::default()
        .line(paint(STRONG, &backup.reference))
        .field("commit", &backup.commit)
        .field("keeps", kept(backup))
        .field("plan", &backup.plan)
        .maybe("run", backup.run.as_ref())
        .field("project", &backup.project)
        .field("reason", &backup.reason)
        .field("created", ago(&backup.created_at, now));
    for commit in backup.commits.iter().take(COMMITS_SHOWN_MAX) {
        let id = commit.id.get(..10).unwrap_or(&commit.id);
        block = block.field("contains", format!("{id} {} ({})", commit.subject, commit.author));
    }
    if backup.commits.len() > COMMITS_SHOWN_MAX {
        block = block.field("contains", format!("and {} more", backup.commits.len() - COMMITS_SHOWN_MAX));
    }
    let block = block.maybe("needed", backup.needed.as_ref());
    match backup.commits.is_empty() && !backup.uncommitted {
        true => block.done(),
        false => block.field("restore", format!("drydock backup restore {}", backup.reference)).done(),
    }
}

fn kept(backup: &Backup) -> String {
    let commits = match backup.commits.len() {
        0 => "no commits of its own".to_owned(),
        some => counted(some, "commit"),
    };
    if backup.uncommitted { format!("{commits} with uncommitted edits") } else { commits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::columns::bare;
    use drydock_api::Commit;

    #[test]
    fn a_backup_says_what_it_keeps_and_how_to_bring_it_back() {
        let backup = Backup {
            reference: "refs/drydock/pin/pln-1/2".into(),
            commit: "c".repeat(40),
            project: "site".into(),
            plan: "pln-1".into(),
            run: None,
            reason: "the branch and its remote diverged".into(),
            commits: vec![Commit { id: "c".repeat(40), subject: "mine".into(), author: "ada".into() }],
            uncommitted: true,
            created_at: "2026-03-10T11:57:00Z".into(),
            needed: Some("it keeps a commit that is nowhere else".into()),
        };
        let now = "2026-03-10T12:00:00Z".parse().unwrap();
        let text = bare(&show(&backup, now));
        for said in [
            "refs/drydock/pin/pln-1/2\n",
            "  keeps       1 commit with uncommitted edits\n",
            "  contains    cccccccccc mine (ada)\n",
            "  needed      it keeps a commit that is nowhere else\n",
            "  restore     drydock backup restore refs/drydock/pin/pln-1/2\n",
        ] {
            assert!(text.contains(said), "{said:?} is missing in\n{text}");
        }
        assert!(
            bare(&list(std::slice::from_ref(&backup), now))
                .contains("refs/drydock/pin/pln-1/2  1 commit with")
        );
        // Page B8: no restore is offered for a backup without content.
        let empty = Backup { commits: Vec::new(), uncommitted: false, needed: None, ..backup };
        assert!(!bare(&show(&empty, now)).contains("restore"));
    }
}
