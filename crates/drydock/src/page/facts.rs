//! The sidebar of a plan: its agents and project, the results of its validations and reviews, its checkpoints,
//! changesets and backups.

use drydock_api::{ChangeOp, Changeset, Checkpoint, Event, Plan};
use drydock_domain::counted;
use maud::{Markup, html};
use serde_json::Value;

use super::act::{ButtonInput, CommandButton, Weight};
use super::mark::icon;
use super::plan::PlanOverview;
use super::words::{commit, short_id, when};

/// The maximum number of paths listed per changeset.
const PATHS_MAX: usize = 50;

/// Returns the sidebar.
pub(super) fn all(whole: &PlanOverview) -> Markup {
    html! {
        (about(&whole.plan))
        (judged(&whole.events))
        (checkpoints(&whole.plan, whole.checkpoints.as_deref()))
        (changesets(&whole.changesets))
        @if !whole.backups.is_empty() {
            section { h2 { "Backups" }
                p { a href={ "/backups?plan=" (whole.plan.id) } { (whole.backups.len()) " of this plan" } }
            }
        }
    }
}

fn about(plan: &Plan) -> Markup {
    let fact = |name: &str, value: Markup| html! { div { dt { (name) } dd { (value) } } };
    html! {
        section aria-labelledby="about" {
            h2 id="about" { "About" }
            dl.facts {
                (fact("Project", html! { (plan.project) }))
                @if let Some(action) = &plan.action { (fact("Action", html! { (action) })) }
                @for (name, value) in &plan.arguments { (fact(name, html! { (value) })) }
                (fact("Profile", html! { (plan.profile) }))
                @if let Some(agent) = &plan.agents.strategize { (fact("Strategist", html! { (agent) })) }
                @if let Some(agent) = &plan.agents.execute { (fact("Agent", html! { (agent) })) }
                @for one in &plan.agents.reviewers { (fact("Reviewer", html! { (one.agent) @if one.critical { " (critical)" } })) }
                (fact("Branch", html! { code { (plan.branch) } }))
                (fact("Base", html! { code { (commit(&plan.base_commit)) } }))
                @if let Some(head) = &plan.head_commit { (fact("Result", html! { code { (commit(head)) } })) }
                @if let Some(landed) = &plan.landed_commit { (fact("Landed", html! { code title=(landed) { (commit(landed)) } })) }
                @if let Some(run) = &plan.run { (fact("Run", html! { code { (short_id(run)) } " (number " (plan.runs) ")" })) }
                (fact("Revision", html! { (plan.revision) }))
                @if plan.reversions > 0 { (fact("Reversions", html! { (plan.reversions) " of 3" })) }
                (fact("Created", when(&plan.created_at)))
                (fact("Changed", when(&plan.updated_at)))
            }
        }
    }
}

/// Returns the latest result of each validation and reviewer.
fn judged(events: &[Event]) -> Markup {
    let mut latest: Vec<(String, Markup)> = Vec::new();
    for event in events.iter().rev() {
        let Some((key, shown)) = verdict(event) else { continue };
        if latest.iter().all(|(known, _)| *known != key) {
            latest.push((key, shown));
        }
    }
    if latest.is_empty() {
        return html! {};
    }
    latest.sort_by(|one, other| one.0.cmp(&other.0));
    html! {
        section aria-labelledby="judged" {
            h2 id="judged" { "Validations and reviews" }
            ul.plain-list { @for (key, shown) in &latest { li data-id=(key) { (shown) } } }
        }
    }
}

fn verdict(event: &Event) -> Option<(String, Markup)> {
    let text = |name: &str| event.data.get(name).and_then(Value::as_str).unwrap_or_default();
    let (family, what) = event.kind.split_once('.')?;
    let (name, shape, tone, word) = match (family, what) {
        ("validation", "passed") => (text("name"), "complete", "good", "passed"),
        ("validation", "failed") => (text("name"), "errored", "bad", "failed"),
        ("review", "acknowledged") => (text("agent"), "complete", "good", "approved"),
        ("review", "refused") => (text("agent"), "errored", "bad", "rejected"),
        ("review", "silent") => (text("agent"), "cancelled", "faint", "no valid verdict"),
        _ => return None,
    };
    let reason = if family == "validation" { text("text") } else { text("reason") };
    let shown = html! {
        p { span class={ "mark tone-" (tone) } { (icon(shape)) span { (name) " " (word) } } " " (when(&event.at)) }
        @if tone == "bad" && !reason.is_empty() { p.hint.clip { (reason) } }
    };
    Some((format!("{family}-{name}"), shown))
}

fn checkpoints(plan: &Plan, checkpoints: Option<&[Checkpoint]>) -> Markup {
    let can_go_back = plan.offer("rollback").is_some();
    html! {
        section aria-labelledby="checkpoints" {
            h2 id="checkpoints" { "Checkpoints" }
            @match checkpoints {
                None => p.hint { "The repository cannot be read; see Health." },
                Some([]) => p.hint { "No checkpoints yet. One is saved after each run." },
                Some(all) => ul.plain-list { @for one in all.iter().rev() { (checkpoint(plan, one, can_go_back)) } },
            }
        }
    }
}

fn checkpoint(plan: &Plan, one: &Checkpoint, can_go_back: bool) -> Markup {
    let number = one.reference.rsplit('/').next().unwrap_or(&one.reference);
    let id = format!("rollback-{number}");
    let act = CommandButton {
        id: &id,
        route: format!("/plans/{}/rollback", plan.id),
        label: "Roll back",
        weight: Weight::Plain,
        seen: Some(plan.revision),
        done: "Rolled back to the checkpoint.",
    };
    let text = "The next run starts from the files of this checkpoint. The current files are saved as a checkpoint first.";
    html! {
        li.checkpoint data-id=(id) {
            p { strong { (number) } " " (one.label.as_deref().unwrap_or("kept")) " " (when(&one.created_at)) }
            @if can_go_back { (act.asking(&format!("Roll back to checkpoint {number}?"), text, ButtonInput::None, &[("checkpoint", number)])) }
        }
    }
}

fn changesets(changesets: &[Changeset]) -> Markup {
    html! {
        section aria-labelledby="changesets" {
            h2 id="changesets" { "Changesets" }
            @if changesets.is_empty() { p.hint { "No changes yet." } }
            @for one in changesets.iter().rev() {
                details.changeset data-id=(one.id) {
                    summary { (one.writer) ": " (counted(one.entries.len(), "path")) ", " (one.state) }
                    ul.plain-list {
                        @for entry in one.entries.iter().take(PATHS_MAX) {
                            li { span.op { (op(entry.op)) } " " code { (entry.path) } @if let Some(from) = &entry.from { " from " code { (from) } } }
                        }
                        @if one.entries.len() > PATHS_MAX { li.hint { "and " (one.entries.len() - PATHS_MAX) " more: " code { "drydock changeset show " (one.id) } } }
                    }
                }
            }
        }
    }
}

fn op(op: ChangeOp) -> &'static str {
    match op {
        ChangeOp::Create => "new",
        ChangeOp::Modify => "changed",
        ChangeOp::Delete => "deleted",
        ChangeOp::Rename => "renamed",
    }
}
