//! Buttons that change something. Each is a form that the script posts to the API as JSON; what cannot be undone asks
//! first, in a dialog that says what will happen.

use drydock_api::{Phase, Plan, State, Why};
use drydock_domain::REVERSIONS_MAX;
use maud::{Markup, html};

/// How much weight a button has.
#[derive(Debug, Clone, Copy)]
pub(super) enum Weight {
    Primary,
    Plain,
    Danger,
}

/// What a person is asked for before a button does something.
#[derive(Debug, Clone, Copy)]
pub(super) enum Words {
    /// Nothing but yes.
    None,
    /// A text under this name, and what it is for; may be left out.
    Optional(&'static str, &'static str),
    /// A text under this name, and what it is for.
    Required(&'static str, &'static str),
}

/// A thing to do.
pub(super) struct Act<'a> {
    /// A word of its own on the page.
    pub(super) id: &'a str,
    /// The route below `/api/v1`.
    pub(super) route: String,
    /// What the button says.
    pub(super) label: &'a str,
    /// How much weight it has.
    pub(super) weight: Weight,
    /// The revision that was seen, where that matters.
    pub(super) seen: Option<i64>,
    /// What is said when it was done.
    pub(super) done: &'a str,
}

fn class(weight: Weight) -> &'static str {
    match weight {
        Weight::Primary => "button primary",
        Weight::Plain => "button",
        Weight::Danger => "button danger",
    }
}

