//! Buttons that change something. Each is a form that the script posts to the API as JSON. An action that cannot be
//! undone opens a dialog first that describes its effect.

use drydock_api::{Offer, Plan};
use maud::{Markup, html};

use super::words::with_code;

/// The visual weight of a button.
#[derive(Debug, Clone, Copy)]
pub(super) enum Weight {
    Primary,
    Plain,
    Danger,
}

/// The text that a dialog asks for before a button acts.
#[derive(Debug, Clone, Copy)]
pub(super) enum ButtonInput {
    /// No text, only a confirmation.
    None,
    /// An optional text: its field name and its label.
    Optional(&'static str, &'static str),
    /// A required text: its field name and its label.
    Required(&'static str, &'static str),
}

/// An action behind a button.
pub(super) struct CommandButton<'a> {
    /// Unique on the page.
    pub(super) id: &'a str,
    /// The route below `/api/v1`.
    pub(super) route: String,
    pub(super) label: &'a str,
    pub(super) weight: Weight,
    /// The revision that the page shows, if the action depends on it.
    pub(super) seen: Option<i64>,
    /// The message after success.
    pub(super) done: &'a str,
}

fn class(weight: Weight) -> &'static str {
    match weight {
        Weight::Primary => "button primary",
        Weight::Plain => "button",
        Weight::Danger => "button danger",
    }
}

impl CommandButton<'_> {
    /// Returns a button that acts at once.
    pub(super) fn at_once(&self) -> Markup {
        html! {
            form.act.script data-id={ "act-" (self.id) } data-post={ "/api/v1" (self.route) } data-seen=[self.seen] data-done=(self.done) {
                button class=(class(self.weight)) { (self.label) }
                p.problem role="alert" {}
            }
        }
    }

    /// Returns a button that opens a dialog first. `hidden` are additional form fields.
    pub(super) fn asking(
        &self,
        title: &str,
        text: &str,
        words: ButtonInput,
        hidden: &[(&str, &str)],
    ) -> Markup {
        self.dialog(title, text, field(self.id, words, None), hidden)
    }

    /// Returns a button that opens a dialog first, with a text already in its field.
    fn asking_with(&self, title: &str, text: &str, words: ButtonInput, given: Option<&str>) -> Markup {
        self.dialog(title, text, field(self.id, words, given), &[])
    }

    fn dialog(&self, title: &str, text: &str, field: Markup, hidden: &[(&str, &str)]) -> Markup {
        let dialog = format!("dialog-{}", self.id);
        let named = format!("{dialog}-title");
        html! {
            div.act.script data-id={ "act-" (self.id) } {
                button class=(class(self.weight)) type="button" data-dialog=(dialog) { (self.label) "…" }
                dialog id=(dialog) aria-labelledby=(named) {
                    form data-post={ "/api/v1" (self.route) } data-seen=[self.seen] data-done=(self.done) {
                        h2 id=(named) { (title) }
                        p { (with_code(text)) }
                        @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                        (field)
                        p.problem role="alert" {}
                        div.row.end {
                            button.button type="button" data-close { "Back" }
                            button class=(class(self.weight)) { (self.label) }
                        }
                    }
                }
            }
        }
    }
}

fn field(id: &str, words: ButtonInput, given: Option<&str>) -> Markup {
    let (name, label, is_required) = match words {
        ButtonInput::None => return html! {},
        ButtonInput::Optional(name, label) => (name, label, false),
        ButtonInput::Required(name, label) => (name, label, true),
    };
    let named = format!("field-{id}");
    html! {
        label.field for=(named) { (label) @if !is_required { span.hint { " (optional)" } } }
        textarea id=(named) name=(name) rows="3" required[is_required] { (given.unwrap_or_default()) }
    }
}

/// Returns a button for each action that the plan offers. Answers are below its question, and checkpoints have their
/// own buttons.
pub(super) fn on_plan(plan: &Plan, remote: Option<&str>) -> Markup {
    let is_asked = plan.pending_decision.is_some();
    html! {
        @for (at, offer) in plan.offers().iter().enumerate() {
            @match offer.command.as_str() {
                // The card of the question offers the same as an answer.
                "strategize" | "execute" | "apply" | "retry" if is_asked => {},
                "strategize" | "execute" | "apply" => (moving(plan, offer)),
                "retry" | "accept" | "takeover" => (act(plan, offer, weight(at), "Queued again.").at_once()),
                "prompt" => (guiding(plan, offer)),
                "adopt" => (drafting(plan, offer)),
                "sync" => @if let Some(remote) = remote { (syncing(plan, offer, remote)) },
                "revert" => (reverting(plan, offer, weight(at))),
                "cancel" => (cancelling(plan, offer)),
                _ => {},
            }
        }
    }
}

