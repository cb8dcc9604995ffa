//! Backups: commits and edits removed from a branch, and how to restore them.

use drydock_api::{Backup, BackupQuery};
use maud::{Markup, html};
use serde::Deserialize;

use super::act::{ButtonInput, CommandButton, Weight};
use super::ask::{PageClient, PageQuery};
use super::shell::{Frame, Html, NavItem, RefreshOn, document};
use super::trouble::PageError;
use super::words::{commit, short_id, when};

/// The maximum number of commits listed per backup.
const COMMITS_MAX: usize = 20;

/// The query of the view.
#[derive(Debug, Clone, Default, Deserialize)]
pub(super) struct BackupsPageQuery {
    plan: Option<String>,
}

pub(super) async fn show(
    ask: PageClient,
    PageQuery(wanted): PageQuery<BackupsPageQuery>,
) -> Result<Html, PageError> {
    let frame = Frame::read(&ask).await?;
    let plan = wanted.plan.filter(|plan| !plan.is_empty());
    let backups = ask.client().backups(&BackupQuery { plan: plan.clone() }).await?;
    let (backups, unseen) = (backups.backups, backups.unseen);
    let main = html! {
        header.top {
            h1 { "Backups" }
            @if let Some(plan) = &plan { p { "of " a href={ "/plans/" (plan) } { (short_id(plan)) } ", or " a href="/backups" { "show all plans" } } }
        }
        @for text in &unseen { p.problem role="alert" { (text) } }
        @if backups.is_empty() && unseen.is_empty() {
            div.empty {
                h2 { "No backups" }
                p { "Commits and edits are backed up before they are removed from a plan's branch. The backups appear here." }
            }
        } @else {
            ul.rows { @for backup in &backups { (row(backup)) } }
        }
    };
    Ok(document(&frame, "Backups", NavItem::Backups, RefreshOn::Plans, main))
}

fn row(backup: &Backup) -> Markup {
    let number = backup.reference.rsplit('/').next().unwrap_or_default();
    let id = format!("restore-{}-{number}", backup.plan);
    let act = CommandButton {
        id: &id,
        route: format!("/backups/{}/{number}/restore", backup.plan),
        label: "Restore",
        weight: Weight::Plain,
        seen: None,
        done: "Restored the backup as a branch.",
    };
    html! {
        li.row-item data-id=(id) {
            div {
                p.row-title {
                    code { (backup.reference) }
                    a href={ "/plans/" (backup.plan) } data-item { (short_id(&backup.plan)) }
                    (when(&backup.created_at))
                }
                p { (backup.reason) }
                @if let Some(needed) = &backup.needed { p.hint { (needed) } }
                ul.plain-list {
                    @for one in backup.commits.iter().take(COMMITS_MAX) { li { code { (commit(&one.id)) } " " (one.subject) @if !one.author.is_empty() { span.hint { " " (one.author) } } } }
                    @if backup.commits.len() > COMMITS_MAX { li.hint { "and " (backup.commits.len() - COMMITS_MAX) " more" } }
                    @if backup.uncommitted { li.hint { "and uncommitted edits" } }
                }
            }
            @if !backup.commits.is_empty() || backup.uncommitted {
                (act.asking(
                    "Restore this backup?",
                    "A new branch is created with its commits. Existing branches are not moved, and the backup is kept.",
                    ButtonInput::Optional("branch", "Name of the new branch"),
                    &[],
                ))
            }
        }
    }
}