impl Act<'_> {
    /// Returns a button that does it at once.
    pub(super) fn at_once(&self) -> Markup {
        html! {
            form.act.script data-id={ "act-" (self.id) } data-post={ "/api/v1" (self.route) } data-seen=[self.seen] data-done=(self.done) {
                button class=(class(self.weight)) { (self.label) }
                p.problem role="alert" {}
            }
        }
    }

    /// Returns a button that opens a dialog first; `hidden` are fields that go along.
    pub(super) fn asking(&self, title: &str, text: &str, words: Words, hidden: &[(&str, &str)]) -> Markup {
        let dialog = format!("dialog-{}", self.id);
        let named = format!("{dialog}-title");
        html! {
            div.act.script data-id={ "act-" (self.id) } {
                button class=(class(self.weight)) type="button" data-dialog=(dialog) { (self.label) "…" }
                dialog id=(dialog) aria-labelledby=(named) {
                    form data-post={ "/api/v1" (self.route) } data-seen=[self.seen] data-done=(self.done) {
                        h2 id=(named) { (title) }
                        p { (text) }
                        @for (name, value) in hidden { input type="hidden" name=(name) value=(value); }
                        (field(self.id, words))
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

fn field(id: &str, words: Words) -> Markup {
    let (name, label, is_required) = match words {
        Words::None => return html! {},
        Words::Optional(name, label) => (name, label, false),
        Words::Required(name, label) => (name, label, true),
    };
    let named = format!("field-{id}");
    html! {
        label.field for=(named) { (label) @if !is_required { span.hint { " (optional)" } } }
        textarea id=(named) name=(name) rows="3" required[is_required] {}
    }
}

/// Returns what can be done with a plan where it stands.
pub(super) fn on_plan(plan: &Plan, why: &Why, remote: Option<&str>) -> Markup {
    let is_over = matches!(plan.state, State::Applied | State::Cancelled);
    let is_asked = plan.pending_decision.is_some();
    let act = |id, verb: &str, label, weight, done| Act {
        id,
        route: format!("/plans/{}/{verb}", plan.id),
        label,
        weight,
        seen: Some(plan.revision),
        done,
    };
    let is_left = plan.state == State::Processing && why.lock.as_ref().is_none_or(|lock| lock.stale);
    // A run that is under way holds the plan: all that can be done to it is to end it.
    let is_run = plan.state == State::Processing && !is_left;
    let has_failed = matches!(plan.state, State::Errored | State::Constrained) && !is_asked;
    let can_retry = has_failed || plan.waits.is_some();
    let can_revert = match (plan.phase, plan.state) {
        (_, State::Applied | State::Cancelled) | (Phase::Strategize, _) => false,
        // Its result is its parent's.
        (Phase::Execute, State::Complete) | (Phase::Apply, _) if plan.parent.is_some() => false,
        (Phase::Execute, _) | (Phase::Apply, State::Constrained | State::Errored) => {
            plan.reversions < REVERSIONS_MAX
        }
        (Phase::Apply, State::Queued | State::Processing | State::Waiting | State::Complete) => false,
    };
    html! {
        @if plan.state == State::Complete && !is_asked {
            @if plan.phase == Phase::Strategize {
                (act("execute", "execute", "Execute", Weight::Primary, "Execute is queued.").at_once())
            } @else {
                (landing(&act("apply", "apply", "Apply", Weight::Primary, "Apply is queued."), plan))
            }
        }
        @if can_retry { (act("retry", "retry", "Retry", Weight::Primary, "It is queued again.").at_once()) }
        @if is_left { (act("takeover", "takeover", "Take over", Weight::Primary, "It is queued again.").at_once()) }
        @if !is_over && !is_run { (guiding(plan)) }
        (drafting(plan))
        @if let Some(remote) = remote { (syncing(plan, remote)) }
        @if can_revert && !is_run {
            (act("revert", "revert", "Revert", Weight::Plain, "It goes back to strategize.").asking(
                "Go back to Strategize?",
                "The strategy is made anew. Work so far stays as a checkpoint, and a plan can go back three times.",
                Words::Required("reason", "Why? The agents read this."),
                &[],
            ))
        }
        @if !is_over {
            (act("cancel", "cancel", "Cancel", Weight::Danger, "The plan is cancelled.").asking(
                "End this plan?",
                "Its agents are stopped and it cannot be taken up again. Its work is kept until `drydock gc` proves it safe to remove.",
                Words::Required("reason", "Why? It is recorded."),
                &[],
            ))
        }
    }
}

/// A draft is taken while the plan is still being thought through, from the directory of its latest run.
fn drafting(plan: &Plan) -> Markup {
    let can_adopt = match (plan.phase, plan.state) {
        (Phase::Strategize, State::Queued | State::Waiting | State::Complete | State::Errored) => {
            plan.run.is_some()
        }
        (Phase::Strategize | Phase::Execute | Phase::Apply, _) => false,
    };
    let act = Act {
        id: "adopt",
        route: format!("/plans/{}/strategy/adopt", plan.id),
        label: "Adopt draft",
        weight: Weight::Plain,
        seen: Some(plan.revision),
        done: "The draft is the strategy.",
    };
    let text = "The draft in the worktree of the latest run, .drydock/strategy.json, takes the place of the strategy. \
                The branch is synced with its remote first, where there is one.";
    html! { @if can_adopt { (act.asking("Adopt the draft?", text, Words::None, &[])) } }
}

fn syncing(plan: &Plan, remote: &str) -> Markup {
    let can_sync = !matches!(plan.state, State::Applied | State::Cancelled | State::Processing);
    let act = Act {
        id: "sync",
        route: format!("/plans/{}/sync", plan.id),
        label: "Sync",
        weight: Weight::Plain,
        seen: Some(plan.revision),
        done: "The branch is in sync.",
    };
    let text = format!(
        "The plan's branch and its like on {remote} are brought together: what is new on either side goes to the other. \
         Commits that cannot be joined are kept as a backup first, and you are asked."
    );
    html! { @if can_sync { (act.asking(&format!("Sync with {remote}?"), &text, Words::None, &[])) } }
}

/// What is asked before a result lands.
pub(super) const LANDING: &str = "Land this result?";

/// Returns what landing does.
pub(super) fn lands(plan: &Plan) -> String {
    format!(
        "The result lands as one commit on the target branch of {}. Drydock does not take a landing back.",
        plan.project
    )
}

fn landing(act: &Act<'_>, plan: &Plan) -> Markup {
    act.asking(LANDING, &lands(plan), Words::None, &[])
}

/// Guidance is as good whatever else was done to the plan since, so it asks for no revision.
fn guiding(plan: &Plan) -> Markup {
    let act = Act {
        id: "prompt",
        route: format!("/plans/{}/prompt", plan.id),
        label: "Guide",
        weight: Weight::Plain,
        seen: None,
        done: "The agents will read it.",
    };
    act.asking(
        "Tell the agents something",
        "It is added to what the agents of this plan heed from the next run on.",
        Words::Required("text", "What shall they heed?"),
        &[],
    )
}