/// The first offer helps most, so it gets the most weight.
fn weight(at: usize) -> Weight {
    if at == 0 { Weight::Primary } else { Weight::Plain }
}

fn act<'a>(plan: &Plan, offer: &'a Offer, weight: Weight, done: &'a str) -> CommandButton<'a> {
    CommandButton {
        id: &offer.command,
        route: format!("/plans/{}/{}", plan.id, offer.command),
        label: &offer.label,
        weight,
        seen: Some(plan.revision),
        done,
    }
}

/// Returns the button for a phase. A queued phase has none: a worker runs it, and requesting it again has no effect.
fn moving(plan: &Plan, offer: &Offer) -> Markup {
    let is_queued = plan.phase.name() == offer.command && plan.gate.is_none();
    let done = format!("Queued {}.", offer.command);
    let act = act(plan, offer, Weight::Primary, &done);
    match offer.command.as_str() {
        _ if is_queued => html! {},
        "apply" => landing(&act, plan),
        _ => act.at_once(),
    }
}

fn reverting(plan: &Plan, offer: &Offer, weight: Weight) -> Markup {
    let text = "The strategy is discarded and the task is planned again with this reason. The work so far is kept as a checkpoint. A plan can be reverted three times.";
    let field = ButtonInput::Required("reason", "Reason (for the agents)");
    let act = act(plan, offer, weight, "Reverted to Strategize.");
    act.asking_with("Revert to Strategize?", text, field, offer.reason.as_deref())
}

fn cancelling(plan: &Plan, offer: &Offer) -> Markup {
    act(plan, offer, Weight::Danger, "Cancelled the plan.").asking(
        "Cancel this plan?",
        "Its agents are stopped, and it cannot be resumed. Its work is kept until `drydock gc` finds it safe to delete.",
        ButtonInput::Required("reason", "Reason (recorded)"),
        &[],
    )
}

/// Returns the button to adopt a draft, which is possible during strategize, from the directory of the plan's latest
/// run.
fn drafting(plan: &Plan, offer: &Offer) -> Markup {
    let route = format!("/plans/{}/strategy/adopt", plan.id);
    let act = CommandButton { route, ..act(plan, offer, Weight::Plain, "Adopted the draft.") };
    let text = "The draft in the worktree of the latest run, .drydock/strategy.json, replaces the strategy. \
                If the project has a remote, the branch is synced with it first.";
    act.asking("Adopt the draft?", text, ButtonInput::None, &[])
}

fn syncing(plan: &Plan, offer: &Offer, remote: &str) -> Markup {
    let text = format!(
        "The plan's branch is synced with its branch on {remote}, in both directions. \
         Commits that cannot be rebased are backed up, and you are asked what to do."
    );
    let act = act(plan, offer, Weight::Plain, "Synced the branch.");
    act.asking(&format!("Sync with {remote}?"), &text, ButtonInput::None, &[])
}

/// The question before a result lands.
pub(super) const LANDING: &str = "Land this result?";

/// Returns a sentence about the effect of landing.
pub(super) fn lands(plan: &Plan) -> String {
    format!(
        "The result lands as one commit on the target branch of {}. Drydock cannot undo this; use git revert.",
        plan.project
    )
}

fn landing(act: &CommandButton<'_>, plan: &Plan) -> Markup {
    act.asking(LANDING, &lands(plan), ButtonInput::None, &[])
}

/// Returns the button for guidance. It sends no revision because guidance stays valid when the plan has changed.
fn guiding(plan: &Plan, offer: &Offer) -> Markup {
    let act = CommandButton { seen: None, ..act(plan, offer, Weight::Plain, "Added the guidance.") };
    act.asking(
        "Add guidance for the agents",
        "The agents of this plan get it from the next run on.",
        ButtonInput::Required("text", "Guidance"),
        &[],
    )
}
